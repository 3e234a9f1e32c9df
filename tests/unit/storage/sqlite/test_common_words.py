"""In a large scope common words are skipped, before all their postings are read."""

import pytest

from reservoir_cli.messages import Message, Scope
from reservoir_cli.storage.search import fulltext, rank_by_words
from reservoir_cli.storage.sqlite import postings
from reservoir_cli.storage.store import Store

pytestmark = pytest.mark.sqlite("it reads the index of SQLite")
#: The index key of another partition, used as a word of a message.
KEY = fulltext.scope_keys("q", "i").split()[0]
TEXTS = {"kyoto": 2, "hotel": 30, "garden": 9, "moss": 10, "rain": 11, KEY: 1}


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_by_words, "LARGE", 50)
    monkeypatch.setattr(postings, "_FEW", 8)


def postings_of(store: Store, scope: Scope, question: str) -> list[tuple[list[int], list[int]]]:
    """Return the ids of messages and the counts of each word of a question."""
    candidates = store.candidates(scope, None, question, None)
    return sorted(
        (candidates.ids[posting.positions].tolist(), posting.counts.tolist())
        for posting in candidates.postings
    )


@pytest.mark.parametrize("others", [0, 40, 400])
def test_words_in_more_than_a_tenth_of_the_scope_are_skipped(store, add, others):
    add(*(Message("user", "hotel hotel moss rain") for _ in range(others)), partition="q")
    texts = [
        " ".join([*(word for word, count in TEXTS.items() if index < count), "x"])
        for index in range(100)
    ]
    rows = [row.id for row in add(*(Message("user", text) for text in texts)) if row]
    expected = sorted(
        (rows[:count], [1] * count) for word, count in TEXTS.items() if word in {"kyoto", "moss"}
    )
    assert postings_of(store, Scope("p"), "kyoto hotel moss rain?") == expected
    assert postings_of(store, Scope("p"), "kyoto rain hotel moss?") == expected
    assert postings_of(store, Scope("p"), f"{KEY}?") == [(rows[:1], [1])]
    # Never skip all words.
    assert postings_of(store, Scope("p"), "hotel?") == [(rows[:30], [1] * 30)]


def test_postings_of_common_words_are_not_read(store, add):
    add(*(Message("user", f"hotel {'moss' * (index < 5)}") for index in range(100)))
    statements: list[str] = []
    store._connection.set_trace_callback(statements.append)
    assert len(postings_of(store, Scope("p"), "hotel moss?")) == 1
    store._connection.set_trace_callback(None)
    read = [text for text in statements if "group_concat(doc)" in text]
    assert ["'moss'" in text for text in read] == [True]
