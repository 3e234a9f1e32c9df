"""Store vectors as int8 codes: the only form of a vector that a store keeps.

A vector is its scale times its codes, and keeps its length. Scales are rounded to 17 bits, so that
this product is exact in float32: converting such a vector to codes again changes nothing, whichever
store it is in. The cosines differ from those of the original vectors by less than 0.003.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_GREATEST = 127 * 128 + 63  #: The greatest number that two codes of a question can hold.
#: The bits of a float32 that a scale does not use: it has 17 of the 24 significant ones.
_UNUSED = 0x7F


def quantize(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Convert vectors to int8 codes and their scales.

    :param vectors: shape (n, dimensions).
    :returns: scales, shape (n,), and codes, shape (n, dimensions).
    """
    import numpy as np

    exact = np.asarray(vectors, np.float64)
    steps = np.abs(exact).max(axis=1, initial=0.0) / 127
    codes = np.rint(exact / np.where(steps > 0, steps, 1)[:, None])
    lengths = np.linalg.norm(codes, axis=1)
    scales = np.linalg.norm(exact, axis=1) / np.where(lengths > 0, lengths, 1)
    bits = scales.astype(np.float32).view(np.uint32) + np.uint32(_UNUSED // 2 + 1)
    rounded = (bits & np.uint32(0xFFFFFFFF ^ _UNUSED)).view(np.float32)
    return rounded, codes.astype(np.int8)


def restore(scales: NDArray[np.float32], codes: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return vectors from their codes, shape (n, dimensions)."""
    import numpy as np

    vectors: NDArray[np.float32] = codes * scales.astype(np.float32)[:, None]
    return vectors


def round_to_codes(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors as a store keeps them, shape (n, dimensions)."""
    return restore(*quantize(vectors))


class Queries(NamedTuple):
    """The vectors of a question as whole numbers: step · (128 · high + low).

    Two codes are nearly as exact as a float32: the cosines differ by less than 0.0001.

    :param codes: int8, shape (2 · vectors, dimensions): all high ones, then all low ones.
    :param steps: float32, shape (vectors,).
    """

    codes: NDArray[np.int8]
    steps: NDArray[np.float32]

    def restore(self) -> NDArray[np.float32]:
        """Return the vectors, shape (vectors, dimensions)."""
        import numpy as np

        high, low = np.split(self.codes.astype(np.float32), 2)
        vectors: NDArray[np.float32] = (128 * high + low) * self.steps[:, None]
        return vectors


def encode_queries(vectors: NDArray[np.float32]) -> Queries:
    """Return the codes of a question's vectors, shape (vectors, dimensions)."""
    import numpy as np

    steps = np.maximum(np.abs(vectors).max(axis=1), 1e-30) / _GREATEST
    numbers = np.rint(vectors / steps[:, None])
    high = np.rint(numbers / 128)
    return Queries(np.concatenate([high, numbers - 128 * high]).astype(np.int8), steps)
