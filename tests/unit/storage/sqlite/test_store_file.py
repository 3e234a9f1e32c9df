import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_utils import Database

from reservoir_cli.errors import StoreError
from reservoir_cli.messages import Message, Scope, StoredMessage
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.schema import VERSION
from reservoir_cli.storage.sqlite import schema, store_file
from reservoir_cli.storage.sqlite.schema import migrations

Adding = Callable[..., list[StoredMessage | None]]


def version(path: str | Path) -> int:
    with closing(sqlite3.connect(path)) as file:
        return int(file.execute("PRAGMA user_version").fetchone()[0])


def run(script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


@pytest.mark.sqlite("it is in the header of a file")
def test_the_schema_version_is_the_number_of_migrations(store):
    with closing(sqlite3.connect(":memory:")) as connection:
        assert len(migrations.pending(Database(connection))) == VERSION
    assert version(store.location) == VERSION


@pytest.mark.sqlite("each database has its own migrations")
def test_an_older_store_is_migrated_with_its_messages(store, add, monkeypatch):
    add(Message("user", "from before"))
    store.close()
    later = migrations.__class__("reservoir")
    later._migrations = [*migrations._migrations]

    @later()
    def m002_colours(db: Database) -> None:
        db.execute("ALTER TABLE messages ADD COLUMN colour TEXT")

    monkeypatch.setattr(schema, "migrations", later)
    for module in (schema, store_file):
        monkeypatch.setattr(module, "VERSION", VERSION + 1)
    for _ in range(2):
        with closing(open_store(store.location)) as reopened:
            [message] = reopened.last(Scope("p"), 0)
            assert message.content == "from before"
            assert reopened._connection.execute("SELECT colour FROM messages").fetchall() == [
                (None,)
            ]
        assert version(store.location) == VERSION + 1
    monkeypatch.undo()
    with pytest.raises(StoreError, match="newer"):
        open_store(store.location)


@pytest.mark.sqlite("it is in the header of a file")
def test_a_store_of_a_newer_schema_is_refused_and_not_changed(store):
    store.close()
    with closing(sqlite3.connect(store.location, isolation_level=None)) as file:
        file.execute(f"PRAGMA user_version = {VERSION + 7}")
    with pytest.raises(StoreError, match="newer") as caught:
        open_store(store.location)
    assert caught.value.exit_code == 3
    assert f"schema {VERSION + 7}" in caught.value.message
    assert f"this one knows {VERSION}" in caught.value.message
    assert caught.value.hint
    assert version(store.location) == VERSION + 7


FOREIGN = {
    "without a version": "CREATE TABLE moz_places (url)",
    "with a version like ours": f"CREATE TABLE t (a); PRAGMA user_version = {VERSION}",
    "made with sqlite-utils migrations": (
        "CREATE TABLE logs (a); "
        "CREATE TABLE _sqlite_migrations (migration_set TEXT, name TEXT, applied_at TEXT); "
        "INSERT INTO _sqlite_migrations VALUES ('llm', 'm001_initial', '2026-01-01')"
    ),
}


@pytest.mark.parametrize("script", FOREIGN.values(), ids=FOREIGN)
def test_a_file_of_another_program_is_refused_and_not_changed(tmp_path, script):
    path = tmp_path / "places.sqlite"
    with closing(sqlite3.connect(path)) as file:
        file.executescript(script)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program's database") as caught:
        open_store(str(path)).close()
    assert caught.value.exit_code == 3
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["places.sqlite"]


@pytest.mark.parametrize(
    "data", [b"hello, this is a text file\n" * 50, b"short", b"PK\x03\x04" + bytes(2_000)]
)
def test_a_file_that_is_not_a_database_is_refused_and_not_changed(tmp_path, data):
    path = tmp_path / "notes.txt"
    path.write_bytes(data)
    with pytest.raises(StoreError, match="is not a database") as caught:
        open_store(str(path))
    assert caught.value.exit_code == 3
    assert path.read_bytes() == data


@pytest.mark.sqlite("it damages a file")
def test_the_error_of_a_corrupt_store_quotes_no_text(store, add):
    add(*(Message("user", f"secret {number} " * 50) for number in range(200)))
    store.close()
    path = Path(store.location)
    data = bytearray(path.read_bytes())
    data[4_096:] = b"\xff" * (len(data) - 4_096)
    path.write_bytes(data)
    with pytest.raises(StoreError) as caught, closing(open_store(store.location)) as reopened:
        reopened.last(Scope(None), 0)
    assert caught.value.exit_code == 3
    assert "corrupt" in caught.value.message
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"


def test_an_empty_file_becomes_a_store(tmp_path):
    path = tmp_path / "empty.db"
    path.touch()
    open_store(str(path)).close()
    assert version(path) == VERSION


MODES = """
import os, sys
from datetime import UTC, datetime
os.umask(0)
from reservoir_cli.messages import Message, Scope
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.tokens import load_counter
store = open_store(sys.argv[1])
store.add(Scope("p", "i"), [Message("user", "x")], counter=load_counter("approximate"),
          now=datetime.now(UTC))
for folder, _, files in os.walk(sys.argv[2]):
    for path in [folder, *(os.path.join(folder, file) for file in files)]:
        print(oct(os.stat(path).st_mode & 0o777), os.path.basename(path))
store.close()
"""


def test_files_and_folders_are_private_under_any_umask(tmp_path):
    top = tmp_path / "a"
    lines = run(MODES, str(top / "b" / "store.db"), str(top)).splitlines()
    assert sorted(lines) == sorted(
        ["0o700 a", "0o700 b", "0o600 store.db", "0o600 store.db-wal", "0o600 store.db-shm"]
    )


def test_an_existing_file_keeps_its_mode(tmp_path):
    path = tmp_path / "shared.db"
    path.touch()
    path.chmod(0o660)
    open_store(str(path)).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o660


LOADED = """
import sys
from reservoir_cli.messages import Scope
from reservoir_cli.storage.open_store import open_store
store = open_store(sys.argv[1])
store.last(Scope(None), 0)
store.channels()
store.close()
print(*sorted({"sqlite_utils", "numpy"} & sys.modules.keys()))
"""


@pytest.mark.sqlite("it is about a file")
def test_a_current_store_is_read_without_importing_sqlite_utils_or_numpy(store):
    store.close()
    assert run(LOADED, store.location).split() == []


def test_a_new_store_is_created_with_sqlite_utils(tmp_path):
    assert "sqlite_utils" in run(LOADED, str(tmp_path / "new.db")).split()


@pytest.mark.sqlite("it is about PRAGMAs")
def test_a_store_is_in_wal_mode_with_secure_delete(store):
    connection = store._connection  # type: ignore[attr-defined]
    settings = ("journal_mode", "secure_delete", "synchronous")
    values = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in settings]
    assert values == ["wal", 1, 2]


def test_a_failed_migration_leaves_the_file_unchanged(tmp_path, monkeypatch):
    path = tmp_path / "new.db"
    failing = migrations.__class__("reservoir")

    @failing()
    def m001_half(db: Database) -> None:
        db.execute("CREATE TABLE half (a)")
        db.execute("CREATE TABLE half (a)")

    monkeypatch.setattr("reservoir_cli.storage.sqlite.schema.migrations", failing)
    with pytest.raises(StoreError):
        open_store(str(path))
    monkeypatch.undo()
    assert version(path) == 0
    open_store(str(path)).close()
    assert version(path) == VERSION
    assert os.path.getsize(path) > 0
