"""Transactions: what a snapshot refuses, and how long a write waits for other threads."""

import threading

import pytest
from builders import NOW, FakeEmbedder, embed
from stored import HERE

from reservoir_cli.errors import StoreError, StoreLockedError
from reservoir_cli.messages import Filter, Message
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval.hits import SearchCriteria
from reservoir_cli.retrieval.search import search
from reservoir_cli.settings import config

OPEN = Redactor(lambda _: "off")


@pytest.mark.parametrize("read_only", [False, True])
def test_nothing_is_written_inside_a_snapshot(store, read_only):
    store.read_only = read_only
    with pytest.raises(StoreError), store.snapshot():
        store.set_property("colour", "red")
    store.read_only = False
    assert store.get_property("colour") is None
    store.set_property("colour", "blue")  # the store is usable again
    assert store.get_property("colour") == "blue"


@pytest.mark.parametrize("wait", [0, 0.05])
def test_a_write_waits_for_another_thread_no_longer_than_it_may(store, wait):
    begun, done = threading.Event(), threading.Event()

    def read_for_long():
        with store.snapshot():
            begun.set()
            done.wait(60)

    reader = threading.Thread(target=read_for_long)
    reader.start()
    begun.wait(60)
    try:
        with pytest.raises(StoreLockedError), store.write(wait=wait):
            raise AssertionError("the other thread still reads")
    finally:
        done.set()
        reader.join()
    store.set_property("colour", "blue")


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_a_question_is_embedded_before_the_snapshot_of_a_search(store, add, mode):
    class Watching(FakeEmbedder):
        def encode_query(self, text):
            # Nothing else can be written in a snapshot.
            store.set_property("asked", text)
            return super().encode_query(text)

    add(Message("user", "the boat is red"))
    embed(store, FakeEmbedder())
    criteria = SearchCriteria(
        "boat",
        HERE,
        mode,
        limit=3,
        threshold=None,
        link=False,
        deduplicate=False,
        where=Filter(),
        passages=False,
        redactor=OPEN,
    )
    [hit] = search(store, Watching(), criteria, config.load(None, {}).settings(), NOW)
    assert hit.message.content == "the boat is red"
    assert store.get_property("asked") == "boat"
