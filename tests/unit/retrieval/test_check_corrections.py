"""Corrections of misspelt words are reported; correct words that the index lacks have none."""

from collections.abc import Callable
from typing import Any

import pytest
from builders import NOW

from reservoir_cli.messages import Filter, Message, Scope, StoredMessage
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval.check_corrections import correction_notes, drop_known_words
from reservoir_cli.retrieval.hits import SearchCriteria
from reservoir_cli.retrieval.search import search
from reservoir_cli.settings import config
from reservoir_cli.storage.search.candidates import Candidates
from reservoir_cli.storage.store import Store

P = Scope("p")
Adding = Callable[..., list[StoredMessage | None]]
OPEN, MASKED = Redactor(lambda _: "off"), Redactor(lambda _: "mask")


def candidates_for(store: Store, question: str) -> Candidates:
    return store.candidates(P, None, question, None)


def notes(store: Store, question: str, redactor: Redactor = OPEN) -> tuple[str, ...]:
    return correction_notes(candidates_for(store, question), store, P, redactor)


@pytest.fixture
def stored_messages(add: Adding) -> None:
    add(
        Message("user", "Should Kubernetes do the rollback by itself?"),
        Message("assistant", "No: Kubernetes restarts, the deployment and fermentation are ours."),
        Message("user", "And the limiter?"),
    )


NOTES = [
    ("kuberntes", ('nothing has "kuberntes"; searched for Kubernetes',)),
    ("xylophones of restrats", ('nothing has "restrats"; searched for restarts',)),
    ("limitr, rolback", ('nothing has "limitr", "rolback"; searched for limiter, rollback',)),
    # The mistake is in an ending that stemming removes from the index.
    ("deploymnt", ('nothing has "deploymnt"; searched for deployment',)),
    ("fermentaton", ('nothing has "fermentaton"; searched for fermentation',)),
    ("fermentxyz", ()),
    ("kubernetes rollback", ()),
    ("pineapples", ()),
    ("limi", ()),
    ("k8bernetes", ()),
    ("", ()),
]


@pytest.mark.parametrize(("question", "expected"), NOTES)
def test_only_a_replacement_is_noted(store, stored_messages, question, expected):
    assert notes(store, question) == expected


def test_a_word_of_a_secret_is_not_named_if_secrets_are_masked(store, add):
    add(Message("user", "password=wandelhorn-Tr0mpete4x"))
    assert "wandelhorn" in notes(store, "wandelhrn")[0]
    assert notes(store, "wandelhrn", MASKED) == (
        'nothing has "wandelhrn"; searched for a similar word',
    )


def test_a_correct_unknown_word_is_not_replaced(store, add, embedder):
    add(Message("user", "Grandma rewards the stronger ones."))
    for word, is_known in {"grandpa": True, "strangers": True, "rewrads": False}.items():
        candidates = candidates_for(store, word)
        assert [word.typed for word in candidates.corrections] == [word]
        remaining = drop_known_words(candidates, embedder)
        assert [word.typed for word in remaining.corrections] == ([] if is_known else [word])
        absent = len(remaining.absent)
        assert (len(remaining.postings), absent) == ((0, 1) if is_known else (1, 0))


def test_hybrid_search_replaces_words_and_keyword_search_does_not(store, stored_messages):
    settings = config.load(None, {}).settings("p")

    def hits(mode: Any) -> list[Any]:
        criteria = SearchCriteria(
            "limitr",
            P,
            mode,
            limit=9,
            threshold=None,
            link=False,
            deduplicate=False,
            where=Filter(),
            passages=False,
            redactor=OPEN,
        )
        return search(store, None, criteria, settings, NOW)

    hit = hits("hybrid")[0]
    assert hit.message.content == "And the limiter?"
    assert hit.notes == ('nothing has "limitr"; searched for limiter',)
    assert hits("keyword") == []
