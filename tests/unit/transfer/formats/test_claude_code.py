"""Special cases of Claude Code's sessions."""

from typing import Any

import pytest
from each import each
from reading import file_of, lines, read, records, roles_and_texts, skipped

from reservoir_cli.transfer.formats.claude_code import ClaudeCode
from reservoir_cli.transfer.reading.importer import Checkpoint, Record, Skipped


def line(number: int, kind: str, **more: Any) -> dict[str, Any]:
    time = f"2026-05-09T10:00:{number:02}Z"
    return {"type": kind, "uuid": f"u{number}", "sessionId": "s", "timestamp": time, **more}


def said(number: int, role: str, content: Any) -> dict[str, Any]:
    return line(number, role, message={"role": role, "content": content})


def queued(number: int, prompt: Any, **more: Any) -> dict[str, Any]:
    attachment = {"type": "queued_command", "prompt": prompt, **more}
    return line(number, "attachment", attachment=attachment)


CALL = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "make"}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
TYPED_MEANWHILE = (
    said(1, "user", "Build it."),
    said(2, "assistant", [CALL]),
    line(3, "queue-operation", operation="enqueue", content="And test it."),
    said(4, "user", [RESULT]),
    queued(5, "And test it.", commandMode="prompt", origin={"kind": "human"}),
    said(6, "assistant", "Built and tested."),
)


def test_a_message_typed_while_a_reply_is_written_is_imported():
    entries = read(lines(*TYPED_MEANWHILE), ClaudeCode())
    assert skipped(entries) == []
    assert roles_and_texts(entries) == [
        ("user", "Build it."),
        ("assistant", ""),
        ("tool", "ok"),
        ("user", "And test it."),
        ("assistant", "Built and tested."),
    ]
    assert [record.message.source_id for record in records(entries)][3] == "u5"


def test_it_is_imported_with_its_pictures():
    prompt = [{"type": "text", "text": "Like this:"}, {"type": "image", "source": {}}]
    assert roles_and_texts(read(lines(queued(1, prompt)), ClaudeCode())) == [
        ("user", "Like this:\n[image]")
    ]


@each(
    "attachment",
    [
        queued(1, "<task-notification>done</task-notification>", commandMode="task-notification"),
        queued(1, "done", origin={"kind": "task-notification"}),
        queued(1, "done", commandMode="bash"),
        line(1, "attachment", attachment={"type": "task_reminder", "prompt": "done"}),
        line(1, "attachment", attachment="queued_command"),
    ],
)
def test_attachments_that_nobody_typed_are_left_out(attachment):
    assert read(lines(attachment), ClaudeCode()) == []


@pytest.mark.parametrize("kind", ["peer", "task-notification"])
def test_messages_that_other_sessions_sent_are_left_out(kind):
    sent = said(1, "user", "Birds are done.") | {"origin": {"kind": kind}}
    typed = said(2, "user", "Which bird?") | {"origin": {"kind": "human"}}
    helper = {"isSidechain": True, "agentId": "h1"}
    task = said(3, "user", "Look at the birds.") | helper | {"origin": {"kind": "agent"}}
    assert roles_and_texts(read(lines(sent, typed, task), ClaudeCode())) == [
        ("user", "Which bird?"),
        ("user", "Look at the birds."),
    ]


def test_a_sync_reads_the_same_messages():
    entries = list(ClaudeCode().resume(file_of(lines(*TYPED_MEANWHILE)), Checkpoint()))
    messages = [entry for entry in entries if isinstance(entry, Record | Skipped)]
    assert roles_and_texts(messages) == roles_and_texts(read(lines(*TYPED_MEANWHILE), ClaudeCode()))


def child(number: int, parent: int | None, role: str, content: Any) -> dict[str, Any]:
    return said(number, role, content) | {"parentUuid": f"u{parent}" if parent else None}


def test_turns_that_were_taken_back_are_left_out():
    second = {"type": "tool_use", "id": "t2", "name": "Bash", "input": {}}
    entries = read(
        lines(
            child(1, None, "user", "Which bird?"),
            child(2, 1, "assistant", [CALL]),
            child(3, 2, "assistant", [second]),
            child(4, 2, "user", [RESULT]),  # both results have another parent than what follows
            child(5, 3, "user", [RESULT | {"tool_use_id": "t2"}]),
            child(6, 5, "assistant", "A pelican."),
            child(7, 6, "user", "How old?"),
            child(8, 7, "assistant", [CALL]),
            child(9, 8, "user", [RESULT]),
            child(10, 9, "assistant", "Ten."),
            child(11, 10, "user", "And the other?"),
            child(12, 6, "user", "How long?"),
            child(13, 12, "assistant", "1.2 m."),
            child(12, 6, "user", "How long?"),  # repeated
        ),
        ClaudeCode(),
    )
    ids = [str(record.message.source_id) for record in records(entries)]
    assert ids == ["u1", "u2", "u3", "u4#t", "u5#t2", "u6", "u12", "u13"]


def test_a_session_in_two_windows_is_imported():
    entries = read(
        lines(
            child(1, None, "user", "Which bird?"),
            child(2, 1, "assistant", "A pelican."),
            child(3, 2, "user", "How old?"),
            child(4, 2, "user", "How long?"),
            child(5, 3, "assistant", "Ten."),
            child(6, 4, "assistant", "1.2 m."),
        ),
        ClaudeCode(),
    )
    assert len(records(entries)) == 6


def test_only_questions_with_words_are_taken_back_by_others():
    interrupted = child(3, 1, "user", "[Request interrupted by user]")
    entries = read(
        lines(
            child(1, None, "user", "Which bird?"),
            said(2, "user", "And which tree?"),
            interrupted,
            child(4, 3, "assistant", "An oak."),
            child(5, 1, "user", {"oops": 1}),
            child(6, 1, "user", "How long?"),
        ),
        ClaudeCode(),
    )
    assert [content for _, content in roles_and_texts(entries)] == [
        "Which bird?",
        "And which tree?",
        "An oak.",
        "How long?",
    ]
    assert len(skipped(entries)) == 1
