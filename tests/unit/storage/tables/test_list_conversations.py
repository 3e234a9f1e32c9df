"""Threads are listed newest first, a page at a time, without reading the texts of the others."""

from datetime import timedelta

import pytest
from builders import NOW
from each import each
from sqlite_steps import steps

from reservoir_cli.messages import Conversation, Filter, Message, Scope
from reservoir_cli.storage.store import Store

EVERYWHERE = Scope(None)


def said(role: str, text: str, minute: int, conversation: str | None = None, **fields) -> Message:
    moment = NOW + timedelta(minutes=minute)
    return Message(role, text, moment, conversation_id=conversation, **fields)


@pytest.fixture
def filled(store: Store, add) -> Store:
    with store.write():
        store.add_conversations(Scope("p", "i"), [Conversation("queue", "The queue", "codex")])
    add(
        said("system", "Be brief.", 0, "queue"),
        said("user", "Why did it stall?", 1, "queue"),
        said("assistant", "A lock.", 2, "queue"),
        said("tool", "ok", 3, "queue", tool_call_id="c"),
        said("user", "a note", 4),
        said("user", "# Bread\n\nflour", 5, source="markdown", source_id="1"),
        said("user", "a later note", 6),
    )
    add(said("assistant", "Hello.", 7, "greeting"), partition="q", instance="j")
    return store


def test_each_kind_of_entry_has_a_row_with_its_texts(filled):
    listed = filled.newest_conversations(EVERYWHERE)
    rows = [
        (entry.conversation and entry.conversation.id, entry.question, entry.latest)
        for entry in listed.listed
    ]
    assert rows == [
        ("greeting", "", "Hello."),
        (None, "", "a later note"),
        (None, "", "# Bread\n\nflour"),
        ("queue", "Why did it stall?", "A lock."),
    ]
    assert [entry.messages for entry in listed.listed] == [1, 2, 1, 4]
    assert [bool(entry.document) for entry in listed.listed] == [False, False, True, False]
    assert listed.listed[-1].conversation == Conversation("queue", "The queue", "codex")
    assert listed.listed[-1].last == NOW + timedelta(minutes=3)
    assert (listed.total, listed.conversations, listed.documents) == (4, 2, 1)


@each(
    ("scope", "where", "expected"),
    [
        (Scope("p"), Filter(), 3),
        (Scope("p", "other"), Filter(), 0),
        (EVERYWHERE, Filter(role="assistant"), 2),
        (EVERYWHERE, Filter(since=NOW + timedelta(minutes=5)), 3),
        (EVERYWHERE, Filter(until=NOW), 1),
        (EVERYWHERE, Filter(documents=False), 3),
    ],
)
def test_entries_are_filtered(filled, scope, where, expected):
    assert filled.newest_conversations(scope, where).total == expected


def test_pages_follow_each_other(filled):
    whole = filled.newest_conversations(EVERYWHERE).listed
    pages = [filled.newest_conversations(EVERYWHERE, count=1, start=start) for start in range(4)]
    assert [entry for page in pages for entry in page.listed] == whole
    assert {page.total for page in pages} == {4}
    assert not filled.newest_conversations(EVERYWHERE, count=1, start=4).listed


@pytest.mark.sqlite("it counts the steps of SQLite")
def test_a_message_of_another_conversation_costs_little(filled, add):
    def cost() -> int:
        return steps(filled, lambda: filled.newest_conversations(EVERYWHERE, count=2))

    def talk(first: int) -> None:
        add(*(said("user", "x" * 500, -n, f"t{n // 20}") for n in range(first, first + 400)))

    talk(0)
    before = cost()
    talk(400)
    assert (cost() - before) / 400 < 4  # tens of steps: a row of an index, not of the table
