"""Reading the postings of a question has a bounded cost."""

import pytest
from builders import NOW

from reservoir_cli.messages import Message, Scope
from reservoir_cli.storage.search import rank_by_words
from reservoir_cli.storage.sqlite import postings

HERE = Scope("p", "i")


@pytest.fixture
def notes(store, add):
    """Store forty messages: "tea" is in all, "milk" in ten, "honey" twice in one."""
    add(*(Message("user", "tea", created_at=NOW) for _ in range(29)))
    add(*(Message("user", "tea and milk", created_at=NOW) for _ in range(10)))
    add(Message("user", "tea with honey honey", created_at=NOW))
    add(*(Message("user", "honey milk tea", created_at=NOW) for _ in range(30)), partition="q")
    return store


def counts(store, question, scope=HERE):
    """Return how often each stem of a question occurs in the messages."""
    candidates = store.candidates(scope, "i", question, None)
    return [posting.counts.tolist() for posting in candidates.postings]


def test_every_occurrence_of_a_word_in_the_scope_counts(notes):
    assert counts(notes, "honey, milk or tea?") == [[2], [1] * 10, [1] * 40]
    assert counts(notes, "sugar") == []


def test_in_a_large_scope_the_most_common_words_are_dropped(notes, monkeypatch):
    monkeypatch.setattr(rank_by_words, "LARGE", 39)
    assert counts(notes, "honey, milk or tea?") == [[2]]


def test_never_all_words_are_dropped(notes, monkeypatch):
    monkeypatch.setattr(rank_by_words, "LARGE", 39)
    assert counts(notes, "tea with milk") == [[1] * 10]


@pytest.fixture
def few(monkeypatch):
    """Make words with more than five occurrences common, and limit reading."""
    monkeypatch.setattr(postings, "_FEW", 5)
    monkeypatch.setattr(postings, "_READ_AT_MOST", 0)


@pytest.mark.sqlite("a server counts every place")
@pytest.mark.usefixtures("few")
def test_beyond_the_limit_words_of_a_small_scope_count_once_a_message(notes):
    assert counts(notes, "honey, milk or tea?") == [[1], [1] * 10, [1] * 40]


@pytest.mark.sqlite("a server counts every place")
@pytest.mark.usefixtures("few")
def test_beyond_the_limit_words_of_a_large_scope_are_left_out(notes, add, monkeypatch):
    add(Message("user", "sugar sugar", created_at=NOW))
    monkeypatch.setattr(rank_by_words, "LARGE", 39)
    monkeypatch.setattr(rank_by_words, "COMMON", 1)
    assert counts(notes, "sugar, honey, milk or tea?") == [[2]]
    assert counts(notes, "milk or coffee?") == [[1] * 6]  # no other word is left


@pytest.mark.sqlite("a server counts every place")
def test_common_words_share_what_may_be_read(notes, monkeypatch):
    monkeypatch.setattr(postings, "_FEW", 5)
    monkeypatch.setattr(postings, "_READ_AT_MOST", 40)
    # honey has 32 occurrences and is read first, so milk with 40 exceeds the limit
    assert counts(notes, "honey and milk") == [[2], [1] * 10]
    assert counts(notes, "honey") == [[2]]
