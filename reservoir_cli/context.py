"""The core verb: from a question to a context window."""

from time import perf_counter

import numpy as np

from reservoir_cli import budget as budgets
from reservoir_cli import ranking, rendering
from reservoir_cli.budget import Meter
from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Scope, StoredMessage
from reservoir_cli.rendering import ContextWindow
from reservoir_cli.selection import Costs, select
from reservoir_cli.settings import Settings
from reservoir_cli.store import Store
from reservoir_cli.window import (
    Candidate,
    ContextRequest,
    Scored,
    Scores,
    Section,
    Tier,
)

#: When filling, messages are read until they could fill the budget so many times.
_READ_AHEAD = 4


def build_context(
    request: ContextRequest,
    settings: Settings,
    store: Store,
    embedder: Embedder | None,
    meter: Meter,
    *,
    window: int,
    reserve: int,
) -> ContextWindow:
    """Choose the best context that a token budget can buy.

    :param embedder: ``None`` to go by full text and recency alone.
    :param window: tokens the model reads and writes at once.
    :param reserve: tokens kept for the answer.
    :raises UsageError: the budget does not fit the model.
    """
    started = perf_counter()
    current = rendering.count_turns(rendering.current_turn(request), request.format, meter)
    budget = budgets.plan(
        window=window,
        reserve=reserve,
        limit=settings.max_context_tokens,
        budget=request.budget,
        model=request.model,
        sections={Section.CURRENT: current},
    )
    vector = embedder.encode_query(request.query) if embedder and request.query.strip() else None
    embedded = perf_counter()
    with store.snapshot():
        instance, notes = _history_instance(request, store)
        scope = _recall_scope(request, settings, instance)
        found = store.candidates(scope, instance, request.query, vector)
        scored = ranking.score(found, settings.similarity_weight, settings.recency_weight)
        tiers = _tiers(scored, settings)
        fill = settings.fill if settings.fill is not None else request.budget is not None
        chosen = _to_read(scored, tiers, budget.history if fill else 0)
        rows = store.with_partners([int(each) for each in found.ids[chosen]], scope)
    ranked = perf_counter()
    pool = _pool(rows, scored, tiers)
    selection = select(
        pool,
        query=request.query,
        budget=budget.history,
        costs=_costs(request, meter),
        min_history_messages=settings.min_history_messages,
        not_reached=len(found.ids) - len(pool) if fill else 0,
    )
    return ContextWindow(
        request,
        budget,
        selection,
        meter,
        {"partition": request.partition, "instance": instance, "recall": str(scope)},
        {
            "embed": 1000 * (embedded - started),
            "read": 1000 * (ranked - embedded),
            "select": 1000 * (perf_counter() - ranked),
        },
        (*notes, *budget.notes),
    )


def _history_instance(request: ContextRequest, store: Store) -> tuple[str, tuple[str, ...]]:
    """The instance history comes from: the one named, the partition's own, or its newest."""
    if request.instance is not None:
        return request.instance, ()
    own = request.partition
    if store.last(Scope(request.partition, own), 1):
        return own, ()
    newest = store.newest_instance(request.partition)
    if newest is None:
        return own, ()
    return newest, (f"recent messages are of {request.partition}/{newest}",)


def _recall_scope(request: ContextRequest, settings: Settings, instance: str) -> Scope:
    """Where messages are looked for beyond the recent ones."""
    narrow = settings.recall_scope == "instance"
    if settings.recall_scope == "auto":
        narrow = request.instance is not None
    return Scope(request.partition, instance if narrow else None)


def _tiers(scored: Scored, settings: Settings) -> dict[int, Tier]:
    """Positions of the candidates; the later entry holds, so recent comes last."""
    found = scored.candidates
    best = np.lexsort((-np.arange(len(found.ids)), -scored.similarity))
    tiers = {}
    for place in best[: settings.semantic_context_size]:
        passes = (1 + found.cosine[place]) / 2 > settings.similarity_threshold
        tiers[int(place)] = Tier.SIMILAR if passes else Tier.OLDER
    own = np.flatnonzero(found.own)
    for place in own[max(0, len(own) - settings.recent_context_size) :]:
        tiers[int(place)] = Tier.RECENT
    return tiers


def _to_read(scored: Scored, tiers: dict[int, Tier], room: int) -> "list[int]":
    """Positions of the messages worth reading: candidates, and what may fill the room."""
    by_priority = np.lexsort((-np.arange(len(scored.priority)), -scored.priority))
    tokens = scored.candidates.tokens[by_priority]
    fits = by_priority[tokens <= room]
    enough = np.cumsum(tokens[tokens <= room]) <= _READ_AHEAD * room
    return sorted({*tiers, *(int(each) for each in fits[enough])} if room else tiers)


def _pool(rows: list[StoredMessage], scored: Scored, tiers: dict[int, Tier]) -> list[Candidate]:
    found = scored.candidates
    place_of = {int(number): place for place, number in enumerate(found.ids)}
    ages = np.cumsum(found.own[::-1])[::-1] - 1
    pool = []
    for row in rows:
        place = place_of[row.id]
        cosine = float(found.cosine[place])
        scores = Scores(
            float(scored.similarity[place]),
            0.0 if np.isnan(cosine) else cosine,
            float(found.bm25[place]),
            float(scored.recency[place]),
            float(scored.priority[place]),
        )
        age = int(ages[place]) if found.own[place] else None
        pool.append(Candidate(row, tiers.get(place, Tier.OLDER), place not in tiers, scores, age))
    return pool


def _costs(request: ContextRequest, meter: Meter) -> Costs:
    """What a message costs as a recalled line and as a turn; an upper bound of each."""

    def recalled(each: Candidate) -> int:
        return meter.scaled(each.message.tokens + meter.counter.count(f"{each.message.role}: \n"))

    def history(each: Candidate) -> int:
        framing = rendering.history_framing(request.format, each.message)
        tokens = each.message.tokens + meter.counter.count(framing)
        return meter.scaled(tokens + budgets.PER_MESSAGE)

    return Costs(
        recalled=recalled,
        history=history,
        day=meter.count("2026-01-01\n"),
        recalled_title=meter.count(f"{rendering.RECALLED_TITLE}\n\n", messages=1),
    )
