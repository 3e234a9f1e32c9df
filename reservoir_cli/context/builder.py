"""The core verb: from a question to a context window."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from time import perf_counter

import numpy as np

from reservoir_cli.chat.turn import Section, Turn
from reservoir_cli.context import budget as budgets
from reservoir_cli.context import render, turns
from reservoir_cli.context.budget import Meter
from reservoir_cli.context.layout import Costs
from reservoir_cli.context.render import ContextWindow
from reservoir_cli.context.selection import Rules, select
from reservoir_cli.context.types import (
    PROVIDERS,
    Candidate,
    ContextRequest,
    Scores,
    Selection,
    Tier,
    TokenBudget,
)
from reservoir_cli.embedding import Embedder
from reservoir_cli.errors import StoreError
from reservoir_cli.messages import Role, Scope, StoredMessage, plain_text, to_epoch_ms
from reservoir_cli.redaction import Mask
from reservoir_cli.retrieval import ranking
from reservoir_cli.retrieval.dates import date_scores, find_dates
from reservoir_cli.retrieval.follow import running_talk
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.retrieval.relevance import recall_floor
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import Candidates
from reservoir_cli.tokens import AnthropicCounter, counter_id

#: When filling, messages are read until they could fill the budget so many times.
_READ_AHEAD = 4
#: With ``enough``, messages of less similarity are not recalled.
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
    mask: Mask,
) -> ContextWindow:
    """Choose the best context that a token budget can buy.

    :param embedder: ``None`` to go by full text and recency alone.
    :param window: tokens the model reads and writes at once.
    :param reserve: tokens kept for the answer.
    :param mask: hides the secrets of messages before they are weighed and printed.
    :raises UsageError: the budget does not fit the model.
    """
    started = perf_counter()
    asked, request = request, _capped(request, settings, meter)
    left_out = len(asked.knowledge + asked.episodes) - len(request.knowledge + request.episodes)
    budget = budgets.plan(
        window=window,
        reserve=reserve,
        limit=settings.max_context_tokens,
        budget=request.budget,
        model=request.model,
        sections=_section_tokens(request, meter),
        min_history=settings.min_history_tokens,
    )
    vector = embedder.encode_query(request.query) if embedder and request.query.strip() else None
    embedded = perf_counter()
    fill = settings.fill if settings.fill is not None else request.budget is not None
    with store.snapshot():
        instance = _history_instance(request, store)
        scope = _recall_scope(request, settings, instance)
        talk = None
        if settings.follow and request.query.strip():
            own = Scope(request.partition, instance)
            gap = settings.session_gap
            talk = running_talk(store, own, request.query, vector, request.now, gap)
        found = store.candidates(scope, instance, request.query, vector, talk)
        scored = ranking.score(
            found,
            settings,
            to_epoch_ms(request.now),
            _date_scores(request, found),
        )
        tiers = _tiers(scored, bool(request.query.strip()), settings, store, scope)
        floor = recall_floor(settings, embedder.model_id if embedder else None)
        silent = bool(request.query.strip()) and 0 < len(found.ids) and scored.relevance < floor
        if silent:
            tiers = {place: tier for place, tier in tiers.items() if tier is Tier.RECENT}
        fill = fill and not silent
        chosen = _to_read(scored, tiers, budget.history if fill else 0)
        if settings.enough:
            chosen = [at for at in chosen if _is_enough(scored, tiers, at)]
        rows = store.with_partners([int(each) for each in found.ids[chosen]], scope)
    rows = _masked(_recounted(rows, store, meter), mask, meter)
    read = perf_counter()
    pool = _pool(rows, scored, tiers, settings.max_tool_result_tokens, meter)
    selection, used = _selected(
        request, pool, budget, settings, meter, len(found.ids), fill=fill, silent=silent
    )
    timings = {
        "embed": embedded - started,
        "read": read - embedded,
        "select": perf_counter() - read,
    }
    return ContextWindow(
        request,
        budget,
        selection,
        meter,
        {"partition": request.partition, "instance": instance, "recall": str(scope)},
        used,
        left_out,
        (*_cap_notes(request, left_out, settings, meter), *budget.notes),
        {name: 1000 * seconds for name, seconds in timings.items()},
        scored.relevance,
        silent,
    )


def _selected(
    request: ContextRequest,
    pool: Sequence[Candidate],
    budget: TokenBudget,
    settings: Settings,
    meter: Meter,
    messages: int,
    *,
    fill: bool,
    silent: bool,
) -> tuple[Selection, int]:
    """The selection, and its tokens as it is printed.

    The account while packing adds up single messages; what is printed is counted as a whole,
    and should that ever be more, the account gets so much less.

    :param silent: nothing is recalled; history is the newest messages that fit.
    """
    rules = Rules(
        "tiers" if silent else settings.order,
        settings.min_history_messages,
        settings.min_similarity,
        settings.include_system,
    )
    room = budget.history
    while True:
        selection = select(
            pool,
            query=request.query,
            budget=room,
            costs=_costs(request, budget, meter),
            rules=rules,
            not_reached=messages - len(pool) if fill else 0,
        )
        if silent:
            selection = replace(selection, recalled=())
        used = _history_used(request, selection, budget, meter)
        if used <= budget.history or room <= 0:
            return selection, used
        room = max(0, room - (used - budget.history))


def _history_used(
    request: ContextRequest, selection: Selection, budget: TokenBudget, meter: Meter
) -> int:
    """Tokens of recalled messages and history, as they are printed."""
    if not isinstance(meter.counter, AnthropicCounter):
        return _printed(request, selection.recalled, selection.history, budget, meter)
    # This counter knows whole requests only; what is not history's is taken off.
    said = turns.history_turns(request, selection.recalled, selection.history)
    window = [*turns.fixed_turns(request), *said]
    body = render.written([*window, *turns.current_turn(request)], "anthropic", None, 1)
    assert isinstance(body, dict)
    counted = meter.counter.count_request(body)
    return max(0, counted - sum(budget.sections.values()))


def _section_tokens(request: ContextRequest, meter: Meter) -> dict[Section, int]:
    """Tokens of each part that the budget does not prune."""
    given = [*turns.fixed_turns(request), *turns.current_turn(request)]
    return {
        section: render.count_turns(
            [each for each in given if each.section is section], request.format, meter
        )
        for section in dict.fromkeys(each.section for each in given)
    }


def _capped(request: ContextRequest, settings: Settings, meter: Meter) -> ContextRequest:
    """The request without the pieces that are beyond their section's cap."""

    def count(pieces: Sequence[Turn]) -> int:
        return render.count_turns(pieces, request.format, meter)

    knowledge, episodes = request.knowledge, request.episodes
    cap = settings.max_knowledge_tokens
    while len(knowledge) > 1 and count(turns.knowledge_turn(knowledge)) > cap:
        knowledge = knowledge[:-1]
    while episodes and count(turns.episodes_turn(episodes)) > settings.max_episode_tokens:
        episodes = episodes[1:]
    return replace(request, knowledge=knowledge, episodes=episodes)


