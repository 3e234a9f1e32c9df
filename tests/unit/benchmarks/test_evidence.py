"""Counting in benchmarks: filling a budget, and confidence intervals of means."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace

import asking
import numpy as np
import pytest
import run
from asking import Asker
from evidence import (
    Recall,
    answering_passage,
    best_first,
    figures,
    fill_budget,
    gate_curve,
    interval,
    is_covered,
    lost_at_larger,
)
from hypothesis import given
from hypothesis import strategies as st
from protocols import grow
from run import choose_questions
from sets import Collection, Question
from stores import Stores
from vectors import CachedEmbedder

from reservoir_cli import Message

TIME = datetime(2024, 1, 1, tzinfo=UTC)
_AT = "2024-01-01T00:0{}:00+00:00"
SCOPE = {
    "name": "s",
    "messages": [
        {
            "role": role,
            "content": text,
            "at": _AT.format(index),
            "conv": "c",
            "trace": "t",
            "sid": str(index),
        }
        for index, (role, text) in enumerate(
            [("user", "Where is the key?"), ("assistant", "The key is under the red flowerpot.")]
        )
    ],
    "questions": [{"q": "Under what is the key?", "ev": ["1"], "answer": "the flowerpot"}],
}

costs = st.lists(st.integers(1, 50), min_size=1, max_size=30)


@given(costs, st.integers(0, 300))
def test_taken_messages_fit_and_no_other_would(costs, budget):
    order = np.arange(len(costs))
    kept = fill_budget(order, np.array(costs), budget)
    spent = 0
    for index, cost in enumerate(costs):
        assert (index in kept) == (cost <= budget - spent)
        spent += cost if index in kept else 0


def test_of_equal_scores_the_newest_is_taken():
    assert best_first(np.array([0.5, 0.9, 0.5])).tolist() == [1, 2, 0]


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_an_interval_contains_its_mean(scores):
    low, high = interval(np.array(scores))
    assert low - 1e-9 <= np.mean(scores) <= high + 1e-9


def test_a_difference_in_every_question_is_significant():
    before = np.random.default_rng(0).random(50)
    assert interval(before + 0.01 - before)[0] > 0


def test_all_evidence_counts_a_budget_only_if_nothing_is_missing():
    recall = Recall(np.array([[0.5, 1.0], [0.0, 1.0]]), np.empty(0))
    result = figures(recall, (250, 500))
    assert result["all_evidence"] == pytest.approx(0.5)
    assert result["score"] == pytest.approx(0.625)
    assert result["by_budget"] == {"250": 0.25, "500": 1.0}


class Mute:
    """A model that has a name but must not be called."""

    def __init__(self, model):
        self.name, self.model_id = model.name, model.model_id
        self.dimensions, self.engine = model.dimensions, model.engine

    def encode_query(self, text):
        raise AssertionError(text)

    def encode_documents(self, texts):
        raise AssertionError(texts)


def test_an_embedding_is_computed_once(fake_embedder, tmp_path):
    first = CachedEmbedder(fake_embedder, tmp_path)
    texts = ["one", "two", "one"]
    documents, question = first.encode_documents(texts), first.encode_query("one?")
    second = CachedEmbedder(Mute(fake_embedder), tmp_path)
    assert (second.encode_documents(texts) == documents).all()
    assert (second.encode_query("one?") == question).all()
    assert (documents == fake_embedder.encode_documents(texts)).all()


def test_questions_and_documents_of_the_same_words_are_kept_apart(fake_embedder, tmp_path):
    CachedEmbedder(fake_embedder, tmp_path).encode_documents(["one"])
    with pytest.raises(AssertionError):
        CachedEmbedder(Mute(fake_embedder), tmp_path).encode_query("one")


def test_an_answer_counts_if_its_part_of_the_message_is_printed():
    assert is_covered((10, 20), None, exact=True)
    assert is_covered(None, [(50, 60)], exact=False)
    assert is_covered((10, 20), [(0, 15), (15, 30)], exact=True)
    assert is_covered((10, 20), [(11, 40)], exact=False)
    assert not is_covered((10, 20), [(11, 40)], exact=True)
    assert not is_covered((10, 20), [(15, 40)], exact=False)


def test_the_answering_passage_shares_most_words_with_the_answer():
    passages = [frozenset({"a"}), frozenset({"a", "b"}), frozenset({"b", "a"})]
    assert answering_passage(passages, frozenset({"a", "b"})) == 1


def test_questions_that_find_less_at_a_larger_budget_are_counted():
    assert lost_at_larger(np.array([[0, 0.5, 1], [1, 0.5, 1], [1, 1, 1]])) == pytest.approx(1 / 3)


def test_the_gate_curve_counts_questions_below_each_floor():
    curve = gate_curve(np.array([0.1, 0.9]), np.array([0.25, 0.3, 0.35, 0.6]))
    assert [(row["true"], row["foreign"]) for row in curve if 0.31 < row["floor"] < 0.33] == [
        (0.5, 0.5)
    ]


class Excerpts:
    """A context window that prints a part of a message."""

    def __init__(self, spans):
        rows = [
            {"id": 1, "source_id": "1", "content": "two", "spans": spans},
            {"id": None, "source_id": None, "content": "the question"},
        ]
        self.messages = [SimpleNamespace(to_row=partial(dict, row)) for row in rows]
        self.used, self.nothing_found = 10, False


@pytest.mark.parametrize(("spans", "strict"), [([[4, 7]], 1), ([[0, 3]], 0), (None, 1)])
def test_an_excerpt_counts_strictly_only_with_its_quotation(
    fake_embedder, tmp_path, monkeypatch, spans, strict
):
    cached = CachedEmbedder(fake_embedder, tmp_path)
    message = Message("user", "one two three", created_at=TIME, source="test", source_id="1")
    question = Question("here", "here", "?", frozenset("1"), quotations=("two",), answer="two")
    with Stores([Collection("here", (message,), (question,))], cached, tmp_path, {}) as stores:
        monkeypatch.setattr(asking, "_ask", lambda *_: Excerpts(spans))
        result = Asker(stores, cached).printed(question, [20])
    assert result == {
        "printed": [1],
        "strict": [strict],
        "rare words": [1],
        "tokens": [0.5],
        "refused": [0],
    }


def texts(stores, question):
    with stores.at(question) as (reservoir, now):
        window = reservoir.context("and?", partition="here", instance="here", budget=4_000, now=now)
    return [message.content for message in window.messages if message.content != "and?"]


def test_a_store_is_as_it_is_when_a_question_is_asked(fake_embedder, tmp_path):
    cached = CachedEmbedder(fake_embedder, tmp_path)
    messages = tuple(
        Message("user", text, created_at=TIME + timedelta(days=number), conversation_id=text)
        for number, text in enumerate(["one", "two", "three"])
    )
    turns = (("user", "hello"), ("assistant", "hi"))
    plain = Question("here", "here", "and?", frozenset("1"))
    collection, cases = (
        Collection("here", messages, (plain,)),
        (
            (plain, ["one", "two", "three"]),
            (replace(plain, stored=1), ["one"]),
            (replace(plain, stored=2), ["one", "two"]),
            (replace(plain, talk=turns), ["one", "two", "three", "hello", "hi"]),
        ),
    )
    with Stores([collection], cached, tmp_path, {}) as stores:
        for question, expected in cases:
            assert texts(stores, question) == expected
    with Stores([collection], cached, tmp_path, {}, asked_before=2) as stores:
        asked = texts(stores, plain)
    assert len(asked) == 6
    assert any("don't have any information" in text for text in asked)


def test_a_store_grows_by_whole_conversations_of_the_year_before():
    def talk(name, count):
        return tuple(
            Message("user", f"{name} {number}", created_at=TIME, conversation_id=name)
            for number in range(count)
        )

    here = Collection("here", talk("mine", 3), ())
    others = [Collection(name, talk(name, 4), ()) for name in ("a", "b")]
    messages, wanted = grow(here, others, 3)
    assert wanted == 6
    assert [message.content for message in messages][::4] == ["a 0", "b 0"]
    assert all(TIME - timedelta(days=365) <= message.created_at <= TIME for message in messages)


def test_questions_are_halved_and_spread_over_all_scopes():
    questions = tuple(Question("p", "p", str(number), frozenset("1")) for number in range(10))
    collections = [Collection(name, (), questions) for name in "ab"]
    for half, limit, expected in (
        (None, 4, [["0", "6"], ["2", "9"]]),
        ("choosing", None, [["0", "2", "4", "6", "8"]] * 2),
        ("reporting", 2, [["1"], ["9"]]),
    ):
        chosen = choose_questions(collections, half, limit)
        assert [[row.text for row in scope.questions] for scope in chosen] == expected


def test_a_run_on_one_set_writes_scores_and_compares_them(tmp_path, monkeypatch, capsys, embedder):
    monkeypatch.setattr(
        run, "cached_embedder", lambda name, folder: CachedEmbedder(embedder, folder)
    )
    file = tmp_path / "set.json"
    file.write_text(json.dumps([SCOPE]), encoding="utf-8")
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    arguments = [
        "run.py",
        "--set",
        "beam",
        "--data",
        str(file),
        "--cache",
        str(tmp_path),
        "--budgets",
        "50,250",
    ]
    for options in (["--json", str(first)], ["--against", str(first), "--json", str(second)]):
        monkeypatch.setattr("sys.argv", [*arguments, *options])
        run.main()
    report = json.loads(second.read_text(encoding="utf-8"))
    assert report["printed"]["printed"]["by_budget"]["250"] == 1
    assert report["printed"]["strict"]["questions"] == 1
    assert report["differences"]["printed"] == {"difference": 0, "interval": [0, 0]}
    assert "loses" in capsys.readouterr().out
