"""Build a context window: the core operation of Reservoir."""

from collections.abc import Collection
from functools import cache
from time import perf_counter

from reservoir_cli.context import budget as budgets
from reservoir_cli.context.add_summaries import select_with_summaries
from reservoir_cli.context.budget import Meter
from reservoir_cli.context.choose import SelectionOptions
from reservoir_cli.context.choose_for_recall import find_standouts
from reservoir_cli.context.costs import cap_notes, cap_sections, count_sections
from reservoir_cli.context.history import find_history
from reservoir_cli.context.messages_to_read import find_passed, find_wanted, want
from reservoir_cli.context.pool import PoolRows, as_printed, build_pool, is_clean, read_rows
from reservoir_cli.context.prepare_request import Prepared
from reservoir_cli.context.rank_messages import Inputs, rank_messages
from reservoir_cli.context.render.formats import ContextWindow
from reservoir_cli.context.shrink_to_fit import Chooser
from reservoir_cli.context.window_constants import COMPACT_BELOW
from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import EVERYTHING, Filter
from reservoir_cli.redaction import Redactor
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.search.candidates import QuestionVector
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import AnthropicCounter

#: The first recalled line of a context for a question that no message fits.
NOTHING_FITS = "Nothing stored fits this question well; these are the nearest."


def build_context(
    prepared: Prepared,
    store: Store,
    embedder: Embedder | None,
    meter: Meter,
    *,
    redactor: Redactor,
    where: Filter = EVERYTHING,
    explain: bool = False,
    without: Collection[int] = (),
) -> ContextWindow:
    """Choose the best context that a token budget can buy.

    :param embedder: ``None`` to rank by full text and recency only.
    :param explain: report the components of each similarity.
    :param without: ids of messages to leave out; the other scores do not change.
    :raises UsageError: the budget does not fit the model.
    """
    started_at = perf_counter()
    whole, settings = prepared.request, prepared.settings
    request = cap_sections(whole, settings, meter)
    left_out = len(whole.knowledge + whole.episodes) - len(request.knowledge + request.episodes)
    budget = budgets.plan(
        window=prepared.window,
        reserve=prepared.reserve,
        limit=settings.max_context_tokens,
        budget=request.budget,
        model=request.model,
        sections=count_sections(request, meter),
        min_history=settings.min_history_tokens,
        recall_only=request.recall_only,
    )
    compact = request.in_session or budget.available < COMPACT_BELOW
    request = request._replace(compact=compact)
    inputs = Inputs(request, settings, store, embedder, meter, redactor)
    vector = _start_embedding(embedder, request.query, store)
    embedded_at = perf_counter()
    with store.snapshot():
        history = find_history(request, settings, store)
        ranking = rank_messages(inputs, history, vector, where, explain=explain, without=without)
        question = vector.wait() if vector else None
        if ranking.nothing_fits and not request.recall_only:
            request = request._replace(recall_note=NOTHING_FITS)
            inputs = inputs._replace(request=request)
        fills = request.budget is not None if settings.fill is None else settings.fill
        fills = fills and not request.recall_only
        room = int(budget.history / meter.factor) if fills else 0
        options = _selection_options(settings, meter)
        nothing_found = ranking.nothing_fits
        if request.recall_only:
            wanted = want(ranking, find_standouts(ranking, request, budget.history))
            count = ranking.scored.candidates.count_matching()
            nothing_found = nothing_found or (count > 0 and not wanted.positions)
        else:
            wanted = find_wanted(inputs, ranking, options, room)
        pool_rows = read_rows(inputs, ranking, wanted, question)
    read_at = perf_counter()
    matching = ranking.scored.candidates.count_matching() if fills else 0

    def make_chooser(printed_rows: PoolRows) -> Chooser:
        pool = build_pool(inputs, ranking, wanted, printed_rows)
        passed = find_passed(ranking, wanted.hidden, pool, room)
        not_reached = matching - len(pool) if fills else 0
        return Chooser(request, pool, budget, options, meter, not_reached, passed)

    chooser = make_chooser(as_printed(inputs, pool_rows, marked_only=request.recall_only))
    selection, used, count_notes = chooser.choose()
    if request.recall_only:
        chosen = (*selection.recalled, *selection.history)
        if not is_clean(chosen, pool_rows, redactor):
            chooser = make_chooser(as_printed(inputs, pool_rows))
            selection, used, count_notes = chooser.choose()
    if settings.episodes == "auto" and question is not None:
        with_summaries = select_with_summaries(chooser, inputs, ranking, question, where, without)
        if with_summaries:
            request, selection, used, count_notes = with_summaries
    request, used = chooser.add_excerpt_note(request, selection, used)
    notes = ranking.notes

    @cache
    def find_hints() -> tuple[str, ...]:
        return (*notes, *chooser.note_best_left_out(selection))

    timings = {
        "embed": embedded_at - started_at,
        "read": read_at - embedded_at,
        "select": perf_counter() - read_at,
    }
    return ContextWindow(
        request,
        budget,
        selection,
        meter,
        {
            "partition": request.partition,
            "instance": history.instance if history else None,
            "recall": str(ranking.scope),
        },
        used,
        left_out,
        (*cap_notes(request, left_out, settings, meter), *budget.notes, *count_notes),
        {name: 1000 * seconds for name, seconds in timings.items()},
        ranking.scored.relevance,
        nothing_found,
        find_hints,
        ranking.floor,
    )


def _start_embedding(
    embedder: Embedder | None, question: str, store: Store
) -> QuestionVector | None:
    if embedder is None or not question.strip():
        return None
    return QuestionVector(embedder.dimensions, store.start(lambda: embedder.encode_query(question)))


def _selection_options(settings: Settings, meter: Meter) -> SelectionOptions:
    return SelectionOptions(
        settings.order,
        settings.min_history_messages,
        settings.min_cosine,
        settings.include_system,
        settings.standing_instructions,
        # Three requests only come close to the budget if all of it can be used.
        to_the_last=isinstance(meter.counter, AnthropicCounter),
    )
