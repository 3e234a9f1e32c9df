import dataclasses
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import (
    Message,
    Role,
    Scope,
    StoredMessage,
    ToolCall,
    call_from_dict,
    call_to_dict,
    clean_text,
    content_hash,
    from_epoch_ms,
    parse_role,
    plain_text,
    searchable_text,
    title_of,
    to_epoch_ms,
)

ANY_TEXT = st.text(st.characters(codec=None, categories=None))  # lone surrogates included
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MS = 253_402_300_799_999
WEATHER = ToolCall("call_1", "weather", '{"city": "Oslo"}')


@each("role", list(Role))
def test_each_role_is_read_by_its_name(role):
    assert parse_role(role.value) is role


@each("text", ["", "User", "developer", "user ", "bot"])
def test_an_unknown_role_names_the_four(text):
    with pytest.raises(UsageError, match="unknown role") as caught:
        parse_role(text)
    assert caught.value.exit_code == 2
    assert all(role.value in str(caught.value.hint) for role in Role)


def test_a_message_of_an_unknown_role_cannot_be_made():
    with pytest.raises(UsageError, match="'narrator'"):
        Message("narrator", "once upon a time")


def test_a_message_with_a_time_without_a_zone_cannot_be_made():
    with pytest.raises(UsageError, match="time zone"):
        Message("user", "hello", created_at=datetime(2026, 5, 9))


def test_a_message_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Message("user", "hello").content = "bye"  # type: ignore[misc]


def test_a_row_has_the_fields_of_the_design_in_their_order():
    row = _stored(tool_calls=(WEATHER,)).to_row()
    assert list(row) == (
        "id trace_id conversation_id partition instance role content name tool_calls "
        "tool_call_id created_at source source_id tokens"
    ).split(" ")
    assert row["role"] == "assistant"
    assert row["created_at"] == "2026-05-09T12:00:00+00:00"
    assert row["tool_calls"] == [
        {"id": "call_1", "name": "weather", "arguments": '{"city": "Oslo"}'}
    ]
    assert json.loads(json.dumps(row)) == row


def test_a_row_without_tool_calls_says_null():
    assert _stored(tool_calls=()).to_row()["tool_calls"] is None


CALLS = [
    ("flat", {"id": "c", "name": "f", "arguments": "{}"}, ToolCall("c", "f", "{}")),
    (
        "nested as OpenAI writes it",
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        ToolCall("c", "f", "{}"),
    ),
    (
        "custom tools have an input",
        {"id": "c", "type": "custom", "custom": {"name": "f", "input": "text"}},
        ToolCall("c", "f", "text"),
    ),
    (
        "arguments as an object",
        {"id": "c", "name": "f", "arguments": {"q": "ü"}},
        ToolCall("c", "f", '{"q": "ü"}'),
    ),
    ("no arguments", {"id": "c", "name": "f"}, ToolCall("c", "f", "")),
    ("no id", {"name": "f", "arguments": ""}, ToolCall("", "f", "")),
    (
        "arguments that do not parse",
        {"id": "c", "name": "f", "arguments": "{torn"},
        ToolCall("c", "f", "{torn"),
    ),
]


@pytest.mark.parametrize(
    ("value", "call"), [row[1:] for row in CALLS], ids=[row[0] for row in CALLS]
)
def test_a_tool_call_is_read(value, call):
    assert call_from_dict(value) == call


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"id": "c"},
        {"name": ""},
        {"name": 3},
        {"function": {"arguments": "{}"}},
        {"function": "f"},
        {"function": ["f"]},
    ],
    ids=json.dumps,
)
def test_a_tool_call_without_a_name_is_a_value_error(value):
    with pytest.raises(ValueError, match="tool call"):
        call_from_dict(value)


@given(st.text(), st.text(min_size=1), st.text())
def test_a_tool_call_survives_a_round_trip(call_id, name, arguments):
    call = ToolCall(call_id, name, arguments)
    assert call_from_dict(json.loads(json.dumps(call_to_dict(call)))) == call


