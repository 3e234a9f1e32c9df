"""Assign tiers to candidates, and choose the messages worth reading for a context."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.context.excerpts import FIRST
from reservoir_cli.context.selection import Rules, printable
from reservoir_cli.context.types import Candidate, Tier
from reservoir_cli.messages import Role, Scope
from reservoir_cli.retrieval import ranking
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.candidates import Candidates

#: When filling, messages are read until they could fill the budget this many times.
_READ_AHEAD = 4
#: Approximate tokens of a passage; the longest message that is read for excerpts; and the most
#: tokens that are read for a small budget.
_PASSAGE, _LONGEST_READ, _MOST_READ = 100, 50_000, 200_000
#: A message with at most this many tokens is small.
_SMALL = 256


def not_printable(
    scored: Scored, query: str, settings: Settings, rules: Rules, store: Store, scope: Scope
) -> tuple[NDArray[np.bool_], list[int]]:
    """Find messages that would count as recent or similar but are never printed.

    Only roles and texts of messages that may count are read, and more of them the more were
    skipped.

    :returns: shape (n,), whether a message is never printed; and the positions of messages that
        repeat the question, whose replies count.
    """
    found = scored.candidates
    hidden, checked = np.zeros(len(found.ids), bool), np.zeros(len(found.ids), bool)
    same: list[int] = []
    while True:
        more = 2 * int(hidden.sum())
        similar = settings.semantic_context_size if query.strip() else 0
        places = {
            *_best(scored.similarity, hidden, similar + more if similar else 0),
            *_newest(found.own & ~hidden, settings.recent_context_size + more),
        }
        fresh = np.array([place for place in sorted(places) if not checked[place]], np.intp)
        checked[fresh] = True
        rows = store.by_id(found.ids[fresh].tolist(), scope)
        out = [row for row in rows if not printable(row, query, rules)]
        if not out:
            return hidden, same
        places_out, _ = found.places(np.array([row.id for row in out], np.int64))
        hidden[places_out] = True
        same += [
            int(place)
            for place, row in zip(places_out, out, strict=True)
            if row.role is not Role.SYSTEM
        ]


def _best(scores: ranking.Floats, hidden: NDArray[np.bool_], count: int) -> list[int]:
    """Return the positions of the best scores that are not hidden, the best first."""
    best = ranking.best(scores, count + int(hidden.sum()) if count else 0)
    return [int(each) for each in best[~hidden[best]][:count]]


def _newest(wanted: NDArray[np.bool_], count: int) -> list[int]:
    """Return the positions of the newest messages that are wanted."""
    places = np.flatnonzero(wanted)
    return [int(each) for each in places[max(0, len(places) - count) :]]


def tiers_of(
    scored: Scored,
    asked: bool,
    settings: Settings,
    store: Store,
    scope: Scope,
    hidden: NDArray[np.bool_],
) -> dict[int, Tier]:
    """Map the positions of candidates to the first tier that applies.

    :param asked: whether there is a question; without one no message is similar.
    :param hidden: shape (n,), whether a message is never printed.
    """
    found = scored.candidates
    best = _best(scored.similarity, hidden, settings.semantic_context_size if asked else 0)
    alike = np.nan_to_num(found.cosine[best], nan=-1) > settings.similar_cosine
    similar = {int(place): bool(passes) for place, passes in zip(best, alike, strict=True)}
    recent = set(_newest(found.own & ~hidden, settings.recent_context_size))
    seeds = sorted(int(found.ids[place]) for place in recent | similar.keys())
    tied = store.linked(seeds, settings.synapse_depth, scope)
    tiers = dict.fromkeys(similar, Tier.OLDER)
    linked, _ = found.places(np.array(tied, np.int64))
    tiers |= dict.fromkeys((int(each) for each in linked if not hidden[each]), Tier.SYNAPSE)
    tiers |= dict.fromkeys((place for place, passes in similar.items() if passes), Tier.SIMILAR)
    return tiers | dict.fromkeys(recent, Tier.RECENT)


def fillers(scored: Scored, room: int, excerpt_over: int | None) -> list[int]:
    """Return positions of messages that could fill the room several times, by priority per size.

    Large messages do not displace small ones, so that more room never finds less; in very little
    room, only messages that fit are read.

    :param room: tokens as messages are counted, without the factors of the printed count.
    :param excerpt_over: longer messages count as their first excerpt; ``None`` to count whole
        messages only.
    """
    tokens, priority, limit = scored.candidates.tokens, scored.priority, max(room, _LONGEST_READ)
    long = np.zeros(len(tokens), bool)
    if excerpt_over is not None:
        long = (tokens > excerpt_over) & (tokens <= limit)
    if long.any():
        priority = priority.copy()
        priority[long] *= FIRST
    total, count = len(tokens), 1_000
    while room > 0:
        by_priority = ranking.best(priority, count)
        whole = tokens[by_priority].astype(np.int64)
        sizes = np.where(long[by_priority], np.minimum(whole, _PASSAGE), whole)
        if room < _SMALL:
            small = sizes <= room
            by_priority, whole, sizes = by_priority[small], whole[small], sizes[small]
        kinds = _kinds(sizes)
        chosen: list[int] = []
        full = False
        for kind in range(_kinds(np.array([room]))[0] + 1):
            of_kind = kinds == kind
            enough = np.cumsum(sizes[of_kind]) <= _READ_AHEAD * room
            enough &= np.cumsum(whole[of_kind]) <= max(_MOST_READ, 2 * _READ_AHEAD * room)
            chosen += by_priority[of_kind][enough].tolist()
            full = full or (kind == 0 and not enough.all())
        if count >= total or full:
            return chosen
        count *= 10
    return []


def _kinds(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0 for small messages, 1 for those up to twice as large, 2 for the next doubling."""
    doubled = np.log2(np.maximum(sizes, _SMALL) / _SMALL)
    return np.ceil(doubled).astype(np.int64)


def unread(scored: Scored, pool: Sequence[Candidate], room: int) -> set[int]:
    """Return the ages of messages that were not read for filling because they are too large.

    They are not printed, but history may continue past them.
    """
    if not room:
        return set()
    own = np.flatnonzero(scored.candidates.own)
    large = np.flatnonzero(scored.candidates.tokens[own] > room)
    return set((len(own) - 1 - large).tolist()) - {each.age for each in pool}


def ages(found: Candidates, places: NDArray[np.intp]) -> list[int | None]:
    """Return how many messages of history's instance are newer than each given one.

    :returns: ``None`` for messages of other instances.
    """
    own = np.flatnonzero(found.own)
    older = own.searchsorted(places).tolist()
    is_own = found.own[places].tolist()
    return [len(own) - 1 - spot if here else None for spot, here in zip(older, is_own, strict=True)]
