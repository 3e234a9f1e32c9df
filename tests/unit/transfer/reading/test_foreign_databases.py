"""Databases that are in use, or were left in the middle of a change."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from databases import create_database
from llm_logs import older_log
from reading import entries_by_file, records, skipped

from reservoir_cli.errors import ReservoirError
from reservoir_cli.transfer.reading import foreign_databases
from reservoir_cli.transfer.reading.decompressed_file import LockedError

#: A change that is written to the file in part, when its program is killed.
KILLED = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA cache_size = 2")
database.execute("BEGIN")
database.execute("UPDATE responses SET response = 'half ' || hex(zeroblob(3000))")
database.execute("CREATE TABLE filler (x)")
for number in range(200):
    database.execute("INSERT INTO filler VALUES (hex(zeroblob(1500)))")
os._exit(9)
"""


def replies(path: Path) -> list[str]:
    [entries] = entries_by_file(path).values()
    return [record.message.content for record in records(entries)]


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    path = older_log(tmp_path / "logs.db")
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    journal = path.with_name("logs.db-journal")
    assert journal.stat().st_size > 0
    return path


def test_a_change_that_was_never_finished_is_not_read(killed, tmp_path):
    expected = replies(older_log(tmp_path / "whole.db"))
    before = killed.read_bytes(), killed.with_name("logs.db-journal").read_bytes()
    assert replies(killed) == expected
    assert (killed.read_bytes(), killed.with_name("logs.db-journal").read_bytes()) == before


def test_a_database_too_large_to_copy_is_refused(killed, monkeypatch):
    monkeypatch.setattr(foreign_databases, "_LARGEST_COPY", 10)
    with pytest.raises(ReservoirError, match="left in the middle of a change"):
        entries_by_file(killed)


@pytest.mark.parametrize("tool", ["opencode", "goose"])
@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_locked_database_says_so(tool, mode, tmp_path, monkeypatch):
    monkeypatch.setattr(foreign_databases, "_PATIENCE", 0.05)
    path = create_database(tmp_path, tool)
    (tmp_path / "note.md").write_text("# Leather\n", encoding="utf-8")
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(f"PRAGMA journal_mode = {mode}")
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("BEGIN EXCLUSIVE")
        database.execute("CREATE TABLE more (x)")
        path.with_name(f"{path.name}-journal").touch()
        with pytest.raises(LockedError, match="another program has locked it"):
            entries_by_file(path)


def test_one_value_that_is_too_large_hides_no_other_conversation(tmp_path, monkeypatch):
    path = create_database(tmp_path, "goose")
    [whole] = entries_by_file(path).values()
    sessions = {record.message.conversation_id for record in records(whole)}
    assert len(sessions) > 1
    with closing(sqlite3.connect(path)) as database, database:
        [(first,)] = database.execute("SELECT session_id FROM messages ORDER BY id LIMIT 1")
        database.execute(
            "UPDATE messages SET content_json = ? WHERE session_id = ?", ("x" * 200_000, first)
        )
    monkeypatch.setattr(foreign_databases, "LARGEST", 100_000)
    [rest] = entries_by_file(path).values()
    left = {record.message.conversation_id for record in records(rest)}
    assert left >= sessions - {first}
    assert any("larger than" in reason for _, reason in skipped(rest))


OTHERS: dict[str, str] = {
    "a forum": "CREATE TABLE threads (id, title, created_at)",
    "a list of rollouts": "CREATE TABLE threads (id, rollout_path, updated_at, cwd, title)",
    "a shop": "CREATE TABLE sessions (id); CREATE TABLE messages (id, text);"
    "CREATE TABLE schema_version (version)",
    "a calendar": "CREATE TABLE session (id); CREATE TABLE message (id); CREATE TABLE part (id)",
    "a survey": "CREATE TABLE responses (id, answer)",
    "a game": "CREATE TABLE turns (id, player)",
    "a chat": "CREATE TABLE chat (id); CREATE TABLE auth (id); CREATE TABLE user (id)",
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_database_of_another_program_is_unknown(name, tmp_path):
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(OTHERS[name])
    with pytest.raises(ReservoirError, match="a database of an unknown format"):
        entries_by_file(path)
    (tmp_path / "note.md").write_text("# Leather\n", encoding="utf-8")
    assert list(entries_by_file(tmp_path)) == ["note.md"]


def test_conversations_of_cursor_in_another_form_are_named(tmp_path):
    path = tmp_path / "state.vscdb"
    rows: list[Any] = [("agentKv:blob:1", '{"role": "user", "content": "Which hide?"}')]
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)")
        database.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", rows)
    [entries] = entries_by_file(path).values()
    [(place, reason)] = skipped(entries)
    assert place == "conversations of the agent"
    assert "~/.cursor/projects" in reason
