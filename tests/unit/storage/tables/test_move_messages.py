"""Moving chosen messages to another partition and instance."""

from dataclasses import replace
from datetime import timedelta

from builders import NOW

from reservoir_cli.messages import Conversation, Message, Scope
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import ApproximateCounter

HOME, WORK = Scope("home", "chat"), Scope("work", "chat")


def add(store: Store, scope: Scope, messages: list[Message]) -> None:
    store.add(scope, messages, counter=ApproximateCounter(), now=NOW)


def said(number: int, text: str = "") -> Message:
    time = NOW + timedelta(minutes=number)
    text = text or f"text {number}"
    return Message(
        "user", text, time, source="s", source_id=str(number), conversation_id="c", tags=("t",)
    )


def move(store: Store, scope: Scope, *texts: str) -> tuple[int, int]:
    keys = [row.key for row in store.last(scope, 0) if row.content in texts]
    moved, merged = store.move(keys, WORK, counter=ApproximateCounter(), now=NOW)
    return len(moved), merged


def test_messages_move_with_their_identities_and_conversation(store):
    store.add_conversations(HOME, [Conversation("c", "Redis", "s")])
    add(store, HOME, [said(1), said(2), said(3)])
    add(store, WORK, [said(9)])
    before = {row.source_id: row.as_new() for row in store.last(HOME, 0)}
    assert move(store, HOME, "text 1", "text 3") == (2, 0)
    after = {row.source_id: row.as_new() for row in store.last(WORK, 0)}
    assert {name: after[name] for name in "13"} == {name: before[name] for name in "13"}
    assert [row.content for row in store.last(HOME, 0)] == ["text 2"]
    known = store.known_conversations([("work", "chat", "c"), ("home", "chat", "c")])
    assert {thread[0] for thread in known} == {"home", "work"}
    assert store.stored(WORK, [said(1), said(2)]) == [True, False]
    assert store.problems() == []


def test_a_twin_in_the_target_keeps_one_message(store):
    add(store, HOME, [said(1), said(2)])
    add(store, WORK, [said(1)])
    assert move(store, HOME, "text 1", "text 2") == (1, 1)
    assert [row.content for row in store.last(WORK, 0)] == ["text 1", "text 2"]
    assert store.last(HOME, 0) == []
    assert store.forgotten([said(1), said(2)]) == [False, False]
    assert store.problems() == []


def test_an_edited_message_stays_edited(store):
    add(store, HOME, [said(1), said(2)])
    [first, _] = store.last(HOME, 0)
    store.edit(first.key, said(1, "mended"), counter=ApproximateCounter(), now=NOW)
    assert move(store, HOME, "mended", "text 2") == (2, 0)
    moved = store.last(WORK, 0)
    assert [row.content for row in store.edited(moved)] == ["mended"]


def test_the_place_that_messages_left_knows_them(store):
    loose = Message("user", "loose", NOW, source="s", source_id="7")
    other = Message("user", "other", NOW, source="s", source_id="8", conversation_id="c2")
    add(store, HOME, [said(1), loose, other])
    later, helper = said(9), replace(said(5), conversation_id="c/helper")
    asked = [said(1), later, helper, loose, other]
    assert store.moved_away(HOME, asked) == [False] * 5
    move(store, HOME, "text 1", "loose")
    assert store.moved_away(HOME, asked) == [True, True, True, True, False]
    assert store.moved_away(WORK, asked) == store.moved_away(Scope("home", "i"), asked)
    assert not any(store.moved_away(WORK, asked))
    assert store.forgotten(asked) == [False] * 5
    store.move_partition("home", "third")
    assert all(store.moved_away(HOME, asked))
    assert store.channels_of(["home", "third", "work"], "c2") == {("third", "chat")}
    assert store.channels_of(["work"], "c") == {("work", "chat")}
