"""Apply a filter to candidates after the whole scope was scored."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.storage.candidates import Candidates


def matching_positions(candidates: Candidates) -> NDArray[np.intp]:
    """Return the positions of the candidates that match the filter they were read with."""
    if candidates.matching is None:
        return np.arange(len(candidates.ids))
    return np.flatnonzero(candidates.matching)


def keep(scored: Scored, positions: NDArray[np.intp]) -> Scored:
    """Return some of the candidates with their scores in the whole scope.

    Postings are left out: they are not needed once the scores are known.

    :param positions: ascending.
    """
    if len(positions) == len(scored.candidates.ids):
        return scored
    candidates = scored.candidates
    ids = candidates.ids[positions]
    remaining = Candidates(
        ids=ids,
        created_at=candidates.created_at[positions],
        tokens=candidates.tokens[positions],
        terms=candidates.terms[positions],
        asks=candidates.asks[positions],
        own=candidates.own[positions],
        thread=candidates.thread[positions],
        loose=candidates.loose[positions],
        cosine=candidates.cosine[positions],
        by_id=np.argsort(ids, kind="stable"),
        postings=(),
        absent=0,
        passages=candidates.passages[positions],
    )
    return replace(
        scored,
        candidates=remaining,
        bm25=scored.bm25[positions],
        dates=scored.dates[positions],
        similarity=scored.similarity[positions],
        recency=scored.recency[positions],
        priority=scored.priority[positions],
        parts=None if scored.parts is None else scored.parts[:, positions],
    )