@each(
    ("dirty", "clean"),
    [
        ("a\0b", "a\ufffdb"),
        ("\0", "\ufffd"),
        ("a\ud800b", "a\ufffdb"),
        ("a\udfffc", "a\ufffdc"),
        ("tail\ud83d", "tail\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("\udc80\ud800", "\ufffd\ufffd"),
        ("\ufeffmark\ud800", "\ufeffmark\ufffd"),
        ("naïve 北京 😀\t\x1b[0m", "naïve 北京 😀\t\x1b[0m"),
    ],
)
def test_characters_that_utf8_or_sqlite_cannot_store_are_replaced(dirty, clean):
    assert clean_text(dirty) == clean


@given(ANY_TEXT)
def test_cleaned_text_can_be_stored_and_cleaning_is_idempotent(text):
    clean = clean_text(text)
    clean.encode("utf-8")
    assert "\0" not in clean
    assert clean_text(clean) == clean


@given(st.text())
def test_text_without_nul_is_left_as_it_is(text):
    text = text.replace("\0", "")
    assert clean_text(text) == text


BASE = Message("assistant", "hello", name="bot", tool_calls=(WEATHER,), tool_call_id="call_0")
DIFFERENT = {
    "role": dataclasses.replace(BASE, role="user"),
    "content": dataclasses.replace(BASE, content="hello "),
    "name": dataclasses.replace(BASE, name=None),
    "tool calls": dataclasses.replace(BASE, tool_calls=()),
    "arguments": dataclasses.replace(BASE, tool_calls=(ToolCall("call_1", "weather", "{}"),)),
    "tool call id": dataclasses.replace(BASE, tool_call_id=None),
}


@pytest.mark.parametrize("other", DIFFERENT.values(), ids=DIFFERENT)
def test_another_message_has_another_fingerprint(other):
    assert content_hash(other) != content_hash(BASE)


def test_the_same_words_after_another_message_have_another_fingerprint():
    assert content_hash(BASE, "a") != content_hash(BASE, "b")


def test_a_fingerprint_does_not_depend_on_time_or_scope():
    later = dataclasses.replace(BASE, created_at=EPOCH, trace_id="t", conversation_id="c")
    assert content_hash(later) == content_hash(BASE)
    assert content_hash(_stored(tool_calls=(WEATHER,))) == content_hash(
        Message("assistant", "hello", tool_calls=(WEATHER,))
    )


def test_text_with_lone_surrogates_has_a_fingerprint():
    assert content_hash(Message("user", "\ud800")) != content_hash(Message("user", "\ud801"))


@given(st.integers(0, LAST_MS))
def test_a_time_in_milliseconds_survives_a_round_trip(milliseconds):
    assert to_epoch_ms(from_epoch_ms(milliseconds)) == milliseconds


@given(st.integers(0, LAST_MS))
def test_a_time_in_milliseconds_is_exact(milliseconds):
    assert from_epoch_ms(milliseconds) == EPOCH + timedelta(milliseconds=milliseconds)


def test_a_time_of_any_zone_is_the_same_moment():
    local_time = datetime(2026, 5, 9, 14, tzinfo=timezone(timedelta(hours=2)))
    assert to_epoch_ms(local_time) == to_epoch_ms(datetime(2026, 5, 9, 12, tzinfo=UTC))


@each(
    ("content", "calls", "expected"),
    [
        ("hello", (), "hello"),
        ("", (), ""),
        ("", (WEATHER,), '[call weather {"city": "Oslo"}]'),
        ("I look", (WEATHER,), 'I look\n[call weather {"city": "Oslo"}]'),
        ("", (ToolCall("c", "now", ""),), "[call now {}]"),
    ],
)
def test_the_plain_text_of_a_message_includes_tool_calls(content, calls, expected):
    assert plain_text(Message("assistant", content, tool_calls=calls)) == expected


@each(
    ("arguments", "expected"),
    [
        (r'{"a": "one\ntwo"}', '{"a": "one  two"}'),
        (r'{"path": "C:\\new\"s"}', '{"path": "C:  new  s"}'),
        (r'["\u4f60\u597d \u001b[0m \ud83d"]', f'["你{" " * 5}好{" " * 12}[0m{" " * 7}"]'),
        ('{"torn": "a\\', '{"torn": "a\\'),
        (r"*** Update File: C:\new", r"*** Update File: C:\new"),
    ],
)
def test_escapes_in_arguments_are_decoded_in_place(arguments, expected):
    call = ToolCall("c", "run", arguments)
    message = Message("assistant", r"see C:\new", tool_calls=(call,))
    assert searchable_text(message) == f"see C:\\new\n[call run {expected}]"
    assert len(searchable_text(message)) == len(plain_text(message))


@pytest.mark.parametrize(
    ("scope", "text"), [(Scope("p", "i"), "p/i"), (Scope("p"), "p/*"), (Scope(None), "*/*")]
)
def test_a_scope_is_shown_as_a_path(scope, text):
    assert str(scope) == text


def _stored(tool_calls: tuple[ToolCall, ...]) -> StoredMessage:
    return StoredMessage(
        id=7,
        trace_id="t",
        conversation_id=None,
        partition="p",
        instance="i",
        role=Role.ASSISTANT,
        content="hello",
        name=None,
        tool_calls=tool_calls,
        tool_call_id=None,
        created_at=datetime(2026, 5, 9, 12, tzinfo=UTC),
        source="cli",
        source_id="s",
        tokens=1,
    )


@pytest.mark.parametrize(
    "character",
    [
        "👩\u200d👩\u200d👧",
        "👍🏽",
        "🇳🇴",
        "❤\ufe0f",
        "e\u0301",
        "🏴\U000e0067\U000e0062\U000e007f",
        "कि",
    ],
    ids=ascii,
)
def test_a_title_is_never_cut_inside_a_character(character):
    for before in range(72, 82):
        title = title_of("x" * before + 20 * character)
        rest = title.removesuffix("…").removeprefix("x" * min(before, 80))
        assert title.endswith("…")
        assert len(title) <= 81
        assert rest == character * (len(rest) // len(character))


def test_a_title_of_marks_alone_is_shortened():
    assert title_of("\u0301" * 100) == "\u0301" * 80 + "…"
