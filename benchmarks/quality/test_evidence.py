"""How benchmarks count: packing into a budget, and how sure a mean is."""

import numpy as np
import pytest
from evidence import Recall, best_first, figures, interval, taken
from hypothesis import given
from hypothesis import strategies as st
from vectors import CachedEmbedder

costs = st.lists(st.integers(1, 50), min_size=1, max_size=30)


@given(costs, st.integers(0, 300))
def test_what_is_taken_fits_and_nothing_left_out_would(each, budget):
    order = np.arange(len(each))
    kept = taken(order, np.array(each), budget)
    spent = 0
    for place, cost in enumerate(each):
        assert (place in kept) == (cost <= budget - spent)
        spent += cost if place in kept else 0


def test_ties_go_to_the_newest():
    assert best_first(np.array([0.5, 0.9, 0.5])).tolist() == [1, 2, 0]


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_an_interval_holds_its_mean(scores):
    low, high = interval(np.array(scores))
    assert low - 1e-9 <= np.mean(scores) <= high + 1e-9


def test_a_difference_that_every_question_shows_is_above_zero():
    before = np.random.default_rng(0).random(50)
    assert interval(before + 0.01 - before)[0] > 0


def test_all_evidence_counts_a_budget_only_if_nothing_is_missing():
    recall = Recall(np.array([[0.5, 1.0], [0.0, 1.0]]), np.empty(0))
    found = figures(recall, (250, 500))
    assert found["all_evidence"] == pytest.approx(0.5)
    assert found["score"] == pytest.approx(0.625)
    assert found["by_budget"] == {"250": 0.25, "500": 1.0}


class Mute:
    """A model that may be named, but not asked."""

    def __init__(self, model):
        self.name, self.model_id = model.name, model.model_id
        self.dimensions, self.engine = model.dimensions, model.engine

    def encode_query(self, text):
        raise AssertionError(text)

    def encode_documents(self, texts):
        raise AssertionError(texts)


def test_a_vector_is_asked_for_once_and_stays_the_same(fake_embedder, tmp_path):
    first = CachedEmbedder(fake_embedder, tmp_path)
    texts = ["one", "two", "one"]
    documents, question = first.encode_documents(texts), first.encode_query("one?")
    again = CachedEmbedder(Mute(fake_embedder), tmp_path)
    assert (again.encode_documents(texts) == documents).all()
    assert (again.encode_query("one?") == question).all()
    assert (documents == fake_embedder.encode_documents(texts)).all()


def test_questions_and_documents_of_the_same_words_are_kept_apart(fake_embedder, tmp_path):
    CachedEmbedder(fake_embedder, tmp_path).encode_documents(["one"])
    with pytest.raises(AssertionError):
        CachedEmbedder(Mute(fake_embedder), tmp_path).encode_query("one")
