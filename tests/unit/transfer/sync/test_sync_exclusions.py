"""Files and messages that syncing and importing leave out."""

import importlib
import importlib.util
import json
import os
import platform
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from builders import ingestor
from databases import create_database
from sessions import WORK, Machine, turn

from reservoir_cli.messages import Scope
from reservoir_cli.storage.tables.sources import Sources
from reservoir_cli.transfer.detect_format import DetectedFile
from reservoir_cli.transfer.import_files import import_files
from reservoir_cli.transfer.leave_out import compile_exclusion, find_marked
from reservoir_cli.transfer.reading.decompressed_file import File
from reservoir_cli.transfer.reading.importer import Record, Skipped
from reservoir_cli.transfer.reports import ImportReport
from reservoir_cli.transfer.sync.history_sources import Source

pytestmark = pytest.mark.both_stores


def test_a_resumed_session_that_copies_all_lines_adds_only_what_is_new(machine):
    first = turn(1, "one?", "one.")
    machine.write("a/s1.jsonl", *first)
    machine.sync()
    copied = [row | {"sessionId": "s2"} for row in first]
    machine.write("a/s2.jsonl", *copied, *turn(3, "two?", "two.", sessionId="s2"))
    report = machine.sync()
    assert (report.imports.imported, report.imports.already) == (2, 2)
    assert machine.said(WORK) == ["one?", "one.", "two?", "two."]


def test_files_of_subagents_are_separate_conversations(machine):
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    helper = {"isSidechain": True, "agentId": "h1"}
    machine.write("a/s1/subagents/agent-h1.jsonl", *turn(3, "look", "found", **helper))
    machine.sync()
    names = {message.conversation_id for message in machine.store.last(WORK, 0)}
    assert names == {"s1", "s1/h1"}
    machine.write("a/s1/subagents/agent-h1.jsonl", *turn(5, "look again", "found it", **helper))
    assert machine.sync().imports.imported == 2


def test_sessions_that_codex_copied_from_others_are_left_out(machine):
    def rollout(session_id: str) -> list[dict[str, Any]]:
        messages = [("user", "input_text", "why?"), ("assistant", "output_text", "so")]
        return [
            {"type": "session_meta", "payload": {"id": session_id, "cwd": "/app"}},
            *(
                {
                    "type": "response_item",
                    "timestamp": "2026-06-01T09:00:00Z",
                    "payload": {
                        "type": "message",
                        "role": role,
                        "content": [{"type": kind, "text": f"{words} {session_id}"}],
                    },
                }
                for role, kind, words in messages
            ),
            {"type": "event_msg", "payload": {"type": "task_complete"}},
        ]

    for session_id in ("01aa", "01bb"):
        name = f"sessions/2026/06/01/rollout-2026-06-01T09-00-00-{session_id}.jsonl"
        machine.write(name, *rollout(session_id))
    imports = {"records": [{"imported_thread_id": "01bb", "source_path": "/a.jsonl"}, None]}
    ledger = machine.root / "external_agent_session_imports.json"
    ledger.write_text(json.dumps(imports), encoding="utf-8")
    source = Source("codex", "codex", machine.root / "sessions", "work")
    assert machine.sync(source=source).imports.imported == 2
    assert machine.said() == ["why? 01aa", "so 01aa"]
    assert machine.sync(source=source).read == 0


