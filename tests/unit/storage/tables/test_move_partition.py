"""A renamed or merged partition is like one that always had its new name."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from behind import behind
from builders import embed
from stored import COUNTER

from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Conversation, Message, Scope, StoredMessage
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.tags_and_pins import TagsAndPins

Adding = Callable[..., list[StoredMessage | None]]
EVERYWHERE = Scope(None)


def make_message(content: str, number: int, conversation: str | None = None) -> Message:
    return Message(
        "user",
        content,
        datetime(2026, 5, 9, 12, number, tzinfo=UTC),
        source="s",
        source_id=f"{number}",
        conversation_id=conversation,
    )


@pytest.fixture
def filled_store(store: Store, add: Adding, fake_embedder: Embedder) -> Store:
    """Store a partition with two instances; half of its messages are embedded."""
    for instance in ("a", "chatgpt"):
        add(
            *(
                make_message(f"quokkas {number}", number, "c" if number % 2 else None)
                for number in range(6)
            ),
            partition="a",
            instance=instance,
        )
        conversation = Conversation("c", f"of {instance}", project="taskboard", branch="main")
        store.add_conversations(Scope("a", instance), [conversation])
    embed(store, fake_embedder, threshold=0, most=9)
    return store


def derived_tables(store: Store) -> list[list[Any]]:
    """Return the tables derived for ranking, and the postings."""
    if "://" in store.location:
        on_server = (
            "SELECT partition, instance, id, thread, word_count FROM messages ORDER BY 1, 2, 3",
            "SELECT partition, message_id, part, start, stems::text FROM words ORDER BY 1, 2, 3",
        )
        return [behind(store.location, query) for query in on_server]
    with closing(sqlite3.connect(store.location)) as connection:
        connection.execute(
            "CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, messages_fts, 'instance')"
        )
        queries = (
            """
            SELECT model_id, partition, instance, n, hex(ids), hex(threads), hex(flags), hex(codes)
            FROM blocks ORDER BY 1, 2, 3, id
            """,
            "SELECT term, doc, col, offset FROM temp.words ORDER BY 1, 2, 3, 4",
        )
        return [connection.execute(query).fetchall() for query in queries]


def places(store: Store) -> set[tuple[str, str, int]]:
    return set(store.channels())


def check_derived(store: Store) -> None:
    """Check that derived tables equal rebuilt ones."""
    before = derived_tables(store)
    assert store.problems() == []
    store.repair()
    assert derived_tables(store) == before


def test_a_renamed_partition_equals_one_created_with_that_name(filled_store):
    assert filled_store.move_partition("a", "b") == (12, 0)
    assert places(filled_store) == {("b", "b", 6), ("b", "chatgpt", 6)}
    check_derived(filled_store)
    hits, _ = filled_store.keyword("quokka", Scope("b", "b"), 20)
    assert len(hits) == 6
    assert filled_store.keyword("quokka", Scope("a"), 20)[0] == []
    titles = {summary.conversation.title for summary in filled_store.conversations(EVERYWHERE)}
    assert titles == {"of a", "of chatgpt"}
    assert filled_store.count_unembedded(Scope("b")) == 3


def test_vectors_and_links_stay_with_their_messages(filled_store):
    before = filled_store.holdings()
    filled_store.move_partition("a", "b")
    assert filled_store.holdings() == before


def test_merging_keeps_equal_sources_once(filled_store, add):
    add(make_message("the same", 0), make_message("another", 59), partition="b", instance="b")
    add(make_message("the same", 1, "c"), partition="b", instance="chatgpt")
    filled_store.add_conversations(Scope("b", "chatgpt"), [Conversation("c", "of b")])
    assert filled_store.move_partition("a", "b") == (10, 2)
    assert places(filled_store) == {("b", "b", 7), ("b", "chatgpt", 6)}
    check_derived(filled_store)
    assert filled_store.known_conversations([("b", "chatgpt", "c"), ("b", "b", "c")]) == {
        ("b", "chatgpt", "c"): Conversation("c", "of b", project="taskboard", branch="main"),
        ("b", "b", "c"): Conversation("c", "of a", project="taskboard", branch="main"),
    }
    contents = [message.content for message in filled_store.last(Scope("b", "b"), 0)]
    assert contents.count("the same") == 1
    assert "quokkas 0" not in contents


def test_merging_keeps_the_title_of_a_conversation_that_has_none_in_the_target(filled_store, add):
    add(make_message("another", 59, "c"), partition="b", instance="chatgpt")
    proxied = Conversation("c", source="proxy", model="gpt-4o")
    filled_store.add_conversations(Scope("b", "chatgpt"), [proxied])
    filled_store.move_partition("a", "b")
    name = ("b", "chatgpt", "c")
    merged = Conversation("c", "of chatgpt", "proxy", "gpt-4o", "taskboard", "main")
    assert filled_store.known_conversations([name]) == {name: merged}


def test_an_instance_named_like_the_new_partition_is_merged_with_its_default_one(store, add):
    add(make_message("one", 1), make_message("two", 2), partition="a", instance="a")
    add(make_message("two again", 2), make_message("three", 3), partition="a", instance="b")
    moved, merged = store.move_partition("a", "b")
    assert (moved, merged) == (3, 1)
    assert places(store) == {("b", "b", 3)}
    assert store.problems() == []


def test_messages_of_the_target_can_still_be_imported(store, add):
    add(make_message("one", 1), partition="a", instance="a")
    add(make_message("one", 1), partition="b", instance="b")
    store.move_partition("a", "b")
    assert store.forgotten([make_message("one", 1)]) == [False]


@pytest.mark.parametrize("edits", [["a"], ["b"], ["a", "b"], ["b", "a"]], ids="-".join)
def test_merging_keeps_the_text_that_was_edited_last(store, add, edits, monkeypatch):
    stored = {
        partition: add(make_message("fly on 2 May", 1, "c"), partition=partition, instance="i")[0]
        for partition in "ab"
    }
    for partition, message in stored.items():
        assert message is not None
        store.add_conversations(Scope(partition, "i"), [Conversation("c", f"of {partition}")])
        TagsAndPins(store).add_tags(message.key, [partition])
    for second, partition in enumerate(edits):
        message = stored[partition]
        assert message is not None
        monkeypatch.setattr(time, "time", lambda second=second: 1.8e9 + second)
        edited = replace(message.as_new(), content=f"edited\0in {partition}")
        store.edit(message.key, edited, counter=COUNTER, now=datetime.now(UTC))
    assert store.move_partition("a", "b") == (0, 1)
    (message,) = store.last(Scope("b"), 0)
    assert stored["b"] is not None
    assert message == replace(
        stored["b"],
        content=f"edited\ufffdin {edits[-1]}",
        tags=("a", "b"),
        tokens=message.tokens,
        counter=message.counter,
    )
    assert store.known_conversations([("b", "i", "c")])["b", "i", "c"].title == "of b"
    assert store.problems() == []


@pytest.mark.parametrize("first", ["a", "b"])
def test_an_edited_message_keeps_its_place_among_those_of_the_same_time(store, add, first):
    messages = [replace(make_message(f"text {n}", 1, "c"), source_id=f"{n}") for n in range(3)]
    for partition in sorted("ab", reverse=first == "b"):
        stored = add(*messages, partition=partition, instance="i")
        if partition == "a":
            assert stored[1] is not None
            edited = replace(messages[1], content="edited")
            store.edit(stored[1].key, edited, counter=COUNTER, now=datetime.now(UTC))
    store.move_partition("a", "b")
    contents = [message.content for message in store.last(Scope("b"), 0)]
    assert contents == ["text 0", "edited", "text 2"]


def test_runs_move_with_their_partition(filled_store):
    numbers = (
        "at context_window reserve reserve_used available input_tokens kept dropped truncations "
        "utilisation ms"
    )
    run: dict[str, object] = dict.fromkeys(numbers.split(), 1)
    names = dict.fromkeys(("instance", "format", "counter", "sections"), "x")
    filled_store.add_run({"partition": "a", **run, **names})
    filled_store.move_partition("a", "b")
    assert [run["partition"] for run in filled_store.runs(None)] == ["b"]
