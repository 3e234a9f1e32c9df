"""Special cases of Codex's sessions, of today's versions and older ones."""

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from each import each
from reading import (
    entries_by_file,
    last_conversation,
    lines,
    read,
    records,
    roles_and_texts,
    skipped,
)

from reservoir_cli.messages import Message
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.transfer.reading.decompressed_file import File, Unreadable
from reservoir_cli.transfer.reading.importer import Thread

NOON = "2026-07-01T12:00:00.000Z"
META = {"timestamp": NOON, "type": "session_meta", "payload": {"id": "c1", "cwd": "/src/birds"}}
OLD_TIME = "2025-06-03T09:30:00.000Z"
OLD_META = {"id": "old", "timestamp": OLD_TIME, "instructions": None, "git": {"branch": "nests"}}
FOLDER = "<environment_context>\n<cwd>/src/birds</cwd>\n</environment_context>"


def parts(role: str, *texts: str) -> dict[str, Any]:
    return {
        "type": "message",
        "role": role,
        "content": [{"type": "input_text", "text": text} for text in texts],
    }


def line(item: dict[str, Any], kind: str = "response_item") -> dict[str, Any]:
    return {"timestamp": NOON, "type": kind, "payload": item}


def questions(*texts: str) -> list[tuple[str, str]]:
    """Return the messages read from user messages with these texts."""
    return roles_and_texts(read(lines(META, *(line(parts("user", text)) for text in texts))))


@each(
    "notice",
    [
        '<codex_internal_context source="goal">\nGo on.\n</codex_internal_context>',
        "<goal_context>\nGo on.\n</goal_context>",
        '<hook_prompt hook_run_id="h1">Run the linter.</hook_prompt>',
        "<recommended_plugins>\nbirds\n</recommended_plugins>",
        "<external_selection>a nest</external_selection>",
        "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nBe short.\n</INSTRUCTIONS>",
        "Warning: The maximum number of unified exec processes you can keep open is 60.",
    ],
)
def test_what_codex_writes_as_the_user_is_left_out_without_changing_ids(notice):
    imported = records(read(lines(META, line(parts("user", notice)), line(parts("user", "Why?")))))
    assert [record.message.content for record in imported] == ["Why?"]
    thread = Thread("codex", "c1")
    ids = [thread.new_id(Message("user", text)) for text in (notice, "Why?")]
    assert imported[0].message.source_id == ids[1]


@pytest.mark.parametrize(
    "typed",
    [
        "<external_selection> is a tag. Which program writes it?",
        "Warning: apply_patch was requested via exec_command.\nWhat does that mean?",
        "What is a <hook_prompt>?",
    ],
)
def test_questions_about_what_codex_writes_stay(typed):
    assert questions(typed) == [("user", typed)]


def test_a_notice_in_one_part_does_not_remove_the_question_in_another():
    message = line(parts("user", "<skill>\nbirds\n</skill>", "Why?"))
    assert roles_and_texts(read(lines(META, message))) == [("user", "Why?")]


@pytest.mark.parametrize("heading", ["## My request for Codex:", "## My request:"])
def test_attached_files_are_named_before_the_question(heading):
    setup = "# Files mentioned by the user:\n\n## nest.png: /tmp/nest.png\n\n## a.txt: /tmp/a.txt\n"
    picture = ["<image name=[Image #1]>", "</image>"]
    message = line(parts("user", f"\n{setup}\n{heading}\nWhich bird?\n", *picture))
    assert roles_and_texts(read(lines(META, message))) == [
        ("user", "[image]\n[file a.txt]\nWhich bird?")
    ]


def review(results: str) -> dict[str, Any]:
    context = "<context>User initiated a review task.</context>\n  <action>review</action>"
    body = f"  {context}\n  <results>\n  {results}\n  </results>"
    return line(parts("user", f"<user_action>\n{body}\n</user_action>\n"))


def test_a_review_is_one_reply():
    findings = "Sound, but for one thing.\nThe cursor is pinned."
    said = line(parts("assistant", findings.replace("\n", "\n\n")))
    last = [line(parts("user", "Mend it.")), line(parts("assistant", "Done."))]
    expected = [("assistant", findings), ("user", "Mend it."), ("assistant", "Done.")]
    assert roles_and_texts(read(lines(META, review(findings), said, *last))) == expected
    assert roles_and_texts(read(lines(META, review(findings), *last))) == expected
    assert roles_and_texts(read(lines(META, review("None."), *last))) == expected[1:]


def test_the_name_given_to_a_session_is_its_title(tmp_path):
    def named(name: str, session: str = "c1") -> dict[str, Any]:
        event = {"type": "thread_name_updated", "thread_id": session, "thread_name": name}
        return line(event, "event_msg")

    text = lines(META, line(parts("user", "Why?")), named("Owls"), named("Rooks", "c2"))
    assert last_conversation(read(text)).title == "Owls"


