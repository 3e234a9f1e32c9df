"""Triggers, views and generated columns of a foreign store never run when it is written."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from builders import EVERYWHERE, NOW, embed

from reservoir_cli import Reservoir
from reservoir_cli.errors import StoreError
from reservoir_cli.maintenance.backup import salvage
from reservoir_cli.messages import Key, Message
from reservoir_cli.storage.sqlite import foreign_code, schema, store_file
from reservoir_cli.storage.sqlite.store import SqliteStore

CODE = {
    "a trigger": "CREATE TRIGGER keeps BEFORE DELETE ON messages BEGIN SELECT RAISE(IGNORE); END",
    "a trigger in other letters": """
        CREATE TRIGGER "it\n'keeps" AFTER DELETE ON MESSAGES BEGIN
        INSERT INTO pending VALUES (old.partition, old.id); END
    """,
    "a trigger on the full text": """
        CREATE TRIGGER copies AFTER INSERT ON messages_fts_data BEGIN SELECT 1; END
    """,
    "a view": "CREATE VIEW all_of_them AS SELECT * FROM messages",
    "a view in place of a table": """
        DROP TABLE context_runs; CREATE VIEW context_runs AS SELECT 1 AS id
    """,
    "a generated column": """
        ALTER TABLE messages ADD COLUMN again TEXT GENERATED ALWAYS AS (content || content)
    """,
    "a virtual table": "DROP TABLE pending; CREATE VIRTUAL TABLE pending USING fts5 (message_id)",
}
HARMLESS = """
    CREATE TABLE notes (id INTEGER PRIMARY KEY, twice TEXT GENERATED ALWAYS AS (id * 2));
    CREATE TRIGGER own AFTER INSERT ON notes BEGIN DELETE FROM notes WHERE id < 0; END;
    CREATE INDEX of_mine ON messages (role);
    ANALYZE;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "given.db"
    with Reservoir.open(path) as reservoir:
        reservoir.ingest([Message("user", "stays", NOW), Message("user", "goes")], embed=False)
    return path


def run(path: Path, statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(statements)


@pytest.mark.parametrize("statements", CODE.values(), ids=CODE)
def test_a_store_with_code_can_be_read_but_not_written(path, statements):
    run(path, statements)
    before = path.read_bytes()
    with Reservoir.open(path) as reservoir:
        assert [message.content for message in reservoir.view(EVERYWHERE, 0)] == ["stays", "goes"]
        for write in (
            lambda: reservoir.forget([2]),
            lambda: reservoir.ingest([Message("user", "new")], embed=False),
            lambda: reservoir.store._purge(),
            lambda: reservoir.store.repair(),
        ):
            with pytest.raises(StoreError, match="and is not written to") as refused:
                write()
            assert "\n" not in refused.value.message
            assert "--salvage" in str(refused.value.hint)
    assert path.read_bytes() == before
    with closing(SqliteStore(str(path), create=False, patience=1)) as store:
        assert any("nothing is written" in fault.detail for fault in store.problems())


@pytest.mark.parametrize("name", ["a trigger", "a view", "a generated column"])
def test_salvaging_a_store_with_code_gives_a_writable_store(path, tmp_path, name):
    run(path, CODE[name])
    assert salvage(str(path), tmp_path / "own.db").saved == 2
    with Reservoir.open(tmp_path / "own.db") as reservoir:
        reservoir.forget([2])
        assert [message.content for message in reservoir.view(EVERYWHERE, 0)] == ["stays"]


def test_a_store_with_code_is_not_migrated(path, monkeypatch):
    run(path, CODE["a trigger"])
    monkeypatch.setattr(store_file, "VERSION", 2)
    monkeypatch.setattr(schema, "VERSION", 2)
    with pytest.raises(StoreError, match="a trigger on messages"):
        Reservoir.open(path)
    run(path, "DROP TRIGGER keeps")
    with Reservoir.open(path) as reservoir:
        reservoir.forget([2])


def test_code_that_is_added_while_the_store_is_open_is_noticed(path):
    with Reservoir.open(path) as reservoir:
        reservoir.pin(2)
        run(path, CODE["a trigger"])
        with pytest.raises(StoreError, match="a trigger on messages"):
            reservoir.forget([2])
        run(path, "DROP TRIGGER keeps")
        reservoir.forget([2])


def test_tables_of_others_in_the_file_are_allowed(path):
    run(path, HARMLESS)
    with Reservoir.open(path) as reservoir:
        reservoir.forget([2])
        assert [message.content for message in reservoir.view(EVERYWHERE, 0)] == ["stays"]


def test_all_tables_of_ours_are_known(path):
    with closing(sqlite3.connect(path)) as connection:
        names = {row[0] for row in connection.execute("SELECT tbl_name FROM sqlite_master")}
    ours = {name for name in names if not name.startswith((foreign_code.FULL_TEXT, "sqlite_"))}
    assert ours == foreign_code.TABLES


@pytest.mark.sqlite("triggers of the connection are SQLite's")
def test_a_delete_that_deletes_nothing_is_rolled_back(store, add, fake_embedder):
    add(*(Message("user", f"number {number}") for number in range(5)))
    embed(store, fake_embedder)
    assert isinstance(store, SqliteStore)
    trigger = (
        "CREATE TEMP TRIGGER kept BEFORE DELETE ON main.messages BEGIN SELECT RAISE(IGNORE); END"
    )
    store._connection.execute(trigger)
    with pytest.raises(StoreError, match="message 2 could not be deleted, so nothing was"):
        store.delete([Key("p", 2), Key("p", 3)])
    store._connection.execute("DROP TRIGGER temp.kept")
    assert store.find(EVERYWHERE).ids == [1, 2, 3, 4, 5]
    assert store.problems() == []
    store.delete([Key("p", 2), Key("p", 3)])
    assert store.find(EVERYWHERE).ids == [1, 4, 5]