def test_a_fork_of_a_codex_session_is_a_conversation_of_its_own(machine):
    def meta(session_id: str) -> dict[str, Any]:
        return {"type": "session_meta", "payload": {"id": session_id, "cwd": "/app"}}

    def said(role: str, words: str, time: str) -> dict[str, Any]:
        content = [{"type": "input_text" if role == "user" else "output_text", "text": words}]
        message = {"type": "message", "role": role, "content": content}
        return {"type": "response_item", "timestamp": f"2026-06-01T{time}Z", "payload": message}

    def turns(time: str, *words: str) -> list[dict[str, Any]]:
        roles = ("user", "assistant") * len(words)
        return [said(role, text, time) for role, text in zip(roles, words, strict=False)]

    end = {"type": "event_msg", "payload": {"type": "task_complete"}}
    shared = ("why?", "so")
    machine.write("rollout-1.jsonl", meta("01aa"), *turns("09:00:00", *shared), end)
    # A fork repeats the session that it continues, with the time at which it was made.
    fork = [meta("01bb"), meta("01aa"), *turns("10:00:00", *shared), end]
    machine.write("rollout-2.jsonl", *fork, *turns("10:01:00", "and here?", "here, too"), end)
    again = [meta("01cc"), *fork, *turns("11:00:00", "and here?", "here, too"), end]
    last = machine.write("rollout-3.jsonl", *again, *turns("11:01:00", "thanks", "gladly"), end)
    os.utime(last, (0, 0))  # the sessions that it continues were changed later
    source = Source("codex", "codex", machine.root, "work")
    assert machine.sync(source=source).imports.imported == 6
    messages = machine.store.last(Scope("work", "codex"), 0)
    assert [(message.conversation_id, message.content) for message in messages] == [
        *(("01aa", words) for words in shared),
        *(("01bb", words) for words in ("and here?", "here, too")),
        *(("01cc", words) for words in ("thanks", "gladly")),
    ]


def test_a_marked_session_of_codex_is_left_out_with_its_subagents(machine):
    def rollout(session_id: str, words: str, **more: Any) -> list[dict[str, Any]]:
        content = [{"type": "input_text", "text": words}]
        message = {"type": "message", "role": "user", "content": content}
        return [
            {"type": "session_meta", "payload": {"id": session_id, **more}},
            {"type": "response_item", "timestamp": "2026-06-01T09:00:00Z", "payload": message},
        ]

    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "01aa", "depth": 1}}}
    agent = machine.write("rollout-2.jsonl", *rollout("01bb", "look", source=spawned))
    machine.write("rollout-1.jsonl", *rollout("01aa", "DO NOT INDEX this"))
    machine.write("rollout-3.jsonl", *rollout("01cc", "public"))
    os.utime(agent, (0, 0))  # the session was still running when it had ended
    report = machine.sync(source=Source("codex", "codex", machine.root, "work"))
    assert report.imports.marked == {"01aa", "01bb"}
    assert machine.said() == ["public"]


def test_a_marked_session_of_opencode_is_left_out_with_its_subagents(machine):
    machine.root.mkdir(exist_ok=True)
    path = create_database(machine.root, "opencode")
    with closing(sqlite3.connect(path)) as database, database:
        [[identity]] = database.execute("SELECT id FROM session")
        database.execute("UPDATE session SET id = 'ses_agent', parent_id = ?", [identity])
        for table in ("message", "part"):
            database.execute(f"UPDATE {table} SET session_id = 'ses_agent'")
        database.execute(
            "INSERT INTO session (id, time_created, time_updated) VALUES (?, 0, 0)", [identity]
        )
        message = ["msg_0", identity, 0, 0, '{"role": "user"}']
        database.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", message)
        part = ["prt_0", "msg_0", identity, 0, 0, '{"type": "text", "text": "DO NOT INDEX"}']
        database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", part)
    report = machine.sync(source=Source("opencode", "opencode", machine.root, "work"))
    assert report.imports.marked == {identity, "ses_agent"}
    assert report.imports.imported == 0


