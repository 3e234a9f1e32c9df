"""Assign tiers to candidates, and choose the messages worth reading for a context."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.context.candidate import Candidate, Tier
from reservoir_cli.context.excerpts import FIRST_SHARE
from reservoir_cli.context.gather_candidates import Inputs, Ranking
from reservoir_cli.context.pins import are_pins_kept
from reservoir_cli.context.selection import Rules, is_printable
from reservoir_cli.messages import Role, Scope
from reservoir_cli.retrieval import ranking
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.candidates import Candidates
from reservoir_cli.storage.filter_conditions import Filter
from reservoir_cli.storage.store import Store

#: When filling, messages are read until they could fill the budget this many times, and have at
#: least this many tokens: standing instructions may rank far below the rest until they are read.
_READ_AHEAD, _LEAST_READ = 4, 4_000
#: Approximate tokens of a passage; the longest message that is read for excerpts; and the most
#: tokens that are read for a small budget.
_PASSAGE_TOKENS, _LONGEST_MESSAGE, _MOST_TOKENS = 100, 50_000, 200_000
#: A message with at most this many tokens is small.
_SMALL = 256
#: With ``enough``, messages of lower similarity are not recalled.
_ENOUGH = 0.4


class Wanted(NamedTuple):
    """The positions of the candidates worth reading.

    :param positions: all of them.
    :param tiers: the first tier that applies to a message, by its position.
    :param pins: those of pinned messages.
    """

    positions: set[int]
    tiers: dict[int, Tier]
    pins: set[int]


def find_wanted(inputs: Inputs, ranking: Ranking, rules: Rules, room: int) -> Wanted:
    """Find the messages to read.

    :param room: tokens to fill with other messages, without the factors of the printed count.
    """
    request, settings, store = inputs.request, inputs.settings, inputs.store
    scored, scope, query = ranking.scored, ranking.scope, request.query
    hidden, repeated = find_unprintable(scored, query, settings, rules, store, scope)
    tiers = assign_tiers(scored, bool(query.strip()), settings, store, scope, hidden)
    if ranking.silent:
        tiers = {position: tier for position, tier in tiers.items() if tier is Tier.RECENT}
    positions = {*tiers, *repeated, *find_fillers(scored, room, longest_whole(settings))}
    if settings.enough:
        positions = {position for position in positions if _is_enough(scored, tiers, position)}
    pins = set[int]()
    if are_pins_kept(request, nothing_fits=ranking.silent):
        pins = _find_pins(scored.candidates, store, scope)
    return Wanted(positions | pins, tiers, pins)


def longest_whole(settings: Settings) -> int | None:
    """Return the tokens above which a message is read for excerpts; ``None`` without excerpts."""
    return settings.excerpt_over if settings.excerpts == "auto" else None


def _is_enough(scored: Scored, tiers: dict[int, Tier], position: int) -> bool:
    """Return whether a message is recent, or similar enough to be recalled."""
    return tiers.get(position) is Tier.RECENT or bool(scored.similarity[position] >= _ENOUGH)


def _find_pins(candidates: Candidates, store: Store, scope: Scope) -> set[int]:
    """Return the positions of pinned messages."""
    numbers = [key.id for key in store.find(scope, Filter(pinned=True))]
    positions, _ = candidates.places(np.array(numbers, np.int64))
    return set(positions.tolist())


def find_unprintable(
    scored: Scored, query: str, settings: Settings, rules: Rules, store: Store, scope: Scope
) -> tuple[NDArray[np.bool_], list[int]]:
    """Find messages that would count as recent or similar but are never printed.

    Only roles and texts of messages that may count are read, and more of them the more were
    skipped.

    :returns: shape (n,), whether a message is never printed; and the positions of messages that
        repeat the question, whose replies count.
    """
    candidates = scored.candidates
    hidden, checked = np.zeros(len(candidates.ids), bool), np.zeros(len(candidates.ids), bool)
    repeated: list[int] = []
    while True:
        extra = 2 * int(hidden.sum())
        similar = settings.semantic_context_size if query.strip() else 0
        positions = {
            *_best(scored.similarity, hidden, similar + extra if similar else 0),
            *_newest(candidates.own & ~hidden, settings.recent_context_size + extra),
        }
        unchecked = np.array(
            [position for position in sorted(positions) if not checked[position]], np.intp
        )
        checked[unchecked] = True
        rows = store.by_id(candidates.ids[unchecked].tolist(), scope)
        unprintable = [row for row in rows if not is_printable(row, query, rules)]
        if not unprintable:
            return hidden, repeated
        unprintable_positions, _ = candidates.places(
            np.array([row.id for row in unprintable], np.int64)
        )
        hidden[unprintable_positions] = True
        repeated += [
            int(position)
            for position, row in zip(unprintable_positions, unprintable, strict=True)
            if row.role is not Role.SYSTEM
        ]


def _best(scores: ranking.Floats, hidden: NDArray[np.bool_], count: int) -> list[int]:
    """Return the positions of the best scores that are not hidden, the best first."""
    best = ranking.best(scores, count + int(hidden.sum()) if count else 0)
    return [int(position) for position in best[~hidden[best]][:count]]


def _newest(wanted: NDArray[np.bool_], count: int) -> list[int]:
    """Return the positions of the newest messages that are wanted."""
    positions = np.flatnonzero(wanted)
    return [int(position) for position in positions[max(0, len(positions) - count) :]]


def assign_tiers(
    scored: Scored,
    has_question: bool,
    settings: Settings,
    store: Store,
    scope: Scope,
    hidden: NDArray[np.bool_],
) -> dict[int, Tier]:
    """Map the positions of candidates to the first tier that applies.

    :param has_question: whether there is a question; without one no message is similar, and links
        of recent messages are not followed.
    :param hidden: shape (n,), whether a message is never printed.
    """
    candidates = scored.candidates
    best = _best(scored.similarity, hidden, settings.semantic_context_size if has_question else 0)
    is_similar = np.nan_to_num(candidates.cosine[best], nan=-1) > settings.similar_cosine
    similar = {
        int(position): bool(passes) for position, passes in zip(best, is_similar, strict=True)
    }
    recent = set(_newest(candidates.own & ~hidden, settings.recent_context_size))
    seeds = sorted(int(candidates.ids[position]) for position in recent | similar.keys())
    linked_ids = store.linked(seeds, settings.synapse_depth, scope) if has_question else []
    tiers = dict.fromkeys(similar, Tier.OLDER)
    linked, _ = candidates.places(np.array(linked_ids, np.int64))
    tiers |= dict.fromkeys(
        (int(position) for position in linked if not hidden[position]), Tier.SYNAPSE
    )
    tiers |= dict.fromkeys(
        (position for position, passes in similar.items() if passes), Tier.SIMILAR
    )
    return tiers | dict.fromkeys(recent, Tier.RECENT)


def find_fillers(scored: Scored, room: int, excerpt_over: int | None) -> list[int]:
    """Return positions of messages that could fill the room several times, by priority per size.

    Large messages do not displace small ones, so that more room never finds less; in very little
    room, only messages that fit are read.

    :param room: tokens as messages are counted, without the factors of the printed count.
    :param excerpt_over: longer messages count as their first excerpt; ``None`` to count whole
        messages only.
    """
    tokens, priority, limit = scored.candidates.tokens, scored.priority, max(room, _LONGEST_MESSAGE)
    long = np.zeros(len(tokens), bool)
    if excerpt_over is not None:
        long = (tokens > excerpt_over) & (tokens <= limit)
    if long.any():
        priority = priority.copy()
        priority[long] *= FIRST_SHARE
    total, count = len(tokens), 1_000
    while room > 0:
        by_priority = ranking.best(priority, count)
        whole = tokens[by_priority].astype(np.int64)
        sizes = np.where(long[by_priority], np.minimum(whole, _PASSAGE_TOKENS), whole)
        if room < _SMALL:
            small = sizes <= room
            by_priority, whole, sizes = by_priority[small], whole[small], sizes[small]
        size_classes = _size_classes(sizes)
        chosen: list[int] = []
        full = False
        for size_class in range(_size_classes(np.array([room]))[0] + 1):
            in_class = size_classes == size_class
            enough = np.cumsum(sizes[in_class]) <= max(_READ_AHEAD * room, _LEAST_READ)
            enough &= np.cumsum(whole[in_class]) <= max(_MOST_TOKENS, 2 * _READ_AHEAD * room)
            chosen += by_priority[in_class][enough].tolist()
            full = full or (size_class == 0 and not enough.all())
        if count >= total or full:
            return chosen
        count *= 10
    return []


def _size_classes(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0 for small messages, 1 for those up to twice as large, 2 for the next doubling."""
    doubled = np.log2(np.maximum(sizes, _SMALL) / _SMALL)
    return np.ceil(doubled).astype(np.int64)


def find_too_large(scored: Scored, pool: Sequence[Candidate], room: int) -> set[int]:
    """Return the ages of messages that were not read for filling because they are too large.

    They are not printed, but history may continue past them.
    """
    if not room:
        return set()
    own = np.flatnonzero(scored.candidates.own)
    large = np.flatnonzero(scored.candidates.tokens[own] > room)
    return set((len(own) - 1 - large).tolist()) - {candidate.age for candidate in pool}


def compute_ages(candidates: Candidates, positions: NDArray[np.intp]) -> list[int | None]:
    """Return how many messages of history's instance are newer than each given one.

    :returns: ``None`` for messages of other instances.
    """
    own = np.flatnonzero(candidates.own)
    older = own.searchsorted(positions).tolist()
    is_own = candidates.own[positions].tolist()
    return [
        len(own) - 1 - older_count if is_own_message else None
        for older_count, is_own_message in zip(older, is_own, strict=True)
    ]
