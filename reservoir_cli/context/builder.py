"""Build a context window: the core operation of Reservoir."""

from collections.abc import Collection
from datetime import UTC
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.context import budget as budgets
from reservoir_cli.context import passages
from reservoir_cli.context.budget import Meter
from reservoir_cli.context.pool import build_pool, read_passages, read_titles, recount, redact
from reservoir_cli.context.render.formats import ContextWindow
from reservoir_cli.context.sections import cap_notes, cap_sections, count_sections
from reservoir_cli.context.selection import Rules
from reservoir_cli.context.shrink_to_fit import Chooser, note_best_left_out
from reservoir_cli.context.summaries import select_with_summaries
from reservoir_cli.context.tiers import assign_tiers, find_fillers, find_too_large, find_unprintable
from reservoir_cli.context.types import ContextRequest, Tier
from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Scope, to_epoch_ms
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval import filtered_scores, ranking, sessions
from reservoir_cli.retrieval.dates import date_scores, find_dates
from reservoir_cli.retrieval.follow_up_questions import read_running_talk
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.retrieval.recall_floor import floor_property, recall_floor
from reservoir_cli.retrieval.respelling import drop_known_words, respelling_notes
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.candidates import Candidates, Talk
from reservoir_cli.storage.compact_keys import Keys
from reservoir_cli.storage.records import Filter
from reservoir_cli.tokens import AnthropicCounter
from reservoir_cli.util.languages import is_about_speaker

#: With ``enough``, messages of lower similarity are not recalled.
_ENOUGH = 0.4


def build_context(
    request: ContextRequest,
    settings: Settings,
    store: Store,
    embedder: Embedder | None,
    meter: Meter,
    *,
    window: int,
    reserve: int,
    redactor: Redactor,
    where: Filter = Filter(),  # noqa: B008 - it is frozen
    explain: bool = False,
    without: Collection[int] = (),
) -> ContextWindow:
    """Choose the best context that a token budget can buy.

    :param embedder: ``None`` to rank by full text and recency only.
    :param window: tokens of the model's context window.
    :param reserve: tokens kept for the answer.
    :param where: consider only stored messages that match.
    :param redactor: redacts secrets in messages before they are ranked and printed.
    :param explain: report the components of each similarity.
    :param without: ids of messages to leave out; the other scores do not change.
    :raises UsageError: the budget does not fit the model.
    """
    started_at = perf_counter()
    pieces = len(request.knowledge + request.episodes)
    request = cap_sections(request, settings, meter)
    left_out = pieces - len(request.knowledge + request.episodes)
    budget = budgets.plan(
        window=window,
        reserve=reserve,
        limit=settings.max_context_tokens,
        budget=request.budget,
        model=request.model,
        sections=count_sections(request, meter),
        min_history=settings.min_history_tokens,
        recall_only=request.recall_only,
    )
    vector = _embed_query(embedder, request.query, store)
    embedded_at = perf_counter()
    fill = settings.fill if settings.fill is not None else request.budget is not None
    with store.snapshot():
        instance = None if request.recall_only else _history_instance(request, store)
        scope = _recall_scope(request, settings, instance)
        talk = _preceding_talk(request, settings, store, instance, vector)
        candidates = store.candidates(scope, instance, request.query, vector, where, talk)
        candidates = drop_known_words(candidates, embedder)
        if request.exclude_conversation:
            session = Filter(session=request.exclude_conversation)
            candidates = candidates.without(store.find(scope, session))
        if without:
            candidates = candidates.without(Keys((request.partition, number) for number in without))
        scored = ranking.score(
            candidates,
            settings,
            _reference_time(request, candidates),
            _score_dates(request, candidates),
            parts=explain,
        )
        passing = filtered_scores.matching_positions(candidates)
        thread_positions = sessions.thread_positions(candidates)[passing]
        scored = filtered_scores.keep(scored, passing)
        respelt = respelling_notes(candidates, store, scope, redactor)
        candidates = scored.candidates
        floor = floor_in_force(settings, store, embedder)
        silent = _is_silent(scored, request, floor)
        fill = fill and not silent
        room = int(budget.history / meter.factor) if fill else 0
        rules = _selection_rules(settings, meter, silent=silent)
        hidden, repeated = find_unprintable(scored, request.query, settings, rules, store, scope)
        tiers = assign_tiers(scored, bool(request.query.strip()), settings, store, scope, hidden)
        if silent:
            tiers = {position: tier for position, tier in tiers.items() if tier is Tier.RECENT}
        excerpt_over = settings.excerpt_over if settings.excerpts == "auto" else None
        positions = {*tiers, *repeated, *find_fillers(scored, room, excerpt_over)}
        if settings.enough:
            positions = {position for position in positions if _is_enough(scored, tiers, position)}
        pins = set() if silent or request.recall_only else _find_pins(candidates, store, scope)
        positions |= pins
        stored = store.with_partners(
            [int(number) for number in candidates.ids[sorted(positions)]], scope
        )
        _, is_candidate = candidates.places(np.array([row.id for row in stored], np.int64))
        stored = [row for row, matches in zip(stored, is_candidate, strict=True) if matches]
        parts, cosines = read_passages(stored, excerpt_over, store, vector)
        titles = read_titles(stored, scope, store, redactor)
    rows = redact(recount(stored, store, meter), redactor, meter)
    parts = passages.map_to_printed(parts, stored, rows)
    read_at = perf_counter()
    limit = settings.max_tool_result_tokens
    about_asker = is_about_speaker(request.query)
    pool = build_pool(
        rows,
        scored,
        thread_positions,
        tiers,
        pins,
        limit,
        meter,
        titles,
        parts,
        cosines,
        about_asker,
    )
    not_reached = len(candidates.ids) - len(pool) if fill else 0
    too_large = find_too_large(scored, pool, room)
    chooser = Chooser(request, pool, budget, rules, meter, not_reached, too_large, silent)
    selection, used, count_notes = chooser.choose()
    if settings.episodes == "auto" and embedder and vector is not None and not silent:
        with_summaries = select_with_summaries(
            chooser, store, scope, (embedder, vector), settings, redactor
        )
        if with_summaries:
            request, selection, used, count_notes = with_summaries
    request, used = chooser.add_excerpt_note(request, selection, used)
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
        {"partition": request.partition, "instance": instance, "recall": str(scope)},
        used,
        left_out,
        (*cap_notes(request, left_out, settings, meter), *budget.notes, *count_notes),
        {name: 1000 * seconds for name, seconds in timings.items()},
        scored.relevance,
        silent,
        (*respelt, *([] if silent else note_best_left_out(selection, request, budget, meter))),
        floor,
    )


