"""Threads of Zed."""

import importlib
import importlib.util
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from databases import create_database
from reading import entries_by_file, records, roles_and_texts, row_of, skipped

from reservoir_cli import Reservoir
from reservoir_cli.errors import ReservoirError
from reservoir_cli.transfer.formats import zed
from reservoir_cli.transfer.reading import foreign_databases

LIBRARY = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
packed = pytest.mark.skipif(
    importlib.util.find_spec("backports") is None and sys.version_info < (3, 14),
    reason="the extra zed is not installed",
)


def threads(folder: Path, *rows: tuple[str, str, bytes]) -> Path:
    """Create a database with a thread for each id, type and content."""
    path = folder / "threads.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE threads (id, summary, updated_at, data_type, data)")
        for identity, kind, data in rows:
            row = (identity, "T", "2026-05-09T12:00:00Z", kind, data)
            connection.execute("INSERT INTO threads VALUES (?, ?, ?, ?, ?)", row)
    return path


def read(path: Path) -> list[Any]:
    [entries] = entries_by_file(path).values()
    return entries


def compress(data: bytes) -> bytes:
    return bytes(importlib.import_module(LIBRARY).compress(data))


def thread(*messages: Any) -> bytes:
    return json.dumps({"version": "0.3.0", "messages": messages}).encode()


def user_message(text: str, identity: str = "q1") -> dict[str, Any]:
    return {"User": {"id": identity, "content": [{"Text": text}]}}


def agent_message(*content: Any, **results: Any) -> dict[str, Any]:
    return {"Agent": {"content": list(content), "tool_results": results}}


OLD, NEW = "z-old", "z-new"


@packed
def test_the_database_is_imported(tmp_path):
    entries = read(create_database(tmp_path, "zed"))
    assert [row_of(record) for record in records(entries)] == [
        ("user", "What is this?", "12:05:00", OLD),
        ("assistant", "I look.", "12:05:00", OLD),
        ("system", "A look, then.", "12:05:00", OLD),
        ("tool", "y = 2", "12:05:00", OLD),
        ("assistant", "An assignment.", "12:05:00", OLD),
        ("user", "[file sync.py]\nWhy does sync drop rows?\n[image]", "12:00:00", NEW),
        ("assistant", "I will look.", "12:00:00", NEW),
        ("system", "Look at the cursor.", "12:00:00", NEW),
        ("tool", "x = 1", "12:00:00", NEW),
        ("tool", "a\nb\n[image]", "12:00:00", NEW),
        ("assistant", "The cursor skips a page.", "12:00:00", NEW),
        ("user", "Fix it. 🍞", "12:05:00", NEW),
        ("assistant", "Done.", "12:05:00", NEW),
    ]
    assert skipped(entries) == [
        ("thread 2, message 7", "neither from the user nor from the agent"),
        ("thread 2, message 8", "content is not a list"),
        ("thread 3", "damaged, or not compressed with zstd"),
        ("thread 4", "not valid JSON"),
    ]
    calls = [call.id for record in records(entries) for call in record.message.tool_calls]
    results = [
        record.message.tool_call_id for record in records(entries) if record.message.role == "tool"
    ]
    assert calls == results == ["toolu_1", "toolu_1", "toolu_2"]
    conversations = {
        record.conversation.id: record.conversation
        for record in records(entries)
        if record.conversation
    }
    assert {
        key: (conversation.title, conversation.model, conversation.project)
        for key, conversation in conversations.items()
    } == {OLD: ("Older", None, "old"), NEW: ("Sync drops rows", "claude-sonnet-4-5", "taskboard")}


def test_a_subagent_of_zed_belongs_to_its_thread(tmp_path):
    spawned = {"subagent_context": {"parent_thread_id": "z1", "depth": 1}}
    helper = thread(user_message("Look."), agent_message({"Text": "Two."}))
    path = threads(
        tmp_path,
        ("z1", "json", thread(user_message("Count.\nDO NOT INDEX"))),
        ("z2", "json", json.dumps(json.loads(helper) | spawned).encode()),
        ("z3", "json", helper),
        ("z4", "json", helper),
    )
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE threads ADD COLUMN parent_id TEXT")
        connection.execute("UPDATE threads SET parent_id = 'z1' WHERE id = 'z3'")
    parents = {record.message.conversation_id: record.parent for record in records(read(path))}
    assert parents == {"z1": None, "z2": "z1", "z3": "z1", "z4": None}
    with Reservoir.open(tmp_path / "birds.db") as reservoir:
        assert reservoir.import_files(path).imported == 2


