"""Find the few greatest values of a large array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SAMPLING_STEP = 64  #: One value in this many is sampled to guess a lower bound.


def greatest(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Return the indices of the greatest values, ascending, including all ties with the least.

    :param values: shape (n,), without NaN.
    :param count: 0 < count < n.
    """
    import numpy as np

    indices = _guess_candidates(values, count)
    if len(indices) < count:
        indices = np.arange(len(values))
    candidates = values[indices]
    least = np.partition(candidates, len(candidates) - count)[len(candidates) - count]
    chosen: NDArray[np.intp] = indices[candidates >= least]
    return chosen


def _guess_candidates(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Return the indices of values above a bound guessed from a sample; may be too few."""
    import numpy as np

    sample = values[::_SAMPLING_STEP]
    rank = 2 * count // _SAMPLING_STEP + 8
    if rank >= len(sample):
        return np.zeros(0, np.intp)
    return np.flatnonzero(values >= np.partition(sample, len(sample) - rank)[len(sample) - rank])
