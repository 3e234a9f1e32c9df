"""How well each message serves the question: similarity, recency, priority. Pure numpy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.window import Candidates, Scored

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

COSINE_SHARE, BM25_SHARE = 0.6, 0.4


def score(candidates: Candidates, similarity_weight: float, recency_weight: float) -> Scored:
    """Priority = similarity weight · similarity + recency weight · recency."""
    alike = similarity(candidates.cosine, candidates.bm25)
    newest_first = np.arange(len(candidates.ids))[::-1]
    recent = recency(newest_first)
    return Scored(candidates, alike, recent, similarity_weight * alike + recency_weight * recent)


def similarity(cosine: NDArray[np.float32], bm25: NDArray[np.float32]) -> Floats:
    """Meaning and words in one number, relative to the best of the scope.

    min–max of 0.6 · min–max(cosine) + 0.4 · min–max(BM25). A message without a vector counts
    as the least similar by meaning, and takes part by its words alone.

    :param cosine: shape (n,), NaN where there is no vector.
    :param bm25: shape (n,), 0 where no word is found.
    :returns: shape (n,), in 0…1.
    """
    meaning = np.zeros(len(cosine))
    known = ~np.isnan(cosine)
    meaning[known] = min_max(cosine[known])
    return min_max(COSINE_SHARE * meaning + BM25_SHARE * min_max(bm25))


def min_max(values: NDArray[Any]) -> Floats:
    """Stretch values to 0…1; of equal values, 0 if they are 0, else 1."""
    if not len(values):
        return np.zeros(0)
    wide = values.astype(np.float64)
    low, high = wide.min(), wide.max()
    if low == high:
        return np.zeros(len(wide)) if high == 0 else np.ones(len(wide))
    return np.asarray((wide - low) / (high - low))


def recency(ranks: NDArray[np.int64]) -> Floats:
    """Score how recent messages are, 1 for the newest.

    Heavy-tailed in rank, 1/(1 + log2(1 + rank)), so that an old message keeps a chance
    against the newest.

    :param ranks: shape (n,), 0 for the newest message of the scope.
    :returns: shape (n,), in (0, 1].
    """
    return np.asarray(1.0 / (1.0 + np.log2(1.0 + ranks)))
