"""Chats of Open WebUI."""

import json
from typing import Any

import pytest
from databases import create_database
from each import each
from reading import SAMPLES, entries_by_file, file_of, read, records, roles_and_texts, skipped

from reservoir_cli.transfer.detect_format import choose
from reservoir_cli.transfer.formats.open_webui import OpenWebUI

EXPORT: list[Any] = json.loads((SAMPLES / "open-webui.json").read_text(encoding="utf-8"))


def message(identity: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    role = "user" if identity.startswith("u") else "assistant"
    return {"id": identity, "parentId": parent, "childrenIds": [], "role": role} | {
        "content": content,
        "timestamp": 1778328000,
        **more,
    }


def chat(*messages: dict[str, Any], current: Any = None, **more: Any) -> list[Any]:
    nodes = {node["id"]: node for node in messages}
    history = {"messages": nodes, "currentId": current}
    document = [{"id": "c1", "title": "T", "chat": {"history": history}, **more}]
    return read(json.dumps(document), OpenWebUI())


def answer(content: str) -> list[tuple[str, str]]:
    """Return the messages of a reply's text, with its calls as text."""
    imported = records(chat(message("a", None, content)))
    return [
        (
            record.message.name or record.message.role,
            record.message.content or str([call.arguments for call in record.message.tool_calls]),
        )
        for record in imported
    ]


def test_the_database_and_its_export_give_the_same_messages(tmp_path):
    [exported] = entries_by_file(SAMPLES / "open-webui.json").values()
    [entries] = entries_by_file(create_database(tmp_path, "open-webui")).values()
    assert records(entries) == records(exported)
    assert skipped(entries) == [
        ("chat 3", "no history of messages"),
        ("chat 1, message 7", "unknown role"),
        ("chat 1, message 8", "content is neither a text nor a list of parts"),
        ("chat 5", "no history of messages"),
    ]


@each(
    ("damage", "lost"),
    [
        ({"a1": 5}, "One"),
        ({"u2": None}, "And?"),
        ({"a2": "x"}, "Two"),
        ({"a1": {"parentId": 7}}, None),
        ({"u2": {"parentId": "gone"}}, None),
        ({"a2": {"parentId": None}}, None),
    ],
)
def test_a_damaged_message_does_not_hide_those_before_it(damage, lost):
    tree = [
        message("u1", None, "Why?", childrenIds=["a0", "a1"]),
        message("a0", "u1", "Zero", timestamp=1778329000),
        message("a1", "u1", "One", childrenIds=["u2", 3]),
        message("u2", "a1", "And?", childrenIds=["a2"]),
        message("a2", "u2", "Two"),
    ]
    [(name, change)] = damage.items()
    nodes = {node["id"]: node for node in tree}
    nodes[name] = nodes[name] | change if isinstance(change, dict) else change
    history = {"messages": nodes, "currentId": "a2"}
    entries = read(json.dumps([{"id": "c1", "chat": {"history": history}}]), OpenWebUI())
    whole = ["Why?", "One", "And?", "Two"]
    assert [text for _, text in roles_and_texts(entries)] == [
        text for text in whole if text != lost
    ]
    assert [reason for _, reason in skipped(entries)] == ["not a message"] * bool(lost)


@pytest.mark.parametrize(("listed", "seen"), [(["gone"], ["Why?", "And?"]), ([], ["And?"])])
def test_a_missing_message_does_not_hide_those_before_it(listed, seen):
    first = message("u1", None, "Why?", childrenIds=listed)
    entries = chat(first, message("u2", "gone", "And?"), current="u2")
    assert [text for _, text in roles_and_texts(entries)] == seen
    assert skipped(entries) == []


def test_the_branch_seen_last_is_read():
    tree = (
        message("u1", None, "Why?"),
        message("a1", "u1", "One"),
        message("a2", "u1", "Two", timestamp=1778328009),
        message("u2", "a1", "And?"),
    )
    assert roles_and_texts(chat(*tree, current="u2"))[1:] == [
        ("assistant", "One"),
        ("user", "And?"),
    ]
    assert roles_and_texts(chat(*tree, current="a2"))[1:] == [("assistant", "Two")]
    for unknown in (None, "gone", 7):
        assert roles_and_texts(chat(*tree, current=unknown))[1:] == [("assistant", "Two")]
    ring = (message("u1", "a1", "Why?"), message("a1", "u1", "One"))
    assert len(records(chat(*ring, current="a1"))) == 2


def test_a_copied_chat_shares_its_messages():
    tree = (message("u1", None, "Why?"), message("a1", "u1", "So."))
    ids = [record.message.source_id for record in records(chat(*tree, current="a1"))]
    copy = records(chat(*tree, current="a1", id="c2"))
    assert [record.message.source_id for record in copy] == ids == ["u1", "a1"]


@each(
    ("content", "rows"),
    [
        ('<details type="reasoning" done="true">x', None),
        ("<details>\n<summary>More</summary>\nx\n</details>", None),
        ('a <details type="files">x</details>', None),
        (
            '<details type="reasoning" done="false">\n<summary>x</summary>\n> a\n</details>b',
            [("assistant", "b"), ("thinking", "a")],
        ),
        (
            '<details type="tool_calls" done="true" id="c" name="f" arguments="{&quot;a&quot;: 1}">'
            "\n<summary>Tool Executed</summary>\nan &lt;answer&gt;\n</details>",
            [("assistant", "['{\"a\": 1}']"), ("tool", "an <answer>")],
        ),
        (
            '<details type="tool_calls" done="false" id="c" name="f" arguments="">\n</details>',
            [("assistant", "['']")],
        ),
    ],
)
def test_details_in_the_text_of_a_reply_are_parsed(content, rows):
    assert answer(content) == (rows or [("assistant", content)])


def test_a_call_without_a_name_skips_only_its_message():
    call = '<details type="tool_calls" id="c"></details>'
    entries = chat(message("u1", None, "Why?"), message("a1", "u1", call), current="a1")
    assert roles_and_texts(entries) == [("user", "Why?")]
    assert skipped(entries) == [("entry 1, message 2", "a tool call without a name")]


def test_many_open_details_are_read_quickly():
    content = '<details type="reasoning">' * 200_000
    assert answer(content) == [("assistant", content)]


@each("title", ["New Chat", "", None, 7])
def test_a_chat_may_lack_a_title(title):
    [record] = records(chat(message("u1", None, "Why?"), title=title))
    assert record.conversation is not None
    assert record.conversation.title is None


@each(
    ("document", "form"),
    [
        (EXPORT, "open-webui"),
        (EXPORT[0], "open-webui"),
        ([{"mapping": {}, "history": 1}], "chatgpt"),
        ([{"role": "user", "content": "history: currentId"}], "openai"),
        ([{"role": "user", "content": "x", "currentId": 1}], "openai"),
    ],
)
def test_an_export_is_distinguished_from_other_documents(document, form):
    assert choose(file_of(json.dumps(document))).name == form