OLD_ITEMS = [
    parts("user", FOLDER),
    parts("user", "Why is the nest empty?"),
    {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"},
    {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "1"},
    {"type": "function_call_output", "call_id": "1", "output": "no eggs"},
    parts("assistant", "They have flown."),
]


def write_old_session(folder: Path, name: str) -> Path:
    """Write a session of an old version: lines without a payload, or one document."""
    path = folder / name
    if name.endswith(".json"):
        document = {"session": OLD_META, "items": OLD_ITEMS}
        path.write_text(json.dumps(document, indent=2), encoding="utf-8")
    else:
        state = {"record_type": "state"}
        path.write_text(lines(OLD_META, state, *OLD_ITEMS, state), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["rollout-2025-06-03-old.jsonl", "rollout-2025-04-20-old.json"])
def test_sessions_of_old_versions_are_read(tmp_path, name):
    write_old_session(tmp_path, name)
    (tmp_path / "rollout-new.jsonl").write_text(
        lines(META, line(parts("user", "Which bird?"))), encoding="utf-8"
    )
    imported = records(entries_by_file(tmp_path)[name])
    assert roles_and_texts(imported) == [
        ("user", "Why is the nest empty?"),
        ("assistant", ""),
        ("tool", "no eggs"),
        ("assistant", "They have flown."),
    ]
    assert {record.folder for record in imported} == {"/src/birds"}
    times = {f"{record.message.created_at:%Y-%m-%dT%H:%M}" for record in imported}
    assert times == {"2025-06-03T09:30"}
    about = last_conversation(imported)
    assert (about.id, about.project, about.title) == ("old", "birds", None)


# Compressed sessions

LIBRARY = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
needs_library = pytest.mark.skipif(
    importlib.util.find_spec("backports") is None and sys.version_info < (3, 14),
    reason="the extra zed is not installed",
)


def write_compressed(path: Path, text: str) -> None:
    compressed = importlib.import_module(LIBRARY).compress(text.encode())
    path.write_bytes(compressed)


@needs_library
def test_a_session_that_codex_compressed_is_imported_once(tmp_path):
    text = lines(META, line(parts("user", "Why?")), line(parts("assistant", "So.")))
    plain = tmp_path / "sessions" / "rollout-c1.jsonl"
    plain.parent.mkdir()
    plain.write_text(text, encoding="utf-8")
    compressed = plain.with_name(f"{plain.name}.zst")
    with Reservoir.open(tmp_path / "birds.db") as reservoir:
        assert reservoir.import_files(plain.parent).imported == 2
        plain.unlink()
        write_compressed(compressed, text + lines(line(parts("user", "And?"))))
        for source, counts in ((plain.parent, (1, 2)), (compressed, (0, 3))):
            report = reservoir.import_files(source)
            assert (report.imported, report.already) == counts


@needs_library
def test_a_damaged_compressed_session_is_reported(tmp_path):
    texts = [f"Question {number}: {'?' * 50_000}" for number in range(9)]
    whole = tmp_path / "rollout-c1.jsonl.zst"
    write_compressed(whole, lines(META, *(line(parts("user", text)) for text in texts)))
    whole.write_bytes(whole.read_bytes()[:-20])
    bomb = tmp_path / "rollout-c2.jsonl.zst"
    write_compressed(bomb, lines(META) + " " * (100 << 20))
    (tmp_path / "rollout-c3.jsonl.zst").write_bytes(b"not compressed")
    reasons = {name: skipped(entries) for name, entries in entries_by_file(tmp_path).items()}
    assert reasons["rollout-c1.jsonl.zst"][-1] == ("what follows", "the file is damaged here")
    assert reasons["rollout-c2.jsonl.zst"] == [
        ("what follows", "it unpacks to far more than its size")
    ]
    assert reasons["rollout-c3.jsonl.zst"] == [("what follows", "the file is damaged here")]


def test_without_a_library_compressed_sessions_are_reported(tmp_path, monkeypatch):
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "rollout-c1.jsonl.zst").write_bytes(b"x")
    (tmp_path / "rollout-c2.jsonl").write_text(lines(META, line(parts("user", "Why?"))))
    reason = 'compressed with zstd: pip install "reservoir-cli[zed]" --find-links dist'
    entries = entries_by_file(tmp_path)
    assert skipped(entries["rollout-c1.jsonl.zst"]) == [("what follows", reason)]
    assert len(records(entries["rollout-c2.jsonl"])) == 1
    path = tmp_path / "rollout-c1.jsonl.zst"
    with pytest.raises(Unreadable, match="compressed with zstd"):
        File.of_path(path, path.stat()).open()


def test_items_beside_messages_are_kept(tmp_path):
    found = {"action": {"type": "search", "query": "tannin"}, "id": "ws", "type": "web_search_call"}
    thinking = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "By the bark."}]}
    asked = {"type": "tool_search_call", "call_id": "t", "arguments": {"query": "mail"}}
    tools = {"type": "tool_search_output", "call_id": "t", "tools": [{"name": "send"}]}
    drawn = {"type": "image_generation_call", "id": "i", "result": "AAAA"}
    encrypted = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    items = [found, thinking, encrypted, asked, tools, drawn]
    entries = read(lines(*({"type": "response_item", "payload": item} for item in items)))
    assert [(record.message.role, record.message.content) for record in records(entries)] == [
        ("assistant", ""),
        ("system", "By the bark."),
        ("assistant", ""),
        ("tool", '[{"name": "send"}]'),
        ("assistant", "[image]"),
    ]
    calls = [call.name for record in records(entries) for call in record.message.tool_calls]
    assert calls == ["web_search", "tool_search"]


@pytest.mark.parametrize("end", ["\n</oai-mem-citation>", "\n</oai-mem-citation>\n", ""])
def test_what_a_reply_cites_of_the_memory_is_left_out(end):
    cited = f"Oak bark.\n\n<oai-mem-citation>\n<citation_entries>\nMEMORY.md:1|note=[x]{end}"
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text"}]}
    item["content"][0]["text"] = cited  # type: ignore[index]
    entries = read(lines({"type": "response_item", "payload": item}))
    assert [record.message.content for record in records(entries)] == ["Oak bark."]
