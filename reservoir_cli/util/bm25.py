"""The parts of BM25 that ranking and keyword search share. Pure numpy.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

K1, B = 1.2, 0.75


def rarity(total: int, holding: float) -> float:
    """Return the inverse document frequency of a term, never below 1e-6.

    :param total: messages of the scope.
    :param holding: those that hold the term.
    """
    return max(float(np.log((total - holding + 0.5) / (holding + 0.5))), 1e-6)


def norms(lengths: NDArray[np.number]) -> Floats:
    """Return what a message's length adds to the counts of its terms.

    :param lengths: words of each message, shape (n,).
    """
    return np.asarray(K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-9)))


def saturated(counts: NDArray[np.number], length_norms: Floats) -> Floats:
    """Return the gain of so many occurrences of a term, below K1 + 1.

    :param length_norms: of the same messages, by :func:`norms`.
    """
    return np.asarray((K1 + 1) * counts / (counts + length_norms))
