"""context.md §4: priority and recency (what makes a message similar is tested elsewhere)."""

import numpy as np
import pytest

from reservoir_cli import ranking


@pytest.mark.parametrize(
    ("rank", "score"),
    [(0, 1.0), (1, 1 / 2), (3, 1 / 3), (7, 1 / 4), (1_023, 1 / 11)],
    ids=lambda each: f"§4 recency {each}",
)
def test_recency_is_one_over_one_plus_the_logarithm_of_the_rank(rank, score):
    assert ranking.recency(np.array([rank]))[0] == pytest.approx(score)


def test_recency_falls_with_every_rank_and_never_to_nothing():
    scores = ranking.recency(np.arange(10_000))
    assert (np.diff(scores) < 0).all()
    assert scores[-1] > 0.05


@pytest.mark.parametrize(
    ("values", "stretched"),
    [
        pytest.param([2, 4, 3], [0, 1, 0.5], id="§4 mm to 0…1"),
        pytest.param([0, 0], [0, 0], id="§4 mm of equal values that are 0"),
        pytest.param([0.2, 0.2], [1, 1], id="§4 mm of other equal values"),
        pytest.param([-1, 1, 0], [0, 1, 0.5], id="§4 mm of negative cosines"),
        pytest.param([], [], id="§4 mm of nothing"),
    ],
)
def test_min_max_stretches_to_the_whole_scale(values, stretched):
    assert ranking.min_max(np.array(values, np.float32)) == pytest.approx(stretched)
