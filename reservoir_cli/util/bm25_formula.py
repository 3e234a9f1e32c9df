"""The parts of BM25 that ranking and keyword search share, for numbers and for arrays.

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
    """Return the inverse document frequency of a term, at least 1e-6."""
    return max(math.log((total - holding + 0.5) / (holding + 0.5)), 1e-6)


def norm(length: _Value, mean: float) -> _Value:
    """Return the length normalisation of a message, which is added to its term counts."""
    return K1 * (1 - B + B * length / max(mean, 1e-9))


def saturate(count: _Value, norm: _Value) -> _Value:
    """Return the saturated weight of a term's count, below K1 + 1."""
    return (K1 + 1) * count / (count + norm)
