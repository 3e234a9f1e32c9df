"""Find the few greatest of many numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Of so many numbers one is looked at to guess which are great enough.
_SAMPLED = 64


def greatest(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Return the places of the greatest values, ascending, with all that equal the least of them.

    :param values: shape (n,), without NaN.
    :param count: 0 < count < n.
    """
    import numpy as np

    places = _guessed(values, count)
    if len(places) < count:
        places = np.arange(len(values))
    few = values[places]
    least = np.partition(few, len(few) - count)[len(few) - count]
    chosen: NDArray[np.intp] = places[few >= least]
    return chosen


def _guessed(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Return the places of values above a bound; with luck they are few and not too few."""
    import numpy as np

    sample = values[::_SAMPLED]
    rank = 2 * count // _SAMPLED + 8
    if rank >= len(sample):
        return np.zeros(0, np.intp)
    return np.flatnonzero(values >= np.partition(sample, len(sample) - rank)[len(sample) - rank])
