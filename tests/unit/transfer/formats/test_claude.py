"""Special cases of Claude.ai's export."""

import json
from typing import Any

from reading import (
    entries_by_file,
    last_conversation,
    lines,
    read,
    records,
    roles_and_texts,
    skipped,
)

from reservoir_cli.transfer.formats.claude import Claude


def test_blocks_that_are_not_displayed_are_left_out():
    content = [
        {"type": "text", "text": "Done."},
        {"type": "token_budget"},
        {"type": "flag", "flag": "x"},
    ]
    reply = {"uuid": "m", "sender": "assistant", "text": "", "content": content}
    entries = read(lines({"uuid": "c", "chat_messages": [reply]}), Claude())
    assert roles_and_texts(entries) == [("assistant", "Done.")]


def test_prompts_that_the_application_adds_are_left_out():
    added = {"type": "injected_prompt_block", "prompt": "Today is Monday.", "injection_source": "d"}
    content = [{"type": "text", "text": "Which day is it?"}, added]
    question = {"uuid": "m", "sender": "human", "text": "", "content": content}
    entries = read(lines({"uuid": "c", "chat_messages": [question]}), Claude())
    assert roles_and_texts(entries) == [("user", "Which day is it?")]


def test_a_file_with_extracted_text_is_named_once():
    attached = {"file_name": "plan.md", "extracted_content": "# Plan"}
    files = [{"file_name": "plan.md"}, {"file_name": "nest.png"}, {"file_name": "nest.pdf"}]
    question = {"uuid": "m", "sender": "human", "text": "Good?", "content": []}
    question |= {"attachments": [attached], "files": files}
    entries = read(lines({"uuid": "c", "chat_messages": [question]}), Claude())
    text = "[file plan.md]\n# Plan\n[image]\n[file nest.pdf]\nGood?"
    assert roles_and_texts(entries) == [("user", text)]


def test_drafts_of_messages_are_text():
    drafts = [{"label": "Short", "subject": "The pump", "body": "Dear Ms Lee"}, {"body": "Hello"}]
    arguments = {"kind": "email", "variants": drafts}
    call = {"type": "tool_use", "id": "t", "name": "message_compose_v1", "input": arguments}
    reply = {"uuid": "m", "sender": "assistant", "text": "", "content": [call]}
    [record] = records(read(lines({"uuid": "c", "chat_messages": [reply]}), Claude()))
    assert record.message.content == "The pump\nDear Ms Lee\nHello"
    assert json.loads(record.message.tool_calls[0].arguments) == {"kind": "email"}


def row(name: str, role: str, **content: Any) -> dict[str, Any]:
    time = "2026-05-01T10:00:00Z"
    return {"uuid": name, "role": role, "created_at": time, "content": {"role": role, **content}}


DESIGN = {
    "uuid": "d1",
    "title": "A poster",
    "project": {"uuid": "p1", "name": "Birds"},
    "created_at": "2026-05-01T09:00:00Z",
    "messages": [
        row(
            "r1",
            "user",
            content="Draw an owl.",
            attachments=[
                {"type": "comment", "name": "header", "content": "Feedback: bigger"},
                {"type": "skill", "name": "Poster", "content": "How to draw posters"},
                {"type": "text", "name": "result", "content": "ok", "hidden": True},
            ],
        ),
        row("r2", "user", content="A check ended.", pill=True),
        row(
            "r3",
            "assistant",
            contentBlocks=[
                {"type": "thinking", "text": "An owl has two eyes."},
                {"type": "text", "text": "I begin."},
                {"type": "tool_call", "toolCall": {"id": "t", "name": "draw", "output": "drawn"}},
                {"type": "user_interjection", "message": {"content": "In blue."}},
                {"type": "error", "message": "The stream ended."},
                {"type": "text", "text": "It is blue."},
            ],
        ),
        row("r4", "assistant", kind="chat-summary", content="They drew an owl."),
        row("r5", "narrator", content="Who?"),
        row("r6", "user", content={"text": "What?"}),
    ],
}


def test_design_chats_are_imported(tmp_path):
    folder = tmp_path / "design_chats"
    folder.mkdir()
    (folder / "d1.json").write_text(json.dumps(DESIGN), encoding="utf-8")
    chat = {"uuid": "c", "name": "Nests", "chat_messages": []}
    (tmp_path / "conversations-0001.json").write_text(json.dumps([chat]), encoding="utf-8")
    (tmp_path / "memories.json").write_text('[{"conversations_memory": "Owls."}]', encoding="utf-8")
    entries = entries_by_file(tmp_path)["design_chats/d1.json"]
    assert roles_and_texts(entries) == [
        ("user", "[file header]\nFeedback: bigger\n[file Poster]\nDraw an owl."),
        ("assistant", "I begin."),
        ("system", "An owl has two eyes."),
        ("tool", "drawn"),
        ("user", "In blue."),
        ("assistant", "It is blue."),
    ]
    ids = [record.message.source_id for record in records(entries)]
    assert ids == ["r1", "r3", "r3#thinking", "r3#t", "r3#2", "r3#3"]
    assert skipped(entries) == [
        ("the document, message 5", "unknown role"),
        ("the document, message 6", "content is not a text"),
    ]
    about = last_conversation(entries)
    assert (about.id, about.title, about.source, about.project) == (
        "d1",
        "A poster",
        "claude",
        "Birds",
    )


def test_a_design_chat_without_a_list_is_skipped():
    assert skipped(read(lines({**DESIGN, "messages": {"1": {"content": {}}}}))) == [
        ("the document", "no list of messages")
    ]


def test_artifacts_are_text():
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


def test_the_placeholder_of_a_call_is_no_text():
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


def test_edited_questions_and_repeated_answers_are_left_out():
    assert texts(*EDITED) == ["q1", "a1", "q2 edited", "a2 again", "q3"]
    assert texts(*EDITED, current_leaf_message_uuid="a2") == ["q1", "a1", "q2", "a2"]
    first_edited = [message("q1 edited", ROOT, 8), message("a1 to the edited", "q1 edited", 9)]
    assert texts(*EDITED, *first_edited) == ["q1 edited", "a1 to the edited"]


def test_messages_without_a_known_parent_are_kept():
    flat = [{**entry, "parent_message_uuid": None} for entry in EDITED]
    assert len(texts(*flat)) == len(EDITED)
    with_gap = [entry for entry in EDITED if entry["uuid"] != "a1"]
    assert texts(*with_gap) == ["q1", "q2 edited", "a2 again", "q3"]
    in_a_circle = [message("q1", "a1", 0), message("a1", "q1", 1)]
    assert texts(*in_a_circle) == ["q1", "a1"]
