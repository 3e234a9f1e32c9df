import dataclasses
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st
from reading import file_of, lines
from reading import read as read_as

from reservoir_cli.messages import Message, Role, StoredMessage, ToolCall
from reservoir_cli.transfer.detect_format import choose
from reservoir_cli.transfer.formats.reservoir_rows import Native
from reservoir_cli.transfer.reading.importer import Record, Skipped

ROW: dict[str, Any] = {
    "id": 7,
    "trace_id": "trace",
    "conversation_id": "conversation",
    "partition": "p",
    "instance": "i",
    "role": "assistant",
    "content": "hello",
    "name": "bot",
    "tool_calls": [{"id": "c", "name": "f", "arguments": "{}"}],
    "tool_call_id": "c0",
    "created_at": "2026-05-09T14:23:01.234000+00:00",
    "source": "chatgpt",
    "source_id": "s-1",
    "tokens": 2,
}


def read(*values: object) -> list[Record | Skipped]:
    return read_as(lines(*values), Native())


def record(row: dict[str, Any]) -> Record:
    [entry, _] = read(row, ROW)
    assert isinstance(entry, Record), entry
    return entry


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
NAMED = TEXT.filter(bool)
PLACES = TEXT.filter(str.strip)
CALLS = st.builds(ToolCall, TEXT, NAMED, TEXT)
MOMENTS = st.integers(0, 4_102_444_800_000).map(
    lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
)
STORED = st.builds(
    StoredMessage,
    id=st.integers(1),
    trace_id=NAMED,
    conversation_id=st.none() | NAMED,
    partition=PLACES,
    instance=PLACES,
    role=st.sampled_from(Role),
    content=TEXT.filter(str.strip),
    name=st.none() | NAMED,
    tool_calls=st.lists(CALLS, max_size=2).map(tuple),
    tool_call_id=st.none() | TEXT,
    created_at=MOMENTS,
    source=NAMED,
    source_id=NAMED,
    tokens=st.integers(0),
)


@given(STORED)
def test_a_row_is_imported_with_every_field(stored):
    imported = record(stored.to_row())
    for field in dataclasses.fields(Message):
        assert getattr(imported.message, field.name) == getattr(stored, field.name), field.name
    assert (imported.partition, imported.instance) == (stored.partition, stored.instance)