def test_summaries_of_zed_are_left_out(tmp_path):
    compaction = {"Compaction": {"Summary": "They asked why."}}
    data = thread(user_message("Why?"), agent_message({"Text": "So."}), "Resume", compaction)
    entries = read(threads(tmp_path, ("z", "json", data)))
    assert roles_and_texts(entries) == [("user", "Why?"), ("assistant", "So.")]
    assert skipped(entries) == []


def test_message_ids_of_a_growing_thread_do_not_change(tmp_path):
    tool = {"id": "t1", "name": "f", "input": {}}
    result = {"tool_use_id": "t1", "content": "x"}
    partial = [user_message("Why?"), agent_message({"Text": "I lo"})]
    complete = [
        user_message("Why?"),
        agent_message({"Text": "I look."}, {"ToolUse": tool}, t1=result),
    ]
    longer = [
        *complete,
        agent_message({"Text": "So."}),
        user_message("And?", "q2"),
        agent_message({"Text": "Yes."}),
    ]
    known_ids: list[str] = []
    for number, messages in enumerate((partial, complete, longer)):
        folder = tmp_path / str(number)
        folder.mkdir()
        imported = records(read(threads(folder, ("z", "json", thread(*messages)))))
        ids = [str(record.message.source_id) for record in imported]
        assert ids[: len(known_ids)] == known_ids
        assert len(set(ids)) == len(ids) > len(known_ids)
        known_ids = ids


def test_without_a_library_the_error_names_the_extra(tmp_path, monkeypatch):
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    plain = threads(tmp_path, ("z", "json", thread(user_message("Why?"))))
    assert roles_and_texts(read(plain)) == [("user", "Why?")]
    with closing(sqlite3.connect(plain)) as connection, connection:
        connection.execute("INSERT INTO threads VALUES ('y', '', '', 'zstd', x'28b52ffd')")
    with pytest.raises(ReservoirError, match="compressed with zstd") as refused:
        read(plain)
    assert refused.value.hint == 'pip install "reservoir-cli[zed]" --find-links dist'
    assert refused.value.exit_code == 1


@packed
def test_a_decompression_bomb_is_skipped(tmp_path):
    bomb = compress(b" " * (100 << 20))
    assert len(bomb) < 20_000
    data = thread(user_message("Why?"), agent_message({"Text": "x" * (4 << 20)}))
    entries = read(threads(tmp_path, ("a", "zstd", bomb), ("b", "zstd", compress(data))))
    assert skipped(entries) == [("thread 1", "unpacks to far more than its size")]
    assert [role for role, _ in roles_and_texts(entries)] == ["user", "assistant"]


@packed
def test_a_window_that_fills_the_memory_is_refused(tmp_path):
    # The frame has no content size, so that the size of its window matters.
    library = importlib.import_module(LIBRARY)
    options = {library.CompressionParameter.window_log: 27}
    compressor = library.ZstdCompressor(options=options)
    data = compressor.compress(thread(user_message("Why?"))) + compressor.flush()
    entries = read(threads(tmp_path, ("a", "zstd", data)))
    assert skipped(entries) == [("thread 1", "damaged, or not compressed with zstd")]


@packed
def test_reading_stops_after_many_bombs(tmp_path, monkeypatch):

    monkeypatch.setattr(zed, "_HARMLESS", 1 << 20)
    monkeypatch.setattr(foreign_databases, "STEPS", 5 << 20)
    monkeypatch.setattr(foreign_databases, "STEPS_A_BYTE", 0)
    data = compress(thread(user_message("x" * 1_000_000)))
    entries = read(threads(tmp_path, *((str(number), "zstd", data) for number in range(9))))
    assert skipped(entries) == [
        ("what follows", "reading it takes too long for a file of its size")
    ]
    assert 1 < len(records(entries)) < 9


@packed
@pytest.mark.parametrize("cut", [0, 1, 4, 5, 20, -1])
def test_a_truncated_thread_is_skipped(tmp_path, cut):
    data = compress(thread(user_message("Why does it end in the middle?")))[:cut]
    [(position, _)] = skipped(read(threads(tmp_path, ("a", "zstd", data))))
    assert position == "thread 1"


@pytest.mark.parametrize("data", [b"[" * 100_000, b"7", b"{}", b'{"messages": {}}', b"\xff\xfe"])
def test_json_that_is_not_a_thread_is_skipped(tmp_path, data):
    [(position, _)] = skipped(read(threads(tmp_path, ("a", "json", data))))
    assert position == "thread 1"


def test_a_table_of_that_name_is_not_enough(tmp_path):
    path = tmp_path / "forum.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            "CREATE TABLE threads (id, title); INSERT INTO threads VALUES (1, 'x')"
        )
    with pytest.raises(ReservoirError, match="a database of an unknown format"):
        read(path)
