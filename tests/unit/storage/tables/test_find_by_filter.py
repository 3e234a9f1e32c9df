"""Messages are found by filters, and read by their ids."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from builders import NOW

from reservoir_cli.messages import Conversation, Filter, Message, Scope, StoredMessage, ToolCall
from reservoir_cli.retrieval.lookup import Lookup
from reservoir_cli.storage.sqlite.connection import Connection
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables import reads

Adding = Callable[..., list[StoredMessage | None]]


def steps(store: Store, call: Callable[[Connection], Any]) -> int:
    """Return the cost of a call in steps of SQLite's virtual machine."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    with closing(sqlite3.connect(store.location, factory=Connection)) as connection:
        connection.set_progress_handler(tick, 10)
        call(connection)
    return count


@pytest.mark.sqlite("it counts the steps of SQLite")
@pytest.mark.parametrize("scope", [Scope("p", "i"), Scope("p"), Scope(None)], ids=str)
def test_reading_some_messages_costs_the_same_in_a_scope_of_any_size(store, add, scope):
    def read(connection: Connection) -> None:
        assert len(reads.by_id(connection, range(1, 11), scope)) == 10

    add(*(Message("user", "x") for _ in range(20)))
    cost = steps(store, read)
    add(*(Message("user", "x") for _ in range(2_000)))
    assert steps(store, read) <= cost + 2


FILTERS = [
    (Filter(role="assistant"), [2]),
    (Filter(trace_id="t"), [2, 1]),
    (Filter(conversation_id="c"), [3]),
    (Filter(since=NOW + timedelta(seconds=2)), [3, 1]),
    (Filter(until=NOW + timedelta(seconds=1)), [2]),
    (Filter(text="TW"), [2]),
    (Filter(role="user", text="O"), [1]),
    (Filter(source="mail"), [3]),
    (Filter(project="app"), [3]),
    (Filter(project="other"), []),
    (Filter(), [2, 3, 1]),
]


def test_ids_are_found_in_order_of_time(store, add):
    stored = add(
        Message("user", "one", NOW + timedelta(seconds=3), trace_id="t"),
        Message("assistant", "two", NOW, trace_id="t"),
        Message("user", "three", NOW + timedelta(seconds=2), conversation_id="c", source="mail"),
    )
    store.add_conversations(Scope("p", "i"), [Conversation("c", project="app")])
    numbers = {message.id: number for number, message in enumerate(stored, start=1) if message}
    add(Message("user", "elsewhere"), instance="j")
    found = [
        (where, [numbers[key.id] for key in store.find(Scope("p", "i"), where)])
        for where, _ in FILTERS
    ]
    assert found == FILTERS


@pytest.mark.parametrize("name", ["müller", "MÜLLER", "mu\u0308ller", "MU\u0308LLER"])
def test_a_name_is_found_in_any_unicode_form(store, add, name):
    """Otherwise a user who deletes all messages about a person would miss some."""
    call = ToolCall("1", "ask", '{"name": "Mu\u0308ller"}')
    stored = add(
        Message("user", "Herr Müller"),
        Message("user", "FRAU MÜLLER"),
        Message("user", "Mu\u0308ller, typed on a Mac"),
        Message("assistant", "", tool_calls=(call,)),
        Message("user", "Muller is another"),
    )
    assert list(store.find(Scope("p"), Filter(text=name))) == [
        message.key for message in stored[:4]
    ]


def test_a_filter_removes_hits_without_changing_scores(store, add):
    stored = add(
        Message("user", "which queue lost jobs?", NOW),
        Message("assistant", "the redis queue", NOW),
        Message("user", "jobs of the queue", NOW, source="mail"),
    )
    first, second, third = (message.id for message in stored if message)
    all_scores = dict(store.keyword("queue jobs", Scope("p"), -1)[0])
    assert all_scores.keys() == {first, third}
    words, all_words = store.keyword("queue jobs", Scope("p"), 1, Filter(source="mail"))
    assert (words, all_words) == ([(third, all_scores[third])], True)
    words, all_words = store.keyword("queue jobs", Scope("p"), -1, Filter(role="assistant"))
    assert ([number for number, _ in words], all_words) == ([second], False)
    plain = store.candidates(Scope("p"), None, "queue", None)
    users = store.candidates(Scope("p"), None, "queue", None, Filter(role="user"))
    assert plain.matching is None
    assert users.matching is not None
    assert users.ids.tolist() == plain.ids.tolist() == [first, second, third]
    assert users.matching.tolist() == [True, False, True]
    assert [posting.positions.tolist() for posting in users.postings] == [
        posting.positions.tolist() for posting in plain.postings
    ]