FORMS = {
    "rows a line": json.dumps(ROW) + "\n" + json.dumps(ROW),
    "an array": json.dumps([ROW, ROW], indent=2),
    "what view --json prints": json.dumps({"schema_version": 1, "messages": [ROW, ROW]}),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_each_form_is_recognised_and_read(text):
    assert choose(file_of(text)).name == "reservoir"
    entries = read_as(text, Native())
    assert len(entries) == 2
    assert entries == [record(ROW)] * 2


def test_the_conversation_of_a_row_is_read():
    details = {"title": "Redis", "source": "chatgpt", "model": "gpt-4"}
    conversation = record({**ROW, "conversation": details}).conversation
    assert conversation is not None
    assert (conversation.id, conversation.title, conversation.source, conversation.model) == (
        "conversation",
        "Redis",
        "chatgpt",
        "gpt-4",
    )
    assert record(ROW).conversation is None


def test_missing_fields_of_a_row_stay_unset():
    imported = record({"role": "user", "content": "hello"})
    assert (imported.partition, imported.instance, imported.conversation) == (None, None, None)
    assert imported.message.created_at is None
    assert imported.message.trace_id is None
    assert imported.message.source == "reservoir"
    assert imported.message.source_id


ORIGINAL = {
    "trace_id": "t",
    "partition": "p",
    "instance": "i",
    "content": "hello",
    "role": "user",
    "embedding": [0.1, 0.2],
    "url": "",
    "timestamp": 1_778_336_581_234,
}


def test_an_export_of_the_original_reservoir_is_read():
    assert choose(file_of(json.dumps(ORIGINAL))).name == "reservoir"
    imported = record(ORIGINAL)
    assert imported.message.created_at == datetime(2026, 5, 9, 14, 23, 1, 234_000, tzinfo=UTC)
    assert imported.message.trace_id == "t"
    assert (imported.partition, imported.instance) == ("p", "i")


@pytest.mark.parametrize("blank", ["", " ", "\t\u3000"])
def test_a_blank_partition_or_instance_is_ignored(blank):
    imported = record(ORIGINAL | {"partition": blank, "instance": blank})
    assert (imported.partition, imported.instance) == (None, None)


def test_equal_rows_without_ids_stay_separate():
    later_row = {**ORIGINAL, "trace_id": "u", "timestamp": ORIGINAL["timestamp"] + 60_000}
    first = [entry for entry in read(ORIGINAL, later_row) if isinstance(entry, Record)]
    assert len({record.message.source_id for record in first}) == 2
    second = [entry for entry in read(ORIGINAL, later_row) if isinstance(entry, Record)]
    assert second == first


TIMES = [
    ("2026-05-09T14:23:01+02:00", datetime(2026, 5, 9, 12, 23, 1, tzinfo=UTC)),
    ("2026-05-09T14:23:01Z", datetime(2026, 5, 9, 14, 23, 1, tzinfo=UTC)),
    ("2026-05-09T14:23:01", datetime(2026, 5, 9, 14, 23, 1, tzinfo=UTC)),
    (0, datetime(1970, 1, 1, tzinfo=UTC)),
    ("1970-01-01T00:00:00+14:00", datetime(1969, 12, 31, 10, tzinfo=UTC)),
    (1_778_336_581_234.0, datetime(2026, 5, 9, 14, 23, 1, 234_000, tzinfo=UTC)),
    (None, None),
]


@each(("written", "expected"), TIMES)
def test_a_time_is_read(written, expected):
    assert record({**ROW, "created_at": written}).message.created_at == expected


def test_names_that_cannot_be_stored_are_cleaned():
    dirty = {**ROW, "name": "\ud800", "partition": "p\0"}
    imported = record(dirty)
    assert imported.message.name == "\ufffd"
    assert imported.partition == "p\ufffd"


SKIPPED = [
    ("no object", 3),
    ("an unknown role", {**ROW, "role": "narrator"}),
    ("a role that is a list", {**ROW, "role": ["user"]}),
    ("no role", {key: value for key, value in ROW.items() if key != "role"}),
    ("no content", {**ROW, "content": None}),
    ("a content that is a list", {**ROW, "content": ["x"]}),
    (
        "neither text nor calls",
        {**ROW, "content": " ", "tool_calls": None, "tool_call_id": None, "source_id": None},
    ),
    ("a name that is a number", {**ROW, "name": 5}),
    ("a partition that is a list", {**ROW, "partition": []}),
    ("a text that is not a time", {**ROW, "created_at": "yesterday"}),
    ("a time before 1970", {**ROW, "created_at": -1}),
    ("a date before 1970", {**ROW, "created_at": "1969-12-30T23:59:59Z"}),
    ("a time that is true", {**ROW, "created_at": True}),
    ("a time that is a list", {**ROW, "created_at": []}),
    ("a time in too late a year", {**ROW, "created_at": 10**22}),
    (
        "a time in too late a year because of its zone",
        {**ROW, "created_at": "9999-12-31T23:00-12:00"},
    ),
    ("a time that is too large a number", {**ROW, "created_at": 10**40}),
    ("an infinite time", {**ROW, "created_at": float("inf")}),
    ("calls that are a number", {**ROW, "tool_calls": 5}),
    ("calls that are an object", {**ROW, "tool_calls": {"id": "c", "name": "f"}}),
    ("a call that is a text", {**ROW, "tool_calls": ["f"]}),
    ("a call that is null", {**ROW, "tool_calls": [None]}),
    ("a call without a name", {**ROW, "tool_calls": [{"id": "c"}]}),
    ("a call whose function is a text", {**ROW, "tool_calls": [{"function": "f"}]}),
    ("a title that is a list", {**ROW, "conversation": {"title": []}}),
]


@each("value", [row[1] for row in SKIPPED])
def test_a_bad_row_is_skipped_with_its_position_and_the_others_are_read(value):
    before, bad, after = read(ROW, value, ROW)
    assert isinstance(before, Record)
    assert isinstance(bad, Skipped)
    assert bad.place == "line 2"
    assert bad.reason
    assert after == before


@each("time", [10**22, 10**40, -(10**40), "9999-12-31T23:00-12:00"])
def test_the_reason_names_a_time_that_is_too_far_away(time):
    reason = "created_at is not a time from 1970 to 9999"
    assert read({**ROW, "created_at": time}) == [Skipped("the document", reason)]


def test_a_bad_row_of_a_document_is_reported_by_its_position():
    [_, bad] = read_as(json.dumps({"messages": [ROW, {**ROW, "role": "x"}]}), Native())
    assert bad == Skipped("the document, message 2", "unknown role")


def test_no_reason_holds_the_text_of_a_message():
    bad = {**ROW, "content": "secret", "name": {"secret": 1}, "created_at": "secret"}
    assert all("secret" not in str(entry) for entry in read(bad))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(ROW)), JSON)
def test_no_value_of_a_field_stops_reading(key, value):
    first, second = read({**ROW, key: value}, ROW)
    assert isinstance(first, Record | Skipped)
    assert isinstance(second, Record)
