"""Selecting the few greatest of many numbers gives the same result as sorting."""

import numpy as np
from each import each

from reservoir_cli.util.greatest import greatest


@each("size", [2, 63, 700, 20_000])
@each("different", [1, 3, 50, 10**6])
@each("ordered", [False, True])
def test_the_greatest_equal_those_of_sorting(size, different, ordered):
    values = np.random.default_rng(size).integers(0, different, size).astype(np.float32)
    if ordered:  # no sample is representative
        values.sort()
    for count in {1, size // 100 or 1, size // 2, size - 1}:
        threshold = np.sort(values)[size - count]
        assert greatest(values, count).tolist() == np.flatnonzero(values >= threshold).tolist()


def test_a_misleading_sample_does_not_change_the_result():
    values = np.zeros(10_000)
    values[::64] = 1  # exactly the sampled ones
    assert len(greatest(values, 100)) == 157
    assert len(greatest(values, 200)) == 10_000
