"""Passages are compared by codes almost as exactly as by float32 numbers."""

import numpy as np
import pytest
from each import each

from reservoir_cli.storage.search.quantize import encode_queries
from reservoir_cli.storage.sqlite import blocks as vector_blocks
from reservoir_cli.storage.sqlite import vector_scan
from reservoir_cli.storage.sqlite.vector_scan import Blocks, _compare, _to_cosines

DIMENSIONS = 384


def blocks_of(lengths: list[int], scale: float) -> Blocks:
    """Return blocks whose passages all have vectors and the same scale."""
    values = {"scales": scale, "flags": vector_blocks.EMBEDDED}
    return Blocks(
        [
            (
                number,
                "i",
                length,
                *(
                    np.full(length, values.get(name, 1), vector_blocks.COLUMNS[name]).tobytes()
                    for name in vector_scan.HEAD
                ),
            )
            for number, length in enumerate(lengths)
        ]
    )


def directions(count: int, seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSIONS))
    return (vectors / np.linalg.norm(vectors, axis=1)[:, None]).astype(np.float32)


@each("vectors", [1, 2])
@each("lengths", [[], [1], [0], [256, 0, 256, 3]])
def test_cosines_by_codes(lengths, vectors):
    queries = directions(vectors, 1)
    passages = directions(sum(lengths), 2)
    scale = np.abs(passages).max(initial=0.1) / 127
    codes = np.rint(passages / scale).astype(np.int8)
    split = np.split(codes, np.cumsum(lengths)[:-1]) if lengths else []
    coded = encode_queries(queries)
    cosines = _to_cosines(blocks_of(lengths, scale), _compare(split, coded), coded)
    assert cosines.shape == (sum(lengths), vectors)
    exact = (codes * scale) @ queries.astype(np.float64).T
    np.testing.assert_allclose(cosines, exact, atol=3e-5)


@pytest.mark.parametrize("least", [1.0, 1e-6, 0.0])
def test_the_codes_of_a_vector(least):
    vector = np.array([[least, -least / 3, 0.0, least / 7]], np.float32)
    codes, steps = encode_queries(vector)
    high, low = codes.astype(np.float64)
    np.testing.assert_allclose(steps * (128 * high + low), vector[0], atol=least / 30_000)


def test_a_passage_without_a_vector_has_no_cosine():
    blocks = blocks_of([2], 0.01)
    blocks.is_empty[1] = True
    coded = encode_queries(directions(1, 1))
    cosines = _to_cosines(blocks, _compare([np.ones((2, DIMENSIONS), np.int8)], coded), coded)
    assert np.isnan(cosines[:, 0]).tolist() == [False, True]