def _cap_notes(
    request: ContextRequest, left_out: int, settings: Settings, meter: Meter
) -> tuple[str, ...]:
    notes = []
    if left_out:
        noun = "piece" if left_out == 1 else "pieces"
        notes.append(f"{left_out} {noun} of knowledge and episodes left out: beyond the caps")
    first = render.count_turns(turns.knowledge_turn(request.knowledge), request.format, meter)
    if first > settings.max_knowledge_tokens:
        notes.append(
            f"the first piece of knowledge alone takes {first:,} tokens, more than "
            f"max_knowledge_tokens ({settings.max_knowledge_tokens:,})"
        )
    return tuple(notes)


def _history_instance(request: ContextRequest, store: Store) -> str:
    """The instance history comes from: the one named, the partition's own, or its newest."""
    if request.instance is not None:
        return request.instance
    if store.last(Scope(request.partition, request.partition), 1):
        return request.partition
    return store.newest_instance(request.partition) or request.partition


def _recall_scope(request: ContextRequest, settings: Settings, instance: str) -> Scope:
    """Where messages are looked for beyond the recent ones."""
    narrow = settings.recall_scope == "instance"
    if settings.recall_scope == "auto":
        narrow = request.instance is not None
    return Scope(request.partition, instance if narrow else None)


def _date_scores(request: ContextRequest, found: Candidates) -> ranking.Floats:
    """How near each message is to a date that the question names, in local time."""
    local = request.now.astimezone()
    spans = find_dates(request.query, local)
    return date_scores(spans, found.created_at, local.tzinfo or UTC)


def _tiers(
    scored: Scored, asked: bool, settings: Settings, store: Store, scope: Scope
) -> dict[int, Tier]:
    """The candidates by their position, each with the first tier that holds.

    :param asked: there is a question; to none, nothing is similar.
    """
    found = scored.candidates
    best = ranking.best(scored.similarity, settings.semantic_context_size if asked else 0)
    alike = (1 + np.nan_to_num(found.cosine[best], nan=-1)) / 2 > settings.similarity_threshold
    similar = {int(place): bool(passes) for place, passes in zip(best, alike, strict=True)}
    own = np.flatnonzero(found.own)
    recent = {int(each) for each in own[max(0, len(own) - settings.recent_context_size) :]}
    seeds = sorted(int(found.ids[place]) for place in recent | similar.keys())
    tied = store.tied(seeds, settings.synapse_depth, scope)
    tiers = dict.fromkeys(similar, Tier.OLDER)
    linked, _ = found.places(np.array(tied, np.int64))
    tiers |= dict.fromkeys((int(each) for each in linked), Tier.SYNAPSE)
    tiers |= dict.fromkeys((place for place, passes in similar.items() if passes), Tier.SIMILAR)
    return tiers | dict.fromkeys(recent, Tier.RECENT)


