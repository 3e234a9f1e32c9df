"""Adding messages: stored fields, order, and replies to questions."""

import dataclasses
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from builders import NOW
from stored import COUNTER, EVERYWHERE, HERE, HOUR, contents, delete

from reservoir_cli.errors import StoreError, UsageError
from reservoir_cli.messages import LAST_MS, Message, StoredMessage, ToolCall, from_epoch_ms
from reservoir_cli.storage.open_store import open_store


def test_a_message_is_stored_unchanged(store, add):
    message = Message(
        "assistant",
        "naïve 北京 😀\r\n\ttail ",
        created_at=datetime(2026, 5, 9, 14, 23, 1, 234_000, tzinfo=UTC),
        trace_id="trace",
        name="bot",
        tool_calls=(ToolCall("call_1", "f", '{"q": "ü"}'), ToolCall("", "g", "{torn")),
        tool_call_id="call_0",
        source="tool",
        source_id="s-1",
        conversation_id="conversation",
    )
    [stored] = add(message)
    assert stored is not None
    for field in dataclasses.fields(message):
        assert getattr(stored, field.name) == getattr(message, field.name), field.name
    assert (stored.partition, stored.instance) == ("p", "i")
    assert stored.tokens == COUNTER.count(message.content + '\n[call f {"q": "ü"}]\n[call g {torn]')
    assert stored.counter == f"{COUNTER.name} {COUNTER.version}"
    assert store.by_id([stored.id], HERE) == [stored]


def test_stored_messages_are_there_after_reopening(store, add):
    [stored] = add(Message("user", "hello"))
    store.close()
    with closing(open_store(store.location)) as reopened:
        assert reopened.last(HERE, 0) == [stored]


def test_missing_fields_are_filled_in(add):
    first, second = add(Message("user", "a"), Message("user", "a"))
    assert first is not None
    assert second is not None
    assert first.trace_id != second.trace_id
    assert first.source_id != second.source_id
    assert first.source == "python"


def test_a_source_id_is_stored_once_in_each_instance(store, add):
    message = Message("user", "hello", source="tool", source_id="1")
    assert contents(add(message, message)) == ["hello"]
    assert add(message) == [None]
    assert add(dataclasses.replace(message, content="changed")) == [None]
    assert contents(add(message, instance="j")) == ["hello"]
    assert contents(add(message, partition="q")) == ["hello"]
    assert contents(add(dataclasses.replace(message, source="other"))) == ["hello"]
    assert store.count_unembedded(EVERYWHERE) == 4
    assert len(store.keyword("hello", EVERYWHERE, 100)[0]) == 4


def test_ids_are_not_used_again(store, add):
    [first] = add(Message("user", "gone"))
    assert first is not None
    delete(store, first)
    [second] = add(Message("user", "stays"))
    assert second is not None
    assert second.id > first.id


@pytest.mark.parametrize("newest", [NOW - HOUR, NOW + HOUR, NOW + 99 * HOUR])
def test_a_message_without_a_time_gets_the_current_time(add, newest):
    add(Message("user", "before", created_at=newest), Message("user", "with it"))
    for role in ("user", "assistant", "system"):
        [stored] = add(Message(role, "hello"), now=NOW)
        assert stored is not None
        assert stored.created_at == NOW


@pytest.mark.parametrize("pair", [True, False])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_reply_is_moved_after_its_question_and_no_further(add, pair, at_once):
    trace = None if pair else "t"
    messages = [
        Message("user", "question", created_at=NOW + HOUR, trace_id=trace),
        Message("assistant", "reply", trace_id=trace),
        Message("assistant", "again", trace_id="t" if trace else None),
    ]
    if at_once:
        question, reply, second_reply = add(*messages, pair=pair)
    else:
        question, reply, second_reply = (
            stored for message in messages for stored in add(message, pair=pair)
        )
    assert question is not None
    assert reply is not None
    assert second_reply is not None
    assert reply.trace_id == question.trace_id
    assert reply.created_at == question.created_at + timedelta(milliseconds=1)
    assert second_reply.created_at == (
        NOW if pair else reply.created_at
    )  # no question is open any more
    [late_reply] = add(Message("assistant", "late", trace_id=question.trace_id), now=NOW + 2 * HOUR)
    assert late_reply is not None
    assert late_reply.created_at == NOW + 2 * HOUR


def test_a_reply_to_a_question_of_the_last_millisecond_can_be_read(store, add):
    add(Message("user", "question", created_at=from_epoch_ms(LAST_MS)))
    add(Message("assistant", "reply"), pair=True)
    assert [message.content for message in store.last(HERE, 0)] == ["question", "reply"]


