"""The parts of BM25 that ranking and keyword search share, of numbers and of arrays alike.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
"""

import math
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_Value = TypeVar("_Value", float, "Floats")

K1, B = 1.2, 0.75


def rarity(total: int, holding: float) -> float:
    """Return the inverse document frequency of a term, never below 1e-6.

    :param total: messages of the scope.
    :param holding: those that hold the term.
    """
    return max(math.log((total - holding + 0.5) / (holding + 0.5)), 1e-6)


def norm(length: _Value, mean: float) -> _Value:
    """Return what a message's length adds to the counts of its terms.

    :param length: words of a message.
    :param mean: words of the messages of the scope.
    """
    return K1 * (1 - B + B * length / max(mean, 1e-9))


def saturated(count: _Value, norm: _Value) -> _Value:
    """Return the gain of so many occurrences of a term, below K1 + 1.

    :param norm: of the same message, by :func:`norm`.
    """
    return (K1 + 1) * count / (count + norm)
