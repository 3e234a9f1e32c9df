"""Titles: their words count for the messages of their conversation."""

from datetime import timedelta

import pytest
from builders import NOW

from reservoir_cli import Message, Reservoir
from reservoir_cli.messages import Conversation, Scope
from reservoir_cli.settings import config
from reservoir_cli.storage.search.match_titles import Titles, titled_with_all

HERE = Scope("p", "p")


@pytest.fixture
def reservoir(store):
    """Open a store with a titled conversation whose messages lack the words of the title."""
    settings = {"partition": "p", "embedding_model": "./none"}
    with Reservoir(store, config.load(None, settings)) as opened:
        for number, (conversation, text) in enumerate(
            [("a", "The dough rests overnight."), ("b", "Tyres are inflated."), ("c", "It rained.")]
        ):
            message = Message(
                "user", text, created_at=NOW + timedelta(days=number), conversation_id=conversation
            )
            opened.ingest([message], partition="p", instance="p", embed=False)
        store.add_conversations(HERE, [Conversation("a", "Baking Zürich loaves")])
        yield opened


@pytest.mark.parametrize(
    ("mode", "term"),
    [
        ("hybrid", "baking"),
        ("hybrid", "baked loaf"),
        ("keyword", "Zurich"),
        ("keyword", "zuerich"),
        ("keyword", "bakes loaves"),
    ],
)
def test_a_conversation_is_found_by_its_title(reservoir, mode, term):
    hits = reservoir.search(term, mode=mode, passages=True)
    assert hits[0].message.content == "The dough rests overnight."
    assert hits[0].title == "Baking Zürich loaves"


def test_renaming_a_conversation_renews_its_words(reservoir, store):
    store.add_conversations(HERE, [Conversation("a", "Pastry")])
    assert reservoir.search("loaves", mode="keyword") == []
    assert reservoir.search("pastry", mode="keyword")[0].message.conversation_id == "a"


def test_a_title_that_fits_alone_brings_its_messages_into_a_context(reservoir):
    window = reservoir.context("loaves", budget=200, now=NOW + timedelta(days=90))
    assert not window.nothing_found
    assert "The dough rests overnight." in [message.content for message in window.messages]


def test_the_words_of_a_message_weigh_more_than_those_of_its_title(reservoir):
    message = Message("user", "Baking stones last.", created_at=NOW, conversation_id="d")
    reservoir.ingest([message], partition="p", instance="p", embed=False)
    hits = reservoir.search("baking")
    assert [hit.message.conversation_id for hit in hits[:2]] == ["d", "a"]


def test_titles_are_compared_by_stems():
    titles = ["Studies of ports", "Portugal", "Café au lait", "備考について", "Airports, a _port_"]
    found = Titles([(title,) for title in titles]).find(["studi", "port", "cafe", "備", "none"])
    assert found == {"studi": [0], "port": [0, 4], "cafe": [2], "備": [3]}
    assert titled_with_all(titles, "a port study") == []
    assert titled_with_all(titles, "port study") == [0]