def test_turns_that_were_taken_back_in_codex_are_left_out(machine):
    def item(role: str, words: str) -> dict[str, Any]:
        content = [{"type": "input_text" if role == "user" else "output_text", "text": words}]
        message = {"type": "message", "role": role, "content": content}
        return {"type": "response_item", "timestamp": "2026-06-01T09:00:00Z", "payload": message}

    def turn(question: str) -> list[dict[str, Any]]:
        reply = item("assistant", f"{question}, answered")
        return [item("user", question), reply, event("task_complete")]

    def event(kind: str, **more: Any) -> dict[str, Any]:
        return {"type": "event_msg", "payload": {"type": kind, **more}}

    meta = {"type": "session_meta", "payload": {"id": "01aa", "cwd": "/app"}}
    environment = item("user", "<environment_context>x</environment_context>")
    path = machine.write("rollout-1.jsonl", meta, environment, *turn("one"), *turn("two"))
    source = Source("codex", "codex", machine.root, "work")
    machine.sync(source=source)
    back = event("thread_rolled_back", num_turns=1)
    machine.write("rollout-1.jsonl", *turn("three"), environment, *turn("four"), back)
    machine.write("rollout-1.jsonl", *turn("five"), event("thread_rolled_back", num_turns=2))
    machine.write("rollout-1.jsonl", *turn("six"), event("thread_rolled_back", num_turns=None))
    machine.sync(source=source)
    kept = ["one", "two", "six"]
    assert machine.said() == [words for name in kept for words in (name, f"{name}, answered")]
    again = import_files(ingestor(machine.store), [path], partition="work")
    assert (again.imported, again.already) == (0, 6)
    machine.write("rollout-1.jsonl", event("thread_rolled_back", num_turns=99))
    assert import_files(ingestor(machine.store), [path], partition="home").total == 0


def test_turns_that_were_taken_back_in_claude_code_are_left_out(machine):
    machine.write("s1.jsonl", *turn(1, "one", "first", parentUuid="u0"))
    machine.sync()
    taken, kept = turn(3, "two", "second"), turn(5, "three", "third")
    for question, reply in (taken, kept):
        question["parentUuid"], reply["parentUuid"] = "u2", question["uuid"]
    machine.write("s1.jsonl", *taken, *kept)
    machine.sync()
    assert machine.said() == ["one", "first", "three", "third"]
    again, reply = turn(7, "four", "fourth", parentUuid="u2")  # three has been imported already
    machine.write("s1.jsonl", again, reply)
    machine.sync()
    assert machine.said() == ["one", "first", "three", "third", "four", "fourth"]


@pytest.mark.parametrize("form", ["rollout-old.jsonl", "rollout-old.json"])
def test_excluded_folders_of_old_codex_sessions_are_left_out(machine, form):
    def item(role: str, words: str) -> dict[str, Any]:
        content = [{"type": "input_text", "text": words}]
        return {"type": "message", "role": role, "content": content}

    meta = {"id": "old", "timestamp": "2025-05-01T09:00:00Z", "instructions": ""}
    folder = item(
        "user", "<environment_context>\n<cwd>/home/me/diary</cwd>\n</environment_context>"
    )
    items = [folder, item("user", "one?"), item("assistant", "one.")]
    if form.endswith(".json"):
        document = json.dumps({"session": meta, "items": items}, indent=2)
        machine.write(form, torn=document)
    else:
        machine.write(form, meta, *items)
    excluded = Source("codex", "codex", machine.root, "work", ("/home/me/diary",))
    assert machine.sync(source=excluded).imports.excluded == 2
    assert machine.sync(source=Source("codex", "codex", machine.root, "home")).imports.imported == 2
    assert machine.said() == ["one?", "one."]


LIBRARY = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


@pytest.mark.skipif(
    importlib.util.find_spec("backports") is None and sys.version_info < (3, 14),
    reason="the extra zed is not installed",
)
def test_a_marked_session_that_codex_compressed_is_left_out(machine):
    def session(name: str, words: str) -> bytes:
        content = [{"type": "input_text", "text": words}]
        item = {"type": "message", "role": "user", "content": content}
        meta = {"type": "session_meta", "payload": {"id": name, "cwd": "/app"}}
        rows = [meta, {"type": "response_item", "timestamp": None, "payload": item}]
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        compressed: bytes = importlib.import_module(LIBRARY).compress(text.encode())
        return compressed

    machine.root.mkdir(exist_ok=True)
    (machine.root / "rollout-1.jsonl.zst").write_bytes(session("01aa", "one\nDO NOT INDEX"))
    (machine.root / "rollout-2.jsonl.zst").write_bytes(session("01bb", "two"))
    report = machine.sync(source=Source("codex", "codex", machine.root, "work"))
    assert (report.files, report.imports.marked, machine.said()) == (2, {"01aa"}, ["two"])
    assert machine.sync(source=Source("codex", "codex", machine.root, "work")).read == 0


