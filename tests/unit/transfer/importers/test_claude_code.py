"""Special cases of Claude Code's sessions."""

from typing import Any

import pytest
from reading import file_of, lines, read, records, roles_and_texts, skipped

from reservoir_cli.transfer.importers import Record, Skipped
from reservoir_cli.transfer.importers.claude_code import ClaudeCode
from reservoir_cli.transfer.importers.resume import Checkpoint


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


def test_a_message_typed_while_a_reply_is_written_is_imported() -> None:
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


def test_it_is_imported_with_its_pictures() -> None:
    prompt = [{"type": "text", "text": "Like this:"}, {"type": "image", "source": {}}]
    assert roles_and_texts(read(lines(queued(1, prompt)), ClaudeCode())) == [
        ("user", "Like this:\n[image]")
    ]


@pytest.mark.parametrize(
    "attachment",
    [
        queued(1, "<task-notification>done</task-notification>", commandMode="task-notification"),
        queued(1, "done", origin={"kind": "task-notification"}),
        queued(1, "done", commandMode="bash"),
        line(1, "attachment", attachment={"type": "task_reminder", "prompt": "done"}),
        line(1, "attachment", attachment="queued_command"),
    ],
)
def test_attachments_that_nobody_typed_are_left_out(attachment: dict[str, Any]) -> None:
    assert read(lines(attachment), ClaudeCode()) == []


@pytest.mark.parametrize("kind", ["peer", "task-notification"])
def test_messages_that_other_sessions_sent_are_left_out(kind: str) -> None:
    sent = said(1, "user", "Birds are done.") | {"origin": {"kind": kind}}
    typed = said(2, "user", "Which bird?") | {"origin": {"kind": "human"}}
    helper = {"isSidechain": True, "agentId": "h1"}
    task = said(3, "user", "Look at the birds.") | helper | {"origin": {"kind": "agent"}}
    assert roles_and_texts(read(lines(sent, typed, task), ClaudeCode())) == [
        ("user", "Which bird?"),
        ("user", "Look at the birds."),
    ]


def test_a_sync_reads_the_same_messages() -> None:
    entries = list(ClaudeCode().resume(file_of(lines(*TYPED_MEANWHILE)), Checkpoint()))
    messages = [entry for entry in entries if isinstance(entry, Record | Skipped)]
    assert roles_and_texts(messages) == roles_and_texts(read(lines(*TYPED_MEANWHILE), ClaudeCode()))
