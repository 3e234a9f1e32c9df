"""Choose the messages worth reading for a context: those with a tier, pins and fillers.

A tier is recent, similar, synapse or older.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.context.candidate import Candidate, Tier
from reservoir_cli.context.choose import SelectionOptions, is_printable
from reservoir_cli.context.rank_messages import Inputs, Ranking
from reservoir_cli.context.window_constants import FIRST_SHARE
from reservoir_cli.messages import Filter, Role, Scope
from reservoir_cli.retrieval.ranking import Floats, Scored, best
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.search.candidates import Candidates
from reservoir_cli.storage.store import Store

#: Fillers are read for so many budgets and tokens: standing instructions may rank far below others.
_READ_AHEAD, _LEAST_READ = 4, 4_000
#: Tokens of a passage; of the longest message that is excerpted; and to read for a small budget.
_PASSAGE_TOKENS, _LONGEST_MESSAGE, _MOST_TOKENS = 100, 50_000, 200_000
_SMALL = 256  # a message with at most this many tokens is small
_ENOUGH = 0.4  # with ``enough``, messages of lower similarity are not recalled


class Wanted(NamedTuple):
    """The positions of the candidates worth reading."""

    positions: set[int]
    tiers: dict[int, Tier]  # the first tier that applies to a message, by its position
    pins: set[int]
    hidden: NDArray[np.bool_]  # shape (n,), whether it would be recent or similar but never appears


def find_wanted(inputs: Inputs, ranking: Ranking, options: SelectionOptions, room: int) -> Wanted:
    """Find the messages to read; the room is without the factors of the printed count."""
    settings, scored = inputs.settings, ranking.scored
    hidden, repeated = _find_unprintable(inputs, ranking, options)
    tiers = _assign_tiers(inputs, ranking, hidden)
    positions = {*tiers, *repeated, *find_fillers(scored, room, longest_whole(settings))}
    if settings.enough:
        positions = {
            position
            for position in positions
            if tiers.get(position) is Tier.RECENT or scored.similarity[position] >= _ENOUGH
        }
    pins = _find_pins(scored.candidates, inputs.store, ranking.scope)
    return Wanted(positions | pins, tiers, pins, hidden)


def want(ranking: Ranking, positions: NDArray[np.intp]) -> Wanted:
    """Return that exactly these messages are worth reading, each as similar."""
    tiers = dict.fromkeys(positions.tolist(), Tier.SIMILAR)
    return Wanted(set(tiers), tiers, set(), np.zeros(len(ranking.scored.candidates.ids), bool))


def longest_whole(settings: Settings) -> int | None:
    """Return the tokens above which a message is read for excerpts; ``None`` without excerpts."""
    return settings.excerpt_over if settings.excerpts == "auto" else None


def _find_pins(candidates: Candidates, store: Store, scope: Scope) -> set[int]:
    numbers = [key.id for key in store.find(scope, Filter(pinned=True))]
    positions, _ = candidates.positions(np.array(numbers, np.int64))
    return set(positions.tolist())


def find_fillers(scored: Scored, room: int, excerpt_over: int | None) -> list[int]:
    """Return positions of messages that could fill the room several times, by priority per size.

    Large messages do not displace small ones, so that more room never finds less; in very little
    room, only messages that fit are read.

    :param room: tokens as messages are counted, without the factors of the printed count.
    :param excerpt_over: longer messages count as their first excerpt; ``None`` for none.
    """
    tokens, priority, limit = scored.candidates.tokens, scored.priority, max(room, _LONGEST_MESSAGE)
    shortest = limit if excerpt_over is None else excerpt_over
    long = np.flatnonzero((tokens > shortest) & (tokens <= limit))
    if len(long):
        priority = priority.copy()
        priority[long] *= FIRST_SHARE
    count = 1_000
    while room > 0:
        by_priority = best(priority, count)
        are_all = len(by_priority) < count
        whole = tokens[by_priority].astype(np.int64)
        is_long = (whole > shortest) & (whole <= limit)
        sizes = np.where(is_long, np.minimum(whole, _PASSAGE_TOKENS), whole)
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
        if are_all or full:
            return chosen
        count *= 10
    return []


def _size_classes(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0 for small messages, 1 for those up to twice as large, 2 for the next doubling."""
    doubled = np.log2(np.maximum(sizes, _SMALL) / _SMALL)
    return np.ceil(doubled).astype(np.int64)


