import json
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from builders import NOW
from sqlite_utils import Database

from reservoir_cli.errors import StoreError
from reservoir_cli.messages import (
    Conversation,
    Key,
    Message,
    Scope,
    StoredMessage,
    ToolCall,
    plain_text,
)
from reservoir_cli.storage import copy_store, fulltext
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.sqlite import keyword_search
from reservoir_cli.storage.sqlite.open_and_migrate import APPLICATION_ID, SCHEMA_VERSION
from reservoir_cli.storage.sqlite.schema import migrations
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import load_counter

Adding = Callable[..., list[StoredMessage | None]]


def version(path: str | Path) -> int:
    with closing(sqlite3.connect(path)) as file:
        return int(file.execute("PRAGMA user_version").fetchone()[0])


def run(script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


@pytest.mark.sqlite("it is in the header of a file")
def test_the_schema_version_is_the_number_of_migrations(store: Store) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        assert len(migrations.pending(Database(connection))) == SCHEMA_VERSION
    assert version(store.location) == SCHEMA_VERSION


@pytest.mark.parametrize("before", range(1, SCHEMA_VERSION))
def test_an_older_store_is_migrated_with_its_messages(tmp_path: Path, before: int) -> None:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        database = Database(connection)
        names = [migration.name for migration in migrations.pending(database)]
        migrations.apply(database, stop_before=names[before])
        connection.execute(f"PRAGMA user_version = {before}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        columns = connection.execute("PRAGMA table_info(messages)").fetchall()
        values = {
            name: 0 if kind == "INTEGER" else "p"
            for _, name, kind, required, *_ in columns
            if required
        }
        row = {**values, "role": "user", "content": "from before"}
        database["messages"].insert(row)
        connection.commit()
    with closing(open_store(str(path))) as store:
        assert [message.content for message in store.last(Scope("p"), 0)] == ["from before"]
        stored = store.add(
            Scope("p", "i"),
            [Message("user", "new")],
            counter=load_counter("approximate"),
            now=datetime.now(UTC),
        )
    assert stored[0] is not None
    assert version(path) == SCHEMA_VERSION


@pytest.mark.sqlite("it is in the header of a file")
def test_a_store_of_a_newer_schema_is_refused_and_not_changed(store: Store) -> None:
    store.close()
    with closing(sqlite3.connect(store.location, isolation_level=None)) as file:
        file.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 7}")
    with pytest.raises(StoreError, match="newer") as caught:
        open_store(store.location)
    assert caught.value.exit_code == 3
    assert f"schema {SCHEMA_VERSION + 7}" in caught.value.message
    assert f"this one knows {SCHEMA_VERSION}" in caught.value.message
    assert caught.value.hint
    assert version(store.location) == SCHEMA_VERSION + 7


FOREIGN = {
    "without a version": "CREATE TABLE moz_places (url)",
    "with a version like ours": f"CREATE TABLE t (a); PRAGMA user_version = {SCHEMA_VERSION}",
    "made with sqlite-utils migrations": (
        "CREATE TABLE logs (a); "
        "CREATE TABLE _sqlite_migrations (migration_set TEXT, name TEXT, applied_at TEXT); "
        "INSERT INTO _sqlite_migrations VALUES ('llm', 'm001_initial', '2026-01-01')"
    ),
}


@pytest.mark.parametrize("script", FOREIGN.values(), ids=FOREIGN)
def test_a_file_of_another_program_is_refused_and_not_changed(tmp_path: Path, script: str) -> None:
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
def test_a_file_that_is_not_a_database_is_refused_and_not_changed(
    tmp_path: Path, data: bytes
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(data)
    with pytest.raises(StoreError, match="is not a database") as caught:
        open_store(str(path))
    assert caught.value.exit_code == 3
    assert path.read_bytes() == data


@pytest.mark.sqlite("it damages a file")
def test_the_error_of_a_corrupt_store_quotes_no_text(store: Store, add: Adding) -> None:
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


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    open_store(str(path)).close()
    assert version(path) == SCHEMA_VERSION


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


def test_files_and_folders_are_private_under_any_umask(tmp_path: Path) -> None:
    top = tmp_path / "a"
    lines = run(MODES, str(top / "b" / "store.db"), str(top)).splitlines()
    assert sorted(lines) == sorted(
        ["0o700 a", "0o700 b", "0o600 store.db", "0o600 store.db-wal", "0o600 store.db-shm"]
    )


def test_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
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
store.places()
store.close()
print(*sorted({"sqlite_utils", "numpy"} & sys.modules.keys()))
"""


@pytest.mark.sqlite("it is about a file")
def test_a_current_store_is_read_without_importing_sqlite_utils_or_numpy(store: Store) -> None:
    store.close()
    assert run(LOADED, store.location).split() == []


def test_a_new_store_is_created_with_sqlite_utils(tmp_path: Path) -> None:
    assert "sqlite_utils" in run(LOADED, str(tmp_path / "new.db")).split()


@pytest.mark.sqlite("it is about PRAGMAs")
def test_a_store_is_in_wal_mode_with_secure_delete(store: Store) -> None:
    connection = store._connection  # type: ignore[attr-defined]
    settings = ("journal_mode", "foreign_keys", "secure_delete", "synchronous")
    values = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in settings]
    assert values == ["wal", 1, 1, 2]


def test_a_failed_migration_leaves_the_file_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert version(path) == SCHEMA_VERSION
    assert os.path.getsize(path) > 0


def test_a_damaged_store_of_an_older_schema_keeps_its_conversations(tmp_path: Path) -> None:
    from reservoir_cli.storage.sqlite import salvage

    old = tmp_path / "old.db"
    with closing(sqlite3.connect(old)) as connection:
        database = Database(connection)
        names = [migration.name for migration in migrations.pending(database)]
        migrations.apply(database, stop_before=names[names.index("m006_projects")])
        connection.execute("PRAGMA user_version = 5")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("INSERT INTO conversations VALUES ('p', 'i', 'c', 'Redis', 's', 'm')")
        connection.commit()
    rescued, folder = tmp_path / "fresh.db", tmp_path / "folder"
    folder.mkdir()
    report = salvage.rescue(old, rescued, folder, lambda _: 0.85)
    assert report.tables == ()
    with closing(open_store(str(rescued))) as store:
        assert store.known_conversations([("p", "i", "c")]) == {
            ("p", "i", "c"): Conversation("c", "Redis", "s", "m")
        }


@pytest.mark.sqlite("a file's index is brought up to date when it is opened")
def test_migrating_an_older_index_adds_other_spellings_and_drops_whole_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    with monkeypatch.context() as older:
        older.setattr(fulltext, "indexed_text", fulltext.spaced_text)
        with closing(open_store(str(path))) as store:
            messages = [Message("user", text) for text in ("Łódź und Müller", "plain", "京都")]
            store.add(Scope("p", "i"), messages, counter=load_counter("approximate"), now=NOW)
    with closing(sqlite3.connect(path)) as file:
        for table in ("summaries", "sources", "tags", "pins", "ledger", "ledger_messages"):
            file.execute(f"DROP TABLE {table}")
        file.execute("DELETE FROM _sqlite_migrations WHERE name >= 'm007'")
        file.execute("PRAGMA user_version = 6")
        file.commit()
    with closing(open_store(str(path))) as store:
        for word in ("lodz", "mueller", "muller", "plain", "京都"):
            assert len(store.keyword(word, Scope("p"), 9)[0]) == 1, word
        assert store.problems() == []
        store.delete(store.find(Scope("p")))
    assert all(word not in path.read_bytes() for word in (b"lodz", b"mueller", b"muller"))


@pytest.fixture
def escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a store whose index has the escapes of three tool calls as they are written."""
    path = tmp_path / "old.db"
    with monkeypatch.context() as older:
        older.setattr(keyword_search, "searchable_text", plain_text)
        with closing(open_store(str(path))) as store:
            for number in range(3):
                add_call(store, f"zebra{number}")
    with closing(sqlite3.connect(path)) as file:
        file.execute("DELETE FROM _sqlite_migrations WHERE name = 'm011_escapes'")
        file.execute("PRAGMA user_version = 10")
        file.commit()
    return path


def add_call(store: Store, word: str) -> None:
    call = ToolCall("c", "write", json.dumps({"text": f"\n{word}"}))
    message = Message("assistant", "", tool_calls=(call,))
    store.add(Scope("p", "i"), [message], counter=load_counter("approximate"), now=NOW)


def found(store: Store, *words: str) -> list[int]:
    return [len(store.keyword(word, Scope(None), 9)[0]) for word in words]


@pytest.mark.sqlite("the index of a file needs the texts that were indexed to remove them")
def test_messages_indexed_before_escapes_were_decoded_can_be_changed(escaped: Path) -> None:
    with closing(open_store(str(escaped))) as store:
        add_call(store, "zebra3")
        assert found(store, "zebra0", "nzebra0", "zebra3", "nzebra3") == [0, 1, 1, 0]
        first, second, *others = store.last(Scope("p"), 0)
        store.move_partition("p", "q")
        new = Message("assistant", "other", tool_calls=second.tool_calls)
        counter = load_counter("approximate")
        store.edit(Key("q", second.id), new, counter=counter, now=NOW)
        assert found(store, "other", "nzebra1", "zebra3") == [1, 1, 1]
        store.delete([Key("q", message.id) for message in (first, second, *others)])
        assert store.problems() == []
    data = escaped.read_bytes()
    assert [word for word in (b"nzebra", b"zebra0", b"zebra3", b"other") if word in data] == []


@pytest.mark.sqlite("a file records how its messages were indexed")
def test_a_repair_and_a_copy_decode_the_escapes_of_all_messages(
    escaped: Path, tmp_path: Path
) -> None:
    with (
        closing(open_store(str(escaped))) as store,
        closing(open_store(str(tmp_path / "copy.db"))) as copy,
    ):
        copy_store.copy(store, copy, lambda *_: None)
        store.repair(lambda _: 0.85)
        for repaired in (store, copy):
            assert found(repaired, "zebra0", "zebra2", "nzebra0") == [1, 1, 0]
            repaired.delete(repaired.find(Scope("p")))
            assert repaired.problems() == []
        assert b"zebra0" not in escaped.read_bytes()
