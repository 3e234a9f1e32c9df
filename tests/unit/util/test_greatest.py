"""The few greatest of many numbers, the same as by sorting all of them."""

import numpy as np
import pytest

from reservoir_cli.util.greatest import greatest


@pytest.mark.parametrize("size", [2, 63, 700, 20_000])
@pytest.mark.parametrize("different", [1, 3, 50, 10**6])
@pytest.mark.parametrize("ordered", [False, True])
def test_the_greatest_are_those_that_sorting_puts_last(size: int, different: int, ordered: bool):
    values = np.random.default_rng(size).integers(0, different, size).astype(np.float32)
    if ordered:  # no sample of them is like the whole
        values.sort()
    for count in {1, size // 100 or 1, size // 2, size - 1}:
        least = np.sort(values)[size - count]
        assert greatest(values, count).tolist() == np.flatnonzero(values >= least).tolist()


def test_a_sample_that_misleads_is_not_believed():
    values = np.zeros(10_000)
    values[::64] = 1  # just those that are looked at
    assert len(greatest(values, 100)) == 157
    assert len(greatest(values, 200)) == 10_000