def find_passed(
    ranking: Ranking, hidden: NDArray[np.bool_], pool: Sequence[Candidate], room: int
) -> set[int]:
    """Return the ages of messages, never printed or too large, that history continues past."""
    turns = np.flatnonzero(ranking.turns)
    passed = hidden[turns]
    if room:
        passed = passed | (ranking.scored.candidates.tokens[turns] > room)
    ages = len(turns) - 1 - np.flatnonzero(passed)
    return set(ages.tolist()) - {candidate.age for candidate in pool}


def compute_ages(turns: NDArray[np.bool_], positions: NDArray[np.intp]) -> list[int | None]:
    """Return how many possible turns are newer than each given one; ``None`` for no turn."""
    turn_positions = np.flatnonzero(turns)
    older = turn_positions.searchsorted(positions).tolist()
    return [
        len(turn_positions) - 1 - older_count if is_turn else None
        for older_count, is_turn in zip(older, turns[positions].tolist(), strict=True)
    ]


def _assign_tiers(inputs: Inputs, ranking: Ranking, hidden: NDArray[np.bool_]) -> dict[int, Tier]:
    """Map the positions of candidates to the first tier that applies.

    Without a question no message is similar, and links are not followed.

    :param hidden: shape (n,), whether a message is never printed.
    """
    settings, scored, candidates = inputs.settings, ranking.scored, ranking.scored.candidates
    has_question = bool(inputs.request.query.strip())
    near = _best(scored.similarity, hidden, settings.semantic_context_size if has_question else 0)
    is_similar = np.nan_to_num(candidates.cosine[near], nan=-1) > settings.similar_cosine
    similar = dict(zip(near, is_similar.tolist(), strict=True))
    recent = set(_newest(candidates.own & ~hidden, settings.recent_context_size))
    seeds = sorted(int(candidates.ids[position]) for position in recent | similar.keys())
    depth = settings.synapse_depth if has_question else 0
    linked_ids = inputs.store.linked(seeds, depth, ranking.scope, settings.link_cosine)
    tiers = dict.fromkeys(similar, Tier.OLDER)
    linked, _ = candidates.positions(np.array(linked_ids, np.int64))
    tiers |= dict.fromkeys(linked[~hidden[linked]].tolist(), Tier.SYNAPSE)
    tiers |= {position: Tier.SIMILAR for position, passes in similar.items() if passes}
    return tiers | dict.fromkeys(recent, Tier.RECENT)


def _find_unprintable(
    inputs: Inputs, ranking: Ranking, options: SelectionOptions
) -> tuple[NDArray[np.bool_], list[int]]:
    """Find messages that would count as recent or similar but are never printed.

    :returns: shape (n,), whether a message is never printed; and the positions of messages that
        repeat the question, whose replies count.
    """
    query, settings = inputs.request.query, inputs.settings
    scored, candidates = ranking.scored, ranking.scored.candidates
    hidden, checked = np.zeros(len(candidates.ids), bool), np.zeros(len(candidates.ids), bool)
    repeated: list[int] = []
    while True:
        extra = 2 * int(np.count_nonzero(hidden))
        similar = settings.semantic_context_size if query.strip() else 0
        positions = {
            *_best(scored.similarity, hidden, similar + extra if similar else 0),
            *_newest(candidates.own & ~hidden, settings.recent_context_size + extra),
        }
        unchecked = np.array(
            [position for position in sorted(positions) if not checked[position]], np.intp
        )
        checked[unchecked] = True
        rows = inputs.store.by_id(candidates.ids[unchecked].tolist(), ranking.scope)
        unprintable = [row for row in rows if not is_printable(row, query, options)]
        if not unprintable:
            return hidden, repeated
        unprintable_positions, _ = candidates.positions(
            np.array([row.id for row in unprintable], np.int64)
        )
        hidden[unprintable_positions] = True
        repeated += [
            int(position)
            for position, row in zip(unprintable_positions, unprintable, strict=True)
            if row.role is not Role.SYSTEM
        ]


def _best(scores: Floats, hidden: NDArray[np.bool_], count: int) -> list[int]:
    ranked = best(scores, count + int(np.count_nonzero(hidden)) if count else 0)
    return [int(position) for position in ranked[~hidden[ranked]][:count]]


def _newest(mask: NDArray[np.bool_], count: int) -> list[int]:
    positions = np.flatnonzero(mask)
    return [int(position) for position in positions[max(0, len(positions) - count) :]]
