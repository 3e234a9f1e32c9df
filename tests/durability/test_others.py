"""Other processes and clocks: locks, newer versions, clocks set back, concurrency."""

import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import crowding
import killing
import pytest
from trials import PATIENCE, ended, faults

from reservoir_cli.storage.schema import VERSION


def sitecustomize(folder: Path, code: str) -> dict[str, str]:
    """Return environment variables that make every Python process run some code first."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": str(folder)}


# A lock that is held for too long

_IMPATIENT = """
import sqlite3
connect = sqlite3.connect
sqlite3.connect = lambda *a, **k: connect(*a, **{**k, "timeout": 0.3})
"""


def test_a_lock_held_too_long_fails_writers_with_exit_4_but_not_readers(person, tmp_path):
    person.must("ingest", "--no-embed", stdin="before")
    env = sitecustomize(tmp_path / "impatient", _IMPATIENT)
    with closing(sqlite3.connect(person.db, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for command in (["ingest", "--no-embed"], ["forget", "--id", "1", "--yes"]):
            refused = person(*command, stdin="hello", env=env)
            assert (refused.code, refused.out) == (4, "")
            assert refused.is_one_line_error
        context = person.must("context", "what was before?", "--budget", "300", env=env)
        assert "before" in context.out
        assert person("doctor", env=env).code == 0
        other.execute("ROLLBACK")
    assert person.rows("content") == [("before",)]
    assert person.must("ingest", "--no-embed", stdin="after").out == "2\n"


# Two versions of the program


def migrate_as_newer(path: Path) -> int:
    """Migrate a store to the next schema; return how many messages it holds then.

    Asks for the lock every millisecond: SQLite's own pauses are so long that a busy writer could
    finish before they end.
    """
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
        deadline = time.monotonic() + PATIENCE
        while not connection.in_transaction:
            assert time.monotonic() < deadline, "the store stays locked"
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                time.sleep(0.001)
        connection.execute("CREATE TABLE of_tomorrow (id INTEGER)")
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
        [count] = connection.execute("SELECT COUNT(*) FROM messages").fetchone()
        connection.execute("COMMIT")
        return int(count)


def test_a_running_program_stops_if_a_newer_one_migrates_the_store(person, tmp_path):
    file = tmp_path / "many.jsonl"
    killing.rows(file, random.Random(1), 30_000)
    person.must("ingest", "--no-embed", stdin="before")
    process = person.start("ingest", "--no-embed", str(file))
    while person.rows("COUNT(*)") == [(1,)] and process.poll() is None:
        time.sleep(0.002)
    migrated = migrate_as_newer(person.db)
    result = ended(process)
    assert result.code == 3
    assert f"schema {VERSION + 1}, this one knows {VERSION}" in result.err
    assert "hint: upgrade" in result.err
    assert 1 < migrated < 30_001
    assert person.rows("COUNT(*)") == [(migrated,)]
    before = person.db.read_bytes()
    for command in (["view"], ["ingest", "--no-embed"], ["doctor", "--repair"]):
        assert person(*command, stdin="hello").code in (1, 3)
    assert person.db.read_bytes() == before


def test_many_programs_can_create_a_store_at_once(person):
    command = ("ingest", "--no-embed", "-p", "p")
    for process in [person.start(*command, stdin="said now") for _ in range(6)]:
        result = ended(process)
        assert result.code == 0, result
    assert person.rows("COUNT(*)") == [(6,)]
    assert faults(person.db) == []


# A clock that is set back

_SET_BACK = """
import datetime, os
class Earlier(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        moment = super().now(tz)
        return moment - datetime.timedelta(days=float(os.environ["DAYS_BACK"]))
datetime.datetime = Earlier
"""


def test_a_clock_set_back_puts_no_reply_before_its_question(person, tmp_path):
    env = sitecustomize(tmp_path / "clock", _SET_BACK)
    for number, days in enumerate((0, 1, 400, 2, 0)):
        for role in ("user", "assistant"):
            earlier_env = {**env, "DAYS_BACK": str(days + (role == "assistant"))}
            arguments = ("ingest", "--no-embed", "--role", role)
            person.must(*arguments, stdin=str(number), env=earlier_env)
    lines = person.must("view", "0", "--oneline").out.splitlines()
    assert lines == [
        f"{role}: {number}" for number in (2, 3, 1, 0, 4) for role in ("user", "assistant")
    ]
    traces = person.rows("trace_id")
    assert all(traces[index] == traces[index + 1] for index in range(0, 10, 2))
    early = person.must("ingest", "--no-embed", stdin="x", env={**env, "DAYS_BACK": "9999"})
    assert early.out == "11\n"
    person.must("ingest", "--no-embed", "--at", "2001-01-01", stdin="long ago")
    assert person.must("view", "0", "--oneline").out.splitlines()[:2] == [
        "user: x",
        "user: long ago",
    ]


# Many at once


def test_many_processes_lose_nothing_and_hit_no_lock(tmp_path):
    result = crowding.crowd(tmp_path, 3, writers=4, askers=2, importers=1)
    assert result.acknowledged
    assert result.imported
    assert (result.lost, result.failed, result.wrong) == (0, 0, [])


def test_concurrent_changes_of_settings_are_both_kept(person):
    names = ("recent_context_size", "semantic_context_size", "min_history_messages")
    for value in range(3, 6):
        started = [person.start("config", "--set", f"{name}={value}") for name in names]
        assert [ended(process).code for process in started] == [0, 0, 0]
        assert [person.must("config", "--get", name).out for name in names] == [f"{value}\n"] * 3


def test_unreadable_settings_are_an_error_with_a_hint(person):
    for broken in ("recent_context_size = [1,", "\x00\x01", "recent_context_size = 'many'"):
        person.config.write_text(broken)
        for command in (["view"], ["config", "--set", "recent_context_size=3"]):
            refused = person(*command)
            assert refused.code == 2
            assert refused.is_one_line_error
            assert str(person.config) in refused.err or "recent_context_size" in refused.err
        assert person.config.read_text() == broken
        assert person("doctor").code == 1
    person.config.write_bytes(b"\xff\xfe")
    assert "fix it in an editor, or move it away" in person("view").err
    person.config.rename(person.config.with_name("away"))
    assert person("doctor").code == 0


@pytest.mark.parametrize("broken", ["= 3", "recent_context_size"])
def test_doctor_prints_the_hint_for_invalid_settings(person, broken):
    person.config.write_text(broken)
    assert "move it away" in person("doctor").out
