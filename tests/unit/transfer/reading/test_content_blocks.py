"""Content blocks, which Claude, Claude Code and Anthropic's API share."""

from typing import Any

import pytest
from each import each
from reading import lines, read, records, skipped

from reservoir_cli.messages import Message
from reservoir_cli.transfer.formats.claude_code import ClaudeCode
from reservoir_cli.transfer.reading import content_blocks


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def use(identity: Any, name: Any = "f", arguments: Any = None) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments}


def result(identity: Any, content: Any = "5") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, "content": content}


def rows(content: Any, role: str = "assistant") -> list[tuple[str, str, list[str], str | None]]:
    return [
        (
            message.role,
            message.content,
            [call.id for call in message.tool_calls],
            message.tool_call_id,
        )
        for message in content_blocks.messages(role, content, None, "m")
    ]


CONTENTS = [
    ("a text", "hello", [("assistant", "hello", [], None)]),
    ("blocks of text", [text("a"), "b", None], [("assistant", "a\nb", [], None)]),
    ("nothing", [], []),
    ("null", None, []),
    ("blanks", [text(" ")], []),
    ("a call", [text("a"), use("c")], [("assistant", "a", ["c"], None)]),
    (
        "a call and its result in one",
        [text("a"), use("c"), result("c"), text("b")],
        [("assistant", "a", ["c"], None), ("tool", "5", [], "c"), ("assistant", "b", [], None)],
    ),
    (
        "calls without ids are answered in their order",
        [use(None), use(None), result(None), result(None)],
        [
            ("assistant", "", ["m/1", "m/2"], None),
            ("tool", "5", [], "m/1"),
            ("tool", "5", [], "m/2"),
        ],
    ),
    (
        "the text beside a call without a name",
        [text("a"), use("c", None), result("c"), text("b")],
        [("assistant", "a", [], None), ("tool", "5", [], "c"), ("assistant", "b", [], None)],
    ),
    ("a result without a call", [result(None)], [("tool", "5", [], None)]),
    ("a result of nothing", [result("c", None)], [("tool", "", [], "c")]),
    ("a result of one block", [result("c", text("5"))], [("tool", "5", [], "c")]),
    (
        "thinking stands behind what it led to",
        [{"type": "thinking", "thinking": "hm"}, text("a"), use("c")],
        [("assistant", "a", ["c"], None), ("system", "hm", [], None)],
    ),
    ("thinking alone", [{"type": "thinking", "thinking": "hm"}], [("system", "hm", [], None)]),
    ("thinking that is withheld", [{"type": "redacted_thinking", "data": "x"}], []),
    ("thinking of nothing", [{"type": "thinking", "thinking": ""}], []),
    ("a picture", [{"type": "image", "source": {}}], [("assistant", "[image]", [], None)]),
    ("a document", [{"type": "document"}], [("assistant", "[file]", [], None)]),
    (
        "a document with a title",
        [{"type": "document", "title": "a\nb"}],
        [("assistant", "[file a b]", [], None)],
    ),
    ("an unknown kind", [{"type": "hologram"}], [("assistant", "[hologram]", [], None)]),
    ("no kind", [{"a": 1}, 5], [("assistant", "[part]\n[part]", [], None)]),
]


@each("content, expected", [row[1:] for row in CONTENTS])
def test_blocks_become_messages(content, expected):
    assert rows(content) == expected


@each("content", [5, {"a": 1}, [use("c", None)], [use("c", [])], [result("c", 5)]])
def test_unreadable_blocks_have_a_reason(content):
    with pytest.raises(ValueError, match=r"neither a text nor a list|without a name"):
        content_blocks.messages("assistant", content, None)


# The lines of Claude Code


def line(uuid: str | None, kind: str = "assistant", **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": [text(str(uuid))], "id": more.pop("id", None)}
    return {"type": kind, "uuid": uuid, "sessionId": "s", "message": message, **more}


def code(*values: dict[str, Any]) -> list[Message]:
    entries = read(lines(*values), ClaudeCode())
    assert skipped(entries) == []
    return [record.message for record in records(entries)]


def test_adjacent_lines_of_a_reply_are_one_message():
    ids = {"id": "m1", "requestId": "r1"}
    progress = {"type": "progress", "sessionId": "s"}
    messages = code(line("a", **ids), line("b", **ids), progress, line("c", **ids))
    assert [(message.source_id, message.content) for message in messages] == [("a", "a\nb\nc")]


APART = [
    ({"id": "m1"}, {"id": "m1"}),
    ({"requestId": "r1"}, {"requestId": "r1"}),
    ({"id": "m1", "requestId": "r1"}, {"id": "m1", "requestId": "r2"}),
    ({"id": "m1", "requestId": "r1"}, {"id": "m2", "requestId": "r1"}),
    ({}, {}),
]


@each(("first", "second"), APART)
def test_lines_that_do_not_share_both_ids_are_separate_messages(first, second):
    assert [message.content for message in code(line("a", **first), line("b", **second))] == [
        "a",
        "b",
    ]


def test_lines_that_are_not_adjacent_are_not_merged():
    ids = {"id": "m1", "requestId": "r1"}
    messages = code(line("a", **ids), line("b", "user"), line("c", **ids))
    assert [message.content for message in messages] == ["a", "b", "c"]


def test_a_resumed_session_has_the_same_message_ids():
    first = code(line("a", "user"), line("b"))
    resumed = code(line("a", "user"), line("b"), line("a", "user"), line("b"), line("c", "user"))
    assert [message.source_id for message in first] == ["a", "b"]
    assert [message.source_id for message in resumed] == ["a", "b", "c"]


def test_lines_of_the_program_itself_are_skipped():
    messages = code(
        line("a", "user", isMeta=True), line("b", "user", isCompactSummary=True), line("c")
    )
    assert [message.content for message in messages] == ["c"]


def test_a_subagent_of_a_session_has_its_own_conversation():
    messages = code(
        line("a", "user"),
        line("b", "user", isSidechain=True, agentId="x"),
        line("c", isSidechain=True, agentId="x"),
        line("d", isSidechain=True),
        line("e"),
    )
    assert [message.conversation_id for message in messages] == [
        "s",
        "s/x",
        "s/x",
        "s/sidechain",
        "s",
    ]
    assert messages[0].trace_id == messages[4].trace_id
    assert messages[1].trace_id == messages[2].trace_id != messages[0].trace_id


def test_lines_without_a_session_or_an_id_belong_to_their_file():
    bare = {**line(None, "user"), "sessionId": None}
    messages = code(bare, bare)
    assert {message.conversation_id for message in messages} == {"file"}
    assert len({message.source_id for message in messages}) == 2