def _embed_query(
    embedder: Embedder | None, question: str, store: Store
) -> NDArray[np.float32] | None:
    if embedder is None or not question.strip():
        return None
    return store.beside(question, lambda: embedder.encode_query(question))


def _selection_rules(settings: Settings, meter: Meter, *, silent: bool) -> Rules:
    return Rules(
        "tiers" if silent else settings.order,
        settings.min_history_messages,
        settings.min_cosine,
        settings.include_system,
        settings.standing_instructions,
        # Three requests only come close to the budget if all of it can be used.
        to_the_last=isinstance(meter.counter, AnthropicCounter),
    )


def _history_instance(request: ContextRequest, store: Store) -> str:
    """Return history's instance: the requested one, the partition's own, or its newest."""
    if request.instance is not None:
        return request.instance
    if store.last(Scope(request.partition, request.partition), 1, Filter(documents=False)):
        return request.partition
    return store.newest_instance(request.partition) or request.partition


def _preceding_talk(
    request: ContextRequest,
    settings: Settings,
    store: Store,
    instance: str | None,
    vector: NDArray[np.float32] | None,
) -> Talk | None:
    """Return the messages just before the question; in ``recall``, of the reader's session."""
    if not settings.follow or not request.query.strip():
        return None
    if request.recall_only and not request.exclude_conversation:
        return None
    return read_running_talk(
        store,
        Scope(request.partition, instance),
        request.query,
        vector,
        request.now,
        settings.session_gap,
        request.exclude_conversation,
    )


def _reference_time(request: ContextRequest, candidates: Candidates) -> int:
    """Return the time that ages are relative to: in ``recall`` that of the newest message."""
    if request.recall_only and len(candidates.created_at):
        return int(candidates.created_at[-1])
    return to_epoch_ms(request.now)


def _recall_scope(request: ContextRequest, settings: Settings, instance: str | None) -> Scope:
    """Return the scope that messages other than recent ones are recalled from."""
    narrow = settings.recall_scope == "instance"
    if settings.recall_scope == "auto":
        narrow = request.instance is not None
    return Scope(request.partition, instance if narrow else None)


def _score_dates(request: ContextRequest, candidates: Candidates) -> ranking.Floats:
    """Score how near each message is to a date in the question, in local time."""
    local = request.now.astimezone()
    spans = find_dates(request.query, local)
    return date_scores(spans, candidates.created_at, local.tzinfo or UTC)


def floor_in_force(settings: Settings, store: Store, embedder: Embedder | None) -> float:
    """Return the relevance below which nothing is recalled."""
    model_id = embedder.model_id if embedder else None
    return recall_floor(settings, model_id, store.get_property(floor_property(model_id)))


def _is_silent(scored: Scored, request: ContextRequest, floor: float) -> bool:
    """Return whether no message fits the question well enough to recall anything."""
    if not request.query.strip() or not len(scored.candidates.ids):
        return False
    return scored.relevance < floor


def _is_enough(scored: Scored, tiers: dict[int, Tier], position: int) -> bool:
    """Return whether a message is recent, or similar enough to be recalled."""
    return tiers.get(position) is Tier.RECENT or bool(scored.similarity[position] >= _ENOUGH)


def _find_pins(candidates: Candidates, store: Store, scope: Scope) -> set[int]:
    """Return the positions of pinned messages."""
    numbers = [key.id for key in store.find(scope, Filter(pinned=True))]
    positions, _ = candidates.places(np.array(numbers, np.int64))
    return set(positions.tolist())
