"""Special cases of Claude.ai's export."""

import json
from typing import Any

from reading import lines, read, records, roles_and_texts

from reservoir_cli.transfer.importers.claude import Claude


def test_blocks_that_are_not_displayed_are_left_out() -> None:
    content = [
        {"type": "text", "text": "Done."},
        {"type": "token_budget"},
        {"type": "flag", "flag": "x"},
    ]
    reply = {"uuid": "m", "sender": "assistant", "text": "", "content": content}
    entries = read(lines({"uuid": "c", "chat_messages": [reply]}), Claude())
    assert roles_and_texts(entries) == [("assistant", "Done.")]


def test_artifacts_are_text() -> None:
    created = {"command": "create", "title": "Letter", "content": "Dear Ms Lee,\nthe pump leaks."}
    changed = {"command": "update", "old_str": "leaks", "new_str": "drips"}
    content = [
        {"type": "tool_use", "id": "t1", "name": "artifacts", "input": created},
        {"type": "tool_result", "tool_use_id": "t1", "content": "OK"},
        {"type": "tool_use", "id": "t2", "name": "artifacts", "input": changed},
        {"type": "tool_use", "id": "t3", "name": "create_file", "input": {"file_text": "# Plan"}},
        {"type": "tool_use", "id": "t4", "name": "web_search", "input": {"content": "kept"}},
    ]
    reply = {"uuid": "m", "sender": "assistant", "text": "Not used.", "content": content}
    entries = read(lines({"uuid": "c", "chat_messages": [reply]}), Claude())
    texts = ["Dear Ms Lee,\nthe pump leaks.", "OK", "drips\n# Plan"]
    assert [record.message.content for record in records(entries)] == texts
    calls = [call for record in records(entries) for call in record.message.tool_calls]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [
        ("artifacts", {"command": "create", "title": "Letter"}),
        ("artifacts", {"command": "update", "old_str": "leaks"}),
        ("create_file", {}),
        ("web_search", {"content": "kept"}),
    ]


def test_the_placeholder_of_a_call_is_no_text() -> None:
    placeholder = "\n```\nThis block is not supported on your current device yet.\n```\n"
    call = {"type": "tool_use", "id": "t", "name": "web_search", "input": {}}
    reply = {"uuid": "m", "sender": "assistant", "text": 2 * placeholder, "content": [call]}
    [entry] = read(lines({"uuid": "c", "chat_messages": [reply]}), Claude())
    assert roles_and_texts([entry]) == [("assistant", "")]
    before = {**reply, "content": None, "text": f"Done.{placeholder}"}
    entries = read(lines({"uuid": "c", "chat_messages": [before]}), Claude())
    assert roles_and_texts(entries) == [("assistant", "Done.")]


#: The parent of the first message of a conversation, and of its other versions.
ROOT = "00000000-0000-4000-8000-000000000000"


def message(name: str, parent: str | None, minute: int) -> dict[str, Any]:
    sender = "human" if name.startswith("q") else "assistant"
    created_at = f"2026-06-01T09:{minute:02}:00Z"
    return {
        "uuid": name,
        "parent_message_uuid": parent,
        "sender": sender,
        "text": name,
        "created_at": created_at,
    }


def texts(*messages: dict[str, Any], **more: Any) -> list[str]:
    conversation = {"uuid": "c", "chat_messages": list(messages), **more}
    return [text for _, text in roles_and_texts(read(lines(conversation), Claude()))]


EDITED = (
    message("q1", ROOT, 0),
    message("a1", "q1", 1),
    message("q2", "a1", 2),
    message("a2", "q2", 3),
    message("q2 edited", "a1", 4),
    message("a2 to the edited", "q2 edited", 5),
    message("a2 again", "q2 edited", 6),
    message("q3", "a2 again", 7),
)


def test_edited_questions_and_repeated_answers_are_left_out() -> None:
    assert texts(*EDITED) == ["q1", "a1", "q2 edited", "a2 again", "q3"]
    assert texts(*EDITED, current_leaf_message_uuid="a2") == ["q1", "a1", "q2", "a2"]
    first_edited = [message("q1 edited", ROOT, 8), message("a1 to the edited", "q1 edited", 9)]
    assert texts(*EDITED, *first_edited) == ["q1 edited", "a1 to the edited"]


def test_messages_without_a_known_parent_are_kept() -> None:
    flat = [{**entry, "parent_message_uuid": None} for entry in EDITED]
    assert len(texts(*flat)) == len(EDITED)
    with_gap = [entry for entry in EDITED if entry["uuid"] != "a1"]
    assert texts(*with_gap) == ["q1", "q2 edited", "a2 again", "q3"]
    in_a_circle = [message("q1", "a1", 0), message("a1", "q1", 1)]
    assert texts(*in_a_circle) == ["q1", "a1"]