def test_threads_are_separated_by_scope_and_conversation(store, add):
    ids = []
    for instance in ("i", "j"):
        ids += add(
            Message("user", "a", conversation_id="c"),
            Message("user", "b"),
            Message("user", "c", conversation_id="c"),
            instance=instance,
        )
    numbers = {message.id: number for number, message in enumerate(ids, start=1) if message}
    threads = {
        name: [numbers[message_id] for message_id in thread_ids]
        for name, thread_ids in store.ids_by_conversation(Scope(None)).items()
    }
    assert threads == {
        ("p", "i", "c"): [1, 3],
        ("p", "i", None): [2],
        ("p", "j", "c"): [4, 6],
        ("p", "j", None): [5],
    }


def test_conversations_without_messages_are_not_listed(store, add):
    add(Message("user", "a", NOW, conversation_id="told"))
    add(Message("user", "b", NOW + timedelta(hours=1), conversation_id="untold"))
    add(Message("user", "c", NOW + timedelta(hours=2), conversation_id="told"))
    store.add_conversations(Scope("p", "i"), [Conversation("told", "T"), Conversation("empty")])
    first, second = store.conversations(Scope("p"))
    assert (first.conversation, first.messages) == (Conversation("told", "T"), 2)
    assert (first.first, first.last) == (NOW, NOW + timedelta(hours=2))
    assert (second.conversation, second.messages) == (Conversation("untold"), 1)
    assert (first.question, second.question) == (None, "b")
    assert store.conversations(Scope("q")) == []


def test_messages_are_found_by_their_source_and_the_project_of_their_conversation(store, add):
    (codex_message,) = add(Message("user", "a", source="codex", source_id="1", conversation_id="c"))
    add(Message("user", "b", source="cli", source_id="2", conversation_id="c"), instance="other")
    add(Message("user", "c", source="cli", source_id="3"))
    store.add_conversations(Scope("p", "i"), [Conversation("c", project="app")])
    assert codex_message is not None
    assert store.find(Scope("p"), Filter(source="codex")).ids == [codex_message.id]
    assert store.find(Scope("p"), Filter(project="app")).ids == [codex_message.id]
    assert store.find(Scope("p"), Filter(project="app", source="cli")).ids == []
    assert [message.id for message in store.last(Scope("p"), 9, Filter(project="app"))] == [
        codex_message.id
    ]


def test_ids_are_found_by_their_beginning_inside_the_scope(store, add):
    for trace, instance in (("abc", "i"), ("abd", "j"), ("abd", "j"), ("a%", "i"), ("b", "i")):
        add(Message("user", "x", trace_id=trace, conversation_id=f"c{trace}"), instance=instance)
    add(Message("user", "x", trace_id="abz"), partition="q")
    assert store.starting_with("trace_id", "ab", Scope("p")) == ["abc", "abd"]
    assert store.starting_with("trace_id", "ab", Scope("p", "j")) == ["abd"]
    assert store.starting_with("trace_id", "a%", Scope("p")) == ["a%"]
    assert store.starting_with("conversation_id", "cab", Scope(None)) == ["cabc", "cabd"]
    assert store.starting_with("conversation_id", "x", Scope(None)) == []


@pytest.mark.parametrize("typed", ["a\0", "a\ud83d", "\ufffd"])
def test_a_beginning_is_cleaned_as_stored_ids_are(store, add, typed):
    add(Message("user", "x", conversation_id=typed))
    [stored] = store.last(Scope(None), 0)
    found = Lookup(store).ids_starting_with("conversation_id", typed, Scope("p"))
    assert found == [stored.conversation_id]