def test_excluded_folders_are_left_out(machine):
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.write("secret/s2.jsonl", *turn(3, "two?", "two.", sessionId="s2"))
    machine.write(
        "b/s3.jsonl", *turn(5, "three?", "three.", sessionId="s3", cwd="/home/me/diary/x")
    )
    excluded = (str(machine.root / "secret"), "/home/me/diary")
    source = Source("claude-code", "claude-code", machine.root, "work", excluded)
    report = machine.sync(source=source)
    assert (report.files, report.imports.excluded) == (2, 2)
    assert machine.said() == ["one?", "one."]


def test_what_an_exclusion_left_out_is_read_once_the_exclusion_is_gone(machine):
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.write("b/s2.jsonl", *turn(3, "two?", "two.", sessionId="s2", cwd="/home/me/diary"))
    excluding = replace(machine.source, exclude=("/home/me/diary", "/elsewhere"))
    machine.sync(source=excluding)
    machine.write("b/s2.jsonl", *turn(5, "three?", "three.", sessionId="s2"))
    machine.sync(source=excluding)
    assert machine.sync(source=excluding).read == 0
    assert machine.said() == ["one?", "one.", "three?", "three."]
    report = machine.sync()
    assert (report.read, report.imports.imported, report.imports.already) == (1, 2, 2)
    assert machine.said() == ["one?", "one.", "two?", "two.", "three?", "three."]
    assert machine.sync().read == 0


def test_what_an_exclusion_left_out_is_read_even_if_the_rest_was_forgotten(machine):
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."))
    machine.write("a/s1.jsonl", *turn(3, "two?", "two.", cwd="/home/me/diary"))
    machine.sync(source=replace(machine.source, exclude=("/home/me/diary",)))
    assert machine.store.delete([message.key for message in machine.store.last(WORK, 0)])
    assert machine.sync().imports.forgotten == 2
    assert machine.said() == ["two?", "two."]


def test_an_excluded_folder_may_be_named_by_a_symbolic_link(tmp_path):
    (tmp_path / "disk" / "diary").mkdir(parents=True)
    (tmp_path / "code").symlink_to(tmp_path / "disk")
    is_excluded = compile_exclusion([str(tmp_path / "code" / "diary")])
    for folder in ("disk", "code"):
        assert is_excluded(str(tmp_path / folder / "diary" / "may"))
    assert not is_excluded(str(tmp_path / "disk" / "other"))


