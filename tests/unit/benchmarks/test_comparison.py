"""The rankings that benchmarks compare; their formula must equal that of the program."""

from contextlib import closing

import numpy as np
import pytest
import sets
from asking import Asker
from each import each
from hypothesis import given
from hypothesis import strategies as st
from rankings import (
    PARTS,
    RANKINGS,
    Index,
    around,
    best_within,
    best_within_tokens,
    context_bm25,
    mean_within,
)
from sets import Collection, Question
from stores import Stores
from vectors import CachedEmbedder

values = st.lists(st.floats(0, 1), min_size=1, max_size=25)


@given(values, st.integers(1, 12))
def test_the_best_within_reach_equals_the_maximum_of_the_slice(scores, reach):
    best = best_within(np.array(scores), reach)
    assert best.tolist() == [
        max(scores[max(0, index - reach) : index + reach + 1]) for index in range(len(scores))
    ]


@given(values, st.integers(1, 12))
def test_the_mean_within_reach_equals_the_mean_of_the_slice(scores, reach):
    means = mean_within(np.array(scores), reach)
    assert means == pytest.approx(
        [np.mean(scores[max(0, index - reach) : index + reach + 1]) for index in range(len(scores))]
    )


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 90)), min_size=1), st.integers(1, 200))
def test_reach_in_tokens_counts_the_messages_between(pairs, reach):
    scores, costs = (np.array(column) for column in zip(*pairs, strict=True))
    best = best_within_tokens(scores, costs, reach)
    for index in range(len(pairs)):
        near = [
            other
            for other in range(len(pairs))
            if abs(other - index) <= 1
            or costs[min(index, other) + 1 : max(index, other)].sum() < reach
        ]
        assert best[index] == max(scores[near])


def test_full_text_search_counts_stems_and_scores_messages():
    texts = ["painting the door", "a painted wall, painted twice", "nothing"]
    with closing(Index(texts)) as index:
        assert index.counts("paint door").tolist() == [[1, 0, 0], [1, 2, 0]]
        scores = index.scores("paint door")
        assert scores[2] == 0
        assert (scores[:2] > 0).all()
        assert index.scores("").tolist() == [0, 0, 0]


@pytest.fixture(scope="module")
def question_rows(embedder, tmp_path_factory):
    """Return questions about two conversations with long answers, one of which names a month."""
    messages = [
        message
        for name in ("05-knee", "09-garden")
        for message in sets.conversation(
            (sets.LONG_ANSWERS / f"{name}.md").read_text(encoding="utf-8"), name
        )
    ]
    questions = ["Which tomatoes never get black bottoms?", "What did I ask about in May 2026?"]
    folder = tmp_path_factory.mktemp("vectors")
    cached = CachedEmbedder(embedder, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        with Stores([Collection("here", tuple(messages), ())], cached, folder, {}) as stores:
            asker = Asker(stores, cached)
            yield [asker.rows(Question("here", "here", text, frozenset("1"))) for text in questions]


@pytest.mark.parametrize("number", [0, 1])
def test_the_formula_of_the_benchmark_equals_the_programs(question_rows, number):
    rows = question_rows[number]
    assert context_bm25(rows) == pytest.approx(rows.bm25, abs=1e-6)
    assert around(rows, words=context_bm25(rows)) == pytest.approx(rows.similarity, abs=1e-6)
    assert (rows.dates > 0).any() == (number == 1)


@each("name", [*RANKINGS, *PARTS])
def test_every_ranking_gives_each_message_a_number(question_rows, name):
    ranking = {**RANKINGS, **PARTS}[name]
    scores = ranking(question_rows[0])
    assert scores.shape == question_rows[0].costs.shape
    assert np.isfinite(scores).all()
