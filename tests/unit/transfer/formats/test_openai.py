import json
from typing import Any

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st
from reading import file_of, lines
from reading import read as read_as

from reservoir_cli.messages import Message, ToolCall
from reservoir_cli.transfer.detect_format import choose
from reservoir_cli.transfer.formats.api_bodies import OpenAI
from reservoir_cli.transfer.reading.importer import Record, Skipped


def read(text: str) -> list[Record | Skipped]:
    return read_as(text, OpenAI())


def messages(text: str) -> list[Message]:
    """Return the messages of a text of which nothing is skipped."""
    entries = read(text)
    assert [entry for entry in entries if isinstance(entry, Skipped)] == []
    return [entry.message for entry in entries if isinstance(entry, Record)]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


TALK = [user("q1"), assistant("r1"), user("q2"), assistant("r2")]

FORMS = {
    "bare messages": lines(*TALK),
    "an array": json.dumps(TALK),
    "a request body": json.dumps({"model": "gpt-4", "messages": TALK}, indent=2),
    "a conversation a line": lines({"messages": TALK}),
    "blank lines and Windows line ends": "\n\n" + lines(*TALK).replace("\n", "\r\n\r\n"),
    "an array of conversations": json.dumps([{"messages": TALK}]),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_each_form_is_recognised_and_gives_the_same_messages(text):
    assert choose(file_of(text)).name == "openai"
    assert [(message.role, message.content) for message in messages(text)] == [
        ("user", "q1"),
        ("assistant", "r1"),
        ("user", "q2"),
        ("assistant", "r2"),
    ]
    assert [message.source_id for message in messages(text)] == [
        message.source_id for message in messages(FORMS["an array"])
    ]


CONTENTS = [
    ("a text", "hello", "hello"),
    ("outer blanks stay", " hello\n", " hello\n"),
    ("parts", [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
    ("parts of a response", [{"type": "input_text", "text": "one"}], "one"),
    ("a text among the parts", ["one", {"type": "text", "text": "two"}], "one\ntwo"),
    (
        "an image",
        [
            {"type": "text", "text": "what is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ],
        "what is this?\n[image]",
    ),
    ("sound", [{"type": "input_audio", "input_audio": {"data": "AAAA"}}], "[audio]"),
    ("a part without a type", [{"data": 1}], "[part]"),
    ("the two halves of an emoji", "\ud83d\ude00", "😀"),
]


@pytest.mark.parametrize(
    ("content", "text"), [row[1:] for row in CONTENTS], ids=[row[0] for row in CONTENTS]
)
def test_content_becomes_text(content, text):
    assert messages(lines(user(content), user("next")))[0].content == text


ROLES = [
    ("system", "system"),
    ("developer", "system"),
    ("user", "user"),
    ("assistant", "assistant"),
    ("tool", "tool"),
    ("function", "tool"),
]


@each(("written", "role"), ROLES)
def test_a_role_becomes_one_of_the_four(written, role):
    [first, _] = messages(lines({"role": written, "content": "x"}, user("next")))
    assert first.role == role


def test_a_call_and_its_result_keep_all_fields():
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    request, result = messages(
        lines(
            assistant(None, tool_calls=[call]),
            {"role": "tool", "tool_call_id": "call_1", "name": "f", "content": None},
        )
    )
    assert request.content == ""
    assert request.tool_calls == (ToolCall("call_1", "f", '{"a": 1}'),)
    assert (result.role, result.content) == ("tool", "")
    assert (result.tool_call_id, result.name) == ("call_1", "f")
    assert result.trace_id == request.trace_id


SKIPPED = [
    ("no object", 3, "not a JSON object"),
    ("an unknown role", {"role": "narrator", "content": "x"}, "unknown role"),
    ("no role", {"content": "x"}, "unknown role"),
    ("no content", {"role": "user"}, "empty"),
    ("null", user(None), "empty"),
    ("blank", user(" \n"), "empty"),
    ("no parts", user([]), "empty"),
    ("an assistant without words or calls", assistant(None, tool_calls=[]), "empty"),
    ("a number for content", user(5), "content is neither"),
    ("an object for content", user({"text": "x"}), "content is neither"),
    ("calls that are no list", assistant("x", tool_calls={"id": "c"}), "tool_calls is not"),
    ("a call that is no object", assistant("x", tool_calls=["c"]), "tool_calls is not"),
    ("a call without a name", assistant("x", tool_calls=[{"id": "c"}]), "without a name"),
    (
        "a call whose function is a text",
        assistant("x", tool_calls=[{"id": "c", "function": "f"}]),
        "",
    ),
]


@each("value, reason", [row[1:] for row in SKIPPED])
def test_a_bad_record_is_skipped_with_its_position_and_the_others_are_read(value, reason):
    before, bad, after = read(lines(user("before"), value, user("after")))
    assert isinstance(before, Record)
    assert isinstance(bad, Skipped)
    assert bad.place == "line 2"
    assert reason in bad.reason
    assert isinstance(after, Record)
    assert after.message.content == "after"


def test_a_bad_message_of_a_list_is_reported_by_both_positions():
    entries = read(lines({"messages": TALK}, {"messages": [user("x"), 7]}))
    assert [entry for entry in entries if isinstance(entry, Skipped)] == [
        Skipped("line 2, message 2", "not a message")
    ]


def test_an_incomplete_last_line_is_skipped_and_read_when_it_is_complete():
    text = lines(*TALK)
    entries = read(text[:-9])
    assert isinstance(entries[-1], Skipped)
    assert entries[-1].place == "line 4"
    assert entries[:3] == read(text)[:3]


def test_a_file_of_one_incomplete_line_is_skipped():
    [entry] = read('{"role": "user", "content": "he')
    assert isinstance(entry, Skipped)


def test_deeply_nested_records_are_skipped():
    deep = '{"role": ' + "[" * 100_000 + "]" * 100_000 + "}"
    first, second = read(deep + "\n" + lines(user("x")))
    assert first == Skipped("line 1", "nested too deeply")
    assert isinstance(second, Record)


# Identity


def ids(text: str) -> list[str | None]:
    return [message.source_id for message in messages(text)]


def test_reading_a_file_again_gives_the_same_ids():
    assert read(lines(*TALK)) == read(lines(*TALK))
    assert {message.source for message in messages(lines(*TALK))} == {"openai"}


def test_a_longer_file_begins_with_the_ids_of_the_shorter():
    longer = [*TALK, user("q1"), assistant("r1"), user("q1")]
    all_ids = ids(lines(*longer))
    for count in range(1, len(longer)):
        assert ids(lines(*longer[:count])) == all_ids[:count]


@given(st.lists(st.sampled_from(["yes", "no"]), min_size=1, max_size=12), st.booleans())
def test_equal_messages_have_different_ids(texts, bare):
    turns = [user(content) for content in texts]
    text = lines(*turns) if bare else lines(*({"messages": [turn]} for turn in turns))
    assert len(set(ids(text))) == len(texts)


def test_the_same_conversation_twice_in_a_file_is_imported_twice():
    entries = read(lines({"messages": TALK}, {"messages": TALK}))
    records = [entry for entry in entries if isinstance(entry, Record)]
    assert len({record.message.source_id for record in records}) == 8
    assert len({record.message.conversation_id for record in records}) == 2
    assert len({record.message.trace_id for record in records}) == 4


def test_the_ids_of_a_conversation_do_not_depend_on_others():
    bodies = [{"messages": [user(f"q{number}"), assistant(f"r{number}")]} for number in range(20)]
    separate = [message_id for body in bodies for message_id in ids(lines(body))]
    assert ids(lines(*bodies)) == separate


@pytest.mark.parametrize(
    "other",
    [user("q1 "), assistant("q1"), {**user("q1"), "name": "mara"}],
    ids=["content", "role", "name"],
)
def test_a_changed_message_changes_its_id_and_all_later_ones(other):
    first, second = ids(lines(*TALK)), ids(lines(other, *TALK[1:]))
    assert not set(first) & set(second)


def test_ids_do_not_depend_on_the_order_of_keys_or_the_time_of_reading():
    reordered = [dict(reversed(message.items())) for message in TALK]
    assert ids(lines(*reordered)) == ids(lines(*TALK))


# Threads


def test_a_question_its_tool_calls_and_its_reply_share_a_trace():
    call = {"id": "c", "function": {"name": "f", "arguments": ""}}
    turns = [
        {"role": "system", "content": "be brief"},
        user("q1"),
        assistant(None, tool_calls=[call]),
        {"role": "tool", "tool_call_id": "c", "content": "5"},
        assistant("r1"),
        user("q2"),
        assistant("r2"),
    ]
    traces = [message.trace_id for message in messages(lines(*turns))]
    assert len(set(traces[1:5])) == 1
    assert traces[5] == traces[6]
    assert len(set(traces)) == 3


def test_each_list_is_a_conversation_and_bare_lines_are_one_together():
    text = lines(user("bare"), {"messages": TALK}, {"messages": [user("x")]}, assistant("bare"))
    imported = [entry for entry in read(text) if isinstance(entry, Record)]
    conversations = [record.message.conversation_id for record in imported]
    assert conversations[0] == conversations[6] == imported[0].message.source_id
    assert set(conversations[1:5]) == {imported[1].message.source_id}
    assert conversations[5] == imported[5].message.source_id
    assert len(set(conversations)) == 3
    for record in imported:
        assert record.conversation is not None
        assert record.conversation.id == record.message.conversation_id
        assert record.conversation.source == "openai"


def test_a_message_has_no_scope_and_time():
    [record] = [entry for entry in read(lines(user("x"))) if isinstance(entry, Record)]
    assert (record.partition, record.instance) == (None, None)
    assert record.message.created_at is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["role", "content", "messages", "tool_calls", "function", "name", "id", "text", "type"]
)
NEARLY = st.recursive(
    JSON | st.sampled_from(["user", "assistant", "tool"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(NEARLY, max_size=4))
def test_no_json_stops_reading(values):
    for entry in read(lines(*values)):
        assert isinstance(entry, Record | Skipped)


@given(st.text(max_size=60))
def test_no_text_stops_reading(text):
    for entry in read(text):
        assert isinstance(entry, Record | Skipped)


@pytest.mark.parametrize("parameter", ["system", "input_schema"])
@pytest.mark.parametrize("with_tools", [True, False])
def test_a_parameter_may_be_named_like_a_key_of_anthropic(parameter, with_tools):
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    call = {"id": "c1", "function": {"name": "f", "arguments": {parameter: "x"}}}
    result = {"role": "tool", "tool_call_id": "c1", "content": "42"}
    talk = [user("q"), assistant("r", tool_calls=[call]), result]
    body = {"messages": talk, "tools": tools} if with_tools else {"messages": talk}
    assert choose(file_of(lines(body))).name == "openai"
    schema_only = {"messages": TALK, "tools": [{"name": "f", "input_schema": schema}]}
    assert choose(file_of(lines(schema_only))).name == "anthropic"