def _to_read(scored: Scored, tiers: dict[int, Tier], room: int) -> list[int]:
    """Positions of the messages worth reading: candidates, and what may fill the room.

    With those of the history's instance come the ones between that are too large: they are not
    printed, but history may go on behind them.
    """
    chosen = {*tiers, *_fillers(scored, room)}
    own = np.flatnonzero(scored.candidates.own)
    if len(own) and room:
        oldest = min((place for place in chosen if scored.candidates.own[place]), default=own[-1])
        large = own[(own > oldest) & (scored.candidates.tokens[own] > room)]
        chosen.update(large.tolist())
    return sorted(chosen)


def _is_enough(scored: Scored, tiers: dict[int, Tier], place: int) -> bool:
    """Return whether a message is recent or similar enough to be recalled."""
    return tiers.get(place) is Tier.RECENT or bool(scored.similarity[place] >= _ENOUGH)


def _fillers(scored: Scored, room: int) -> list[int]:
    """Positions by priority of what could fill the room some times over."""
    tokens = scored.candidates.tokens.astype(np.int64)
    total, count = len(tokens), 1_000
    while room:
        by_priority = ranking.best(scored.priority, count)
        fitting = by_priority[tokens[by_priority] <= room]
        enough = np.cumsum(tokens[fitting]) <= _READ_AHEAD * room
        if count >= total or not enough.all():
            return [int(each) for each in fitting[enough]]
        count *= 10
    return []


def _recounted(rows: list[StoredMessage], store: Store, meter: Meter) -> list[StoredMessage]:
    """Rows with counts by the counter in use; what another one counted is counted once more."""
    name = counter_id(meter.counter)
    stale = {each.id for each in rows if each.counter != name}
    if not stale:
        return rows
    rows = [
        replace(each, tokens=meter.counter.count(plain_text(each)), counter=name)
        if each.id in stale
        else each
        for each in rows
    ]
    # Kept for the next time if nobody else writes just now; never waited for.
    with suppress(StoreError), store.writing(wait=0):
        store.renew_counts({each.id: each.tokens for each in rows if each.id in stale}, name)
    return rows


def _masked(rows: list[StoredMessage], mask: Mask, meter: Meter) -> list[StoredMessage]:
    """Rows as they may be printed, counted as they then are."""
    shown = mask.messages(rows)
    return [
        each if each is row else replace(each, tokens=meter.counter.count(plain_text(each)))
        for row, each in zip(rows, shown, strict=True)
    ]


def _pool(
    rows: list[StoredMessage],
    scored: Scored,
    tiers: dict[int, Tier],
    max_result_tokens: int,
    meter: Meter,
) -> list[Candidate]:
    """Rows with their scores; long tool results are cut."""
    found = scored.candidates
    places, _ = found.places(np.array([row.id for row in rows], np.int64))
    ages = np.cumsum(found.own[::-1])[::-1] - 1
    limit = int(max_result_tokens / meter.factor)
    pool = []
    for row, place in zip(rows, places.tolist(), strict=True):
        cosine = float(found.cosine[place])
        scores = Scores(
            float(scored.similarity[place]),
            0.0 if np.isnan(cosine) else cosine,
            float(scored.bm25[place]),
            float(scored.recency[place]),
            float(scored.priority[place]),
            not np.isnan(cosine),
        )
        cut = max_result_tokens > 0 and row.role is Role.TOOL and row.tokens > limit
        pool.append(
            Candidate(
                turns.shorten_result(row, limit, meter.counter) if cut else row,
                tiers.get(place, Tier.OLDER),
                place not in tiers,
                scores,
                int(ages[place]) if found.own[place] else None,
                cut,
            )
        )
    return pool


def _costs(request: ContextRequest, budget: TokenBudget, meter: Meter) -> Costs:
    """What a message costs as a recalled line and as a turn; an upper bound of each."""

    def recalled(each: Candidate) -> int:
        return meter.scaled(each.message.tokens + meter.counter.count(f"{each.message.role}: \n"))

    def history(each: Candidate) -> int:
        message = each.message
        framing = f"{message.role}: \n\n" + " ".join(call.id for call in message.tool_calls)
        framing += message.tool_call_id or ""
        tokens = message.tokens + meter.counter.count(framing)
        return meter.scaled(tokens + budgets.PER_MESSAGE)

    return Costs(
        recalled=recalled,
        history=history,
        day=meter.count("2026-01-01\n"),
        recalled_title=meter.count(f"{turns.RECALLED_TITLE}\n\n", messages=1),
        printed=lambda recalled, run: _printed(request, recalled, run, budget, meter),
    )


def _printed(
    request: ContextRequest,
    recalled: Sequence[Candidate],
    history: Sequence[Candidate],
    budget: TokenBudget,
    meter: Meter,
) -> int:
    """Tokens of recalled messages and history, as they are printed.

    A text is counted whole as well: its sections are rounded one by one, which may come to less.
    """
    shown = turns.history_turns(request, recalled, history)
    alone = render.count_turns(shown, request.format, meter)
    if request.format in PROVIDERS:
        return alone
    window = [*turns.fixed_turns(request), *shown, *turns.current_turn(request)]
    whole = render.count_turns(window, request.format, meter)
    return max(alone, whole - sum(budget.sections.values()))