@pytest.mark.parametrize("pair", [True, False])
def test_messages_of_one_call_keep_their_order_and_get_the_current_time(store, add, pair):
    roles = ("user", "assistant") * 3
    messages = [
        Message(role, f"{number}", trace_id=None if pair else f"t{number // 2}")
        for number, role in enumerate(roles)
    ]
    add(*messages, pair=pair)
    stored = store.last(HERE, 0)
    assert [message.content for message in stored] == [message.content for message in messages]
    assert {message.created_at for message in stored} == {NOW}


def test_a_reply_answers_a_current_question_rather_than_one_in_the_future(add):
    add(Message("user", "ahead", created_at=NOW + 25 * HOUR, trace_id="ahead"))
    add(Message("user", "now", trace_id="now"))
    replies = [add(Message("assistant", "yes"), pair=True)[0] for _ in range(3)]
    traces = [reply.trace_id for reply in replies if reply]
    assert traces[:2] == ["now", "ahead"]
    assert traces[2] not in ("now", "ahead")


# Pairing


def test_a_reply_takes_the_trace_of_the_newest_open_question(add):
    [first] = add(Message("user", "one"))
    [second] = add(Message("user", "two"))
    traces = [_trace(add(Message("assistant", "reply"), pair=True)) for _ in range(3)]
    assert first is not None
    assert second is not None
    assert traces[:2] == [second.trace_id, first.trace_id]
    assert traces[2] not in (first.trace_id, second.trace_id)


@pytest.mark.parametrize("source", ["markdown", "text"])
def test_a_reply_does_not_answer_a_document(add, source):
    question = _trace(add(Message("user", "question")))
    document = _trace(add(Message("user", "notes", source=source, source_id="1")))
    traces = [_trace(add(Message("assistant", "reply"), pair=True)) for _ in range(2)]
    assert traces[0] == question
    assert traces[1] != document


PAIRED_ALONE = [
    ("without pair", Message("assistant", "reply"), {}),
    ("with a trace of its own", Message("assistant", "reply", trace_id="own"), {"pair": True}),
    ("as another role", Message("system", "reply"), {"pair": True}),
    ("in another instance", Message("assistant", "reply"), {"pair": True, "instance": "j"}),
    ("in another partition", Message("assistant", "reply"), {"pair": True, "partition": "q"}),
]


@pytest.mark.parametrize(
    ("message", "options"), [row[1:] for row in PAIRED_ALONE], ids=[row[0] for row in PAIRED_ALONE]
)
def test_a_user_message_does_not_answer_a_question(add, message, options):
    question = _trace(add(Message("user", "question")))
    stored = _trace(add(message, **options))
    assert stored == message.trace_id if message.trace_id else stored != question


def test_a_question_and_its_reply_in_one_call_are_paired(add):
    question, reply = add(Message("user", "q"), Message("assistant", "r"), pair=True)
    assert question is not None
    assert reply is not None
    assert reply.trace_id == question.trace_id


def test_a_question_answered_in_another_instance_is_answered(add):
    question = _trace(add(Message("user", "q")))
    add(Message("assistant", "r", trace_id=question), instance="j")
    assert _trace(add(Message("assistant", "late"), pair=True)) != question


# Text that is hard to store


@pytest.mark.parametrize(
    ("content", "cleaned"),
    [("a\0b", "a\ufffdb"), ("lone \ud800", "lone \ufffd"), ("\ud83d\ude00", "😀"), ("", "")],
)
def test_text_that_sqlite_cannot_store_is_cleaned(store, add, content, cleaned):
    assert contents(add(Message("user", content))) == [cleaned]
    assert contents(store.last(HERE, 1)) == [cleaned]


@pytest.mark.parametrize(
    "field", ["name", "tool_call_id", "trace_id", "conversation_id", "source", "source_id"]
)
def test_a_field_that_sqlite_cannot_store_is_cleaned(store, add, field):
    add(Message("tool", "hello", **{field: "a\ud800"}))
    assert getattr(store.last(HERE, 1)[0], field) == "a\ufffd"


def test_tool_calls_that_sqlite_cannot_store_are_cleaned(store, add):
    add(Message("assistant", "", tool_calls=(ToolCall("c\ud800", "f\ud800", '"\ud800 \0"'),)))
    [call] = store.last(HERE, 1)[0].tool_calls
    assert (call.id, call.name) == ("c\ufffd", "f\ufffd")
    assert "\ud800" not in call.arguments


def test_a_scope_with_an_invalid_utf8_name_is_our_own_error(add):
    with pytest.raises((UsageError, StoreError)):
        add(Message("user", "hello"), partition="caf\udce9")


def test_a_message_of_five_megabytes_is_stored_and_found(store, add):
    text = "lorem ipsum dolor " * 290_000 + "needle"
    [stored] = add(Message("user", text))
    assert stored is not None
    assert store.by_id([stored.id], HERE)[0].content == text
    assert [number for number, _ in store.keyword("needle", HERE, 1)[0]] == [stored.id]


def _trace(messages: list[StoredMessage | None]) -> str:
    [stored] = messages
    assert stored is not None
    return stored.trace_id
