"""Assign tiers to candidates: recent, similar, synapse, older."""

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.context.candidate import Tier
from reservoir_cli.context.choose import SelectionOptions, is_printable
from reservoir_cli.messages import Role, Scope
from reservoir_cli.retrieval import ranking
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.store import Store


def assign_tiers(
    scored: Scored,
    has_question: bool,
    settings: Settings,
    store: Store,
    scope: Scope,
    hidden: NDArray[np.bool_],
) -> dict[int, Tier]:
    """Map the positions of candidates to the first tier that applies.

    :param has_question: without one no message is similar, and links are not followed.
    :param hidden: shape (n,), whether a message is never printed.
    """
    candidates = scored.candidates
    best = _best(scored.similarity, hidden, settings.semantic_context_size if has_question else 0)
    is_similar = np.nan_to_num(candidates.cosine[best], nan=-1) > settings.similar_cosine
    similar = dict(zip(best, is_similar.tolist(), strict=True))
    recent = set(_newest(candidates.own & ~hidden, settings.recent_context_size))
    seeds = sorted(int(candidates.ids[position]) for position in recent | similar.keys())
    depth = settings.synapse_depth if has_question else 0
    linked_ids = store.linked(seeds, depth, scope, settings.link_cosine)
    tiers = dict.fromkeys(similar, Tier.OLDER)
    linked, _ = candidates.places(np.array(linked_ids, np.int64))
    tiers |= dict.fromkeys(linked[~hidden[linked]].tolist(), Tier.SYNAPSE)
    tiers |= {position: Tier.SIMILAR for position, passes in similar.items() if passes}
    return tiers | dict.fromkeys(recent, Tier.RECENT)


def find_unprintable(
    scored: Scored,
    query: str,
    settings: Settings,
    options: SelectionOptions,
    store: Store,
    scope: Scope,
) -> tuple[NDArray[np.bool_], list[int]]:
    """Find messages that would count as recent or similar but are never printed.

    :returns: shape (n,), whether a message is never printed; and the positions of messages that
        repeat the question, whose replies count.
    """
    candidates = scored.candidates
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
        rows = store.by_id(candidates.ids[unchecked].tolist(), scope)
        unprintable = [row for row in rows if not is_printable(row, query, options)]
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
    best = ranking.best(scores, count + int(np.count_nonzero(hidden)) if count else 0)
    return [int(position) for position in best[~hidden[best]][:count]]


def _newest(wanted: NDArray[np.bool_], count: int) -> list[int]:
    positions = np.flatnonzero(wanted)
    return [int(position) for position in positions[max(0, len(positions) - count) :]]