def test_an_exclusion_is_a_folder_or_a_pattern(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    is_excluded = compile_exclusion(["~/diary", "*/scratch*"])
    left_out = ["/home/me/diary", "/home/me/diary/a/b", "/x/scratch-1"]
    assert [path for path in [*left_out, "/home/me/diary2", "/x"] if is_excluded(path)] == left_out
    assert not compile_exclusion([])("")


@pytest.mark.parametrize(
    "mark", ["DO NOT INDEX", "<note>DO NOT INDEX THIS CHAT</note>", "hello\nDO NOT INDEX please"]
)
def test_a_marked_conversation_is_left_out_with_its_subagents(machine, mark):
    machine.write("a/s1.jsonl", *turn(1, "private?", "yes."), *turn(3, mark, "all right"))
    machine.write("a/s2.jsonl", *turn(5, "why DO NOT INDEX?", "so.", sessionId="s2"))
    helper = {"isSidechain": True, "agentId": "h1"}
    machine.write("a/s1/subagents/agent-h1.jsonl", *turn(7, "look", "found", **helper))
    report = machine.sync()
    assert report.imports.marked == {"s1", "s1/h1"}
    machine.write("a/s1.jsonl", *turn(9, "more?", "more."))
    machine.write("a/s1/subagents/agent-h1.jsonl", *turn(11, "look", "found", **helper))
    machine.sync()
    machine.write("a/s1.jsonl", *turn(13, "still more?", "more."))
    machine.sync()
    assert machine.said() == ["why DO NOT INDEX?", "so."]


def test_forgotten_messages_are_not_restored(machine, monkeypatch):
    path = machine.write("a/s1.jsonl", *turn(1, "walrus?", "walrus."), *turn(3, "two?", "two."))
    machine.sync()
    state = Sources(machine.store).get("work", platform.node(), str(path))
    assert state is not None
    assert "s1" in state.state
    assert machine.store.delete([message.key for message in machine.store.last(WORK, 0)][:2])
    emptied = Sources(machine.store).get("work", platform.node(), str(path))
    assert emptied is not None
    assert (emptied.state, emptied.head, emptied.bytes_read) == ("", "", 0)
    assert machine.sync().read == 0
    machine.write("a/s1.jsonl", *turn(5, "three?", "three."))
    assert machine.sync().imports.forgotten == 2
    assert machine.said(WORK) == ["two?", "two.", "three?", "three."]


def test_messages_that_another_partition_forgot_are_already_there(machine):
    machine.write("a/s1.jsonl", *turn(1, "walrus?", "walrus."))
    machine.sync()
    import_files(ingestor(machine.store), [machine.root], partition="other")
    copies = machine.store.find(Scope("other"))
    assert len(copies) == 2
    assert machine.store.delete(copies)
    machine.write("a/s1.jsonl", *turn(3, "two?", "two."))
    imports = machine.sync().imports
    assert (imports.imported, imports.forgotten) == (2, 0)
    assert machine.said() == ["walrus?", "walrus.", "two?", "two."]


def test_the_table_holds_no_text_of_a_message(machine):
    title = {"type": "ai-title", "aiTitle": "aardvark title", "sessionId": "s1"}
    machine.write("a/s1.jsonl", title, *turn(1, "aardvark one?", "aardvark."), title)
    machine.write("a/s1.jsonl", *turn(3, "aardvark two?", "aardvark."))
    machine.sync()
    with machine.store.snapshot():
        rows = machine.store._connection.execute(
            "SELECT * FROM sources WHERE partition = ?", ["work"]
        ).fetchall()
    assert rows
    assert "aardvark" not in str(rows)


def test_expired_messages_are_not_imported(machine):
    machine.write("a/s1.jsonl", *turn(1, "old?", "old."))
    now = datetime.now(UTC).isoformat()
    machine.write("a/s1.jsonl", *turn(3, "new?", "new.", timestamp=now))
    machine.settings = {"retention_days": 30}
    report = machine.sync()
    assert (report.imports.imported, report.imports.expired) == (2, 2)
    assert machine.said() == ["new?", "new."]


def test_expired_messages_are_imported_once_they_may_be_older(machine):
    machine.write("a/s1.jsonl", *turn(1, "old?", "old."))
    machine.settings = {"retention_days": 30}
    assert machine.sync().imports.expired == 2
    assert machine.sync().read == 0
    machine.settings = {}
    assert machine.sync().imports.imported == 2
    assert machine.said() == ["old?", "old."]
    machine.settings = {"retention_days": 30}
    assert machine.sync().read == 0  # nothing was left out of the file


def test_secrets_are_removed_at_import(machine):
    key = f"AKIA{'ABCDEFGH23456777'}"
    machine.write("a/s1.jsonl", *turn(1, f"the key is {key}", "I see."))
    machine.settings = {"redact": "remove"}
    machine.sync()
    assert key not in str(machine.said())
    assert machine.said()[0].startswith("the key is [")


def ingest(machine: Machine, *paths: Path, dry_run: bool = False) -> ImportReport:
    return import_files(ingestor(machine.store), paths, partition="work", dry_run=dry_run)


def test_ingest_leaves_out_marked_conversations_with_their_subagents(machine):
    turns = [*turn(1, "private?", "yes."), *turn(3, "DO NOT INDEX this", "all right")]
    session = machine.write("a/s1.jsonl", *turns)
    helper = {"isSidechain": True, "agentId": "h1"}
    agent = machine.write("a/s1/subagents/agent-h1.jsonl", *turn(7, "look", "found", **helper))
    machine.write("a/s2.jsonl", *turn(5, "why DO NOT INDEX?", "so.", sessionId="s2"))
    assert ingest(machine, agent, session).marked == {"s1", "s1/h1"}
    assert machine.said() == []
    for dry_run in (True, False):
        report = ingest(machine, machine.root, dry_run=dry_run)
        assert (report.imported, report.marked) == (2, {"s1", "s1/h1"})
    assert machine.said() == ["why DO NOT INDEX?", "so."]


def write_log(path: Path, rows: list[tuple[str, str, str, str]]) -> None:
    """Add rows to a log of llm: id, prompt, conversation and time."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, "
            "system TEXT, response TEXT, conversation_id TEXT, datetime_utc TEXT)"
        )
        connection.executemany(
            "INSERT INTO responses VALUES (?, 'gpt', ?, NULL, 'Yes.', ?, ?)", rows
        )


PRIVATE = [
    (f"r{number:04}", f"private {number}", "c1", "2026-03-01T08:00:00") for number in range(600)
]
MARK = ("r9999", "DO NOT INDEX", "c1", "2026-03-01T08:00:00")


def test_ingest_finds_a_mark_in_a_database_and_behind_the_first_batch(machine, tmp_path):
    write_log(tmp_path / "logs.db", [*PRIVATE, MARK])
    report = ingest(machine, tmp_path / "logs.db")
    assert (report.imported, report.marked) == (0, {"c1"})


def test_syncing_finds_a_mark_in_a_database_and_remembers_it(machine, tmp_path):
    log = tmp_path / "logs.db"
    source = Source("llm", "llm", log, "work")
    write_log(log, [*PRIVATE, MARK])
    report = machine.sync(source=source)
    assert (report.imports.imported, report.imports.marked) == (0, {"c1"})
    write_log(log, [("s1", "public", "c2", "2026-05-01T08:00:00")])
    assert machine.sync(source=source).imports.imported == 2
    [state] = Sources(machine.store).find_marked("work", platform.node(), "llm")
    assert '"c1"' in state


class Unread:
    """An importer that must not read its file."""

    name = instance = "llm"

    def detect(self, head: str) -> bool:
        raise AssertionError

    def read(self, file: File) -> Iterator[Record | Skipped]:
        raise AssertionError


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize(
    ("value", "is_parsed"),
    [
        ("Hello. " * 1_000, False),
        (f"{'x' * 4_060}DO NOT INDEX", True),
        (b"DO NOT INDEX", True),
        (b"\x28\xb5\x2f\xfdcompressed", True),
    ],
)
def test_a_database_is_parsed_for_marks_only_if_it_may_contain_one(
    tmp_path, journal, value, is_parsed
):
    path = tmp_path / "logs.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("CREATE TABLE responses (id TEXT, prompt TEXT)")
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(prompt)")
        connection.execute("INSERT INTO responses VALUES ('r1', ?)", [value])
        detected = DetectedFile(File.of_path(path, path.stat()), Unread())
        if is_parsed:
            with pytest.raises(AssertionError):
                find_marked([detected])
        else:
            assert find_marked([detected]) == set()


def test_an_export_of_reservoir_is_imported_as_it_is(machine, tmp_path):
    row = {"role": "user", "content": "DO NOT INDEX", "conversation_id": "c1"}
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(row), encoding="utf-8")
    assert ingest(machine, rows).imported == 1
