"""Apply a filter to candidates after the whole scope was scored."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.storage.candidates import Candidates


def passing(found: Candidates) -> NDArray[np.intp]:
    """Return the positions of the candidates that match the filter they were read with."""
    if found.matching is None:
        return np.arange(len(found.ids))
    return np.flatnonzero(found.matching)


def keep(scored: Scored, places: NDArray[np.intp]) -> Scored:
    """Return some of the candidates with their scores in the whole scope.

    Postings are left out: they are not needed once the scores are known.

    :param places: ascending.
    """
    if len(places) == len(scored.candidates.ids):
        return scored
    found = scored.candidates
    ids = found.ids[places]
    kept = Candidates(
        ids=ids,
        created_at=found.created_at[places],
        tokens=found.tokens[places],
        terms=found.terms[places],
        asks=found.asks[places],
        own=found.own[places],
        thread=found.thread[places],
        loose=found.loose[places],
        cosine=found.cosine[places],
        by_id=np.argsort(ids, kind="stable"),
        postings=(),
        absent=0,
        passages=found.passages[places],
    )
    return replace(
        scored,
        candidates=kept,
        bm25=scored.bm25[places],
        dates=scored.dates[places],
        similarity=scored.similarity[places],
        recency=scored.recency[places],
        priority=scored.priority[places],
        parts=None if scored.parts is None else scored.parts[:, places],
    )
