"""store.md: the words of a question are read at a bounded cost."""

from datetime import UTC, datetime

import pytest

from reservoir_cli.messages import Message, Scope
from reservoir_cli.store import postings

NOW = datetime(2026, 5, 9, 12, tzinfo=UTC)
HERE = Scope("p", "i")


@pytest.fixture
def notes(store, add):
    """Forty messages: "tea" in all, "milk" in ten, "honey" in one, twice."""
    add(*(Message("user", "tea", created_at=NOW) for _ in range(29)))
    add(*(Message("user", "tea and milk", created_at=NOW) for _ in range(10)))
    add(Message("user", "tea with honey honey", created_at=NOW))
    add(*(Message("user", "honey milk tea", created_at=NOW) for _ in range(30)), partition="q")
    return store


def counts(store, question, scope=HERE):
    """How often each stem of a question stands in each message that holds it, rarest first."""
    found = store.candidates(scope, "i", question, None)
    return [each.counts.tolist() for each in found.postings]


def test_every_place_of_a_word_in_the_scope_counts(notes):
    assert counts(notes, "honey, milk or tea?") == [[2], [1] * 10, [1] * 40]
    assert counts(notes, "sugar") == []


def test_in_a_large_scope_the_most_common_words_are_dropped(notes, monkeypatch):
    monkeypatch.setattr(postings, "_LARGE", 39)
    assert counts(notes, "honey, milk or tea?") == [[2]]


def test_never_are_all_words_dropped(notes, monkeypatch):
    monkeypatch.setattr(postings, "_LARGE", 39)
    assert counts(notes, "tea with milk") == [[1] * 10]


def test_beyond_the_limit_words_of_a_small_scope_count_once_a_message(notes, monkeypatch):
    monkeypatch.setattr(postings, "_READ_AT_MOST", 1)
    assert counts(notes, "honey, milk or tea?") == [[2], [1] * 10, [1] * 40]
    assert counts(notes, "tea and honey") == [[2], [1] * 40]
    monkeypatch.setattr(postings, "_READ_AT_MOST", 0)
    assert counts(notes, "milk and honey honey") == [[2], [1] * 10]


def test_beyond_the_limit_words_of_a_large_scope_are_left_out(notes, monkeypatch):
    monkeypatch.setattr(postings, "_LARGE", 39)
    monkeypatch.setattr(postings, "_COMMON", 1)
    monkeypatch.setattr(postings, "_READ_AT_MOST", 50)
    assert counts(notes, "honey, milk or tea?") == [[2]]
    assert counts(notes, "tea or coffee?") == [[1] * 40]
