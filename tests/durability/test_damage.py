"""A store on a failing disk: commands refuse, doctor detects, --repair or a backup restores."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import damaging
import pytest
from damaging import page_of, zero_page
from trials import Home, copied, faults, settle

from reservoir_cli.messages import Scope
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.tables.summaries import Summaries, Summary


def test_random_damage_is_detected_repaired_or_restored(tmp_path):
    home = damaging.build(tmp_path, 120)
    tally = damaging.damaged(home, 7, 5)
    assert tally.trials == 5
    assert tally.clean, tally


@pytest.fixture
def filled(person: Home) -> Home:
    """Return a home with three messages and an empty write-ahead log."""
    for number in range(3):
        person.must("ingest", "--no-embed", stdin=f"message number {number} about redis")
    settle(person.db)
    return person


def overwrite(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert len(old) == len(new)
    assert old in data
    path.write_bytes(data.replace(old, new))


def drop_from_index(path: Path) -> None:
    """Remove a row from an index, as a lost page does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        sql = "CREATE INDEX messages_by_trace ON messages (partition, trace_id)"
        partial = f"{sql} WHERE id > 1"
        connection.execute("DROP INDEX messages_by_trace")
        connection.execute(partial)
        connection.execute(
            "UPDATE sqlite_schema SET sql = ? WHERE name = 'messages_by_trace'", [sql]
        )
    settle(path)


def test_an_index_without_a_row_is_detected_and_rebuilt(filled):
    before = filled.rows("*")
    drop_from_index(filled.db)
    checked = filled("doctor")
    assert checked.code == 1
    assert "missing from index messages_by_trace" in checked.out
    assert "reservoir doctor --repair" in checked.out
    assert filled("doctor", "--repair").code == 0
    assert filled("doctor").code == 0
    assert filled.rows("*") == before
    assert faults(filled.db) == []
    assert filled.db.stat().st_mode & 0o777 == 0o600
    assert not [path for path in filled.folder.iterdir() if path.name.startswith(".")]


def flip_a_bit_of_an_id(path: Path, number: int, bit: int) -> None:
    """Flip a bit of the id of one of three messages in its row, while the indexes keep the id."""
    with closing(sqlite3.connect(path)) as connection:
        [(root,)] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages'")
    data = bytearray(path.read_bytes())
    page = (root - 1) * 4096
    place = page + 6 + 2 * number
    cell = page + int.from_bytes(data[place : place + 2], "big")
    while data[cell] & 0x80:  # the size of the row
        cell += 1
    assert data[cell + 1] == number
    data[cell + 1] ^= bit
    path.write_bytes(data)


@pytest.mark.parametrize(("number", "bit"), [(3, 4), (2, 8), (1, 32)])
def test_a_message_whose_id_is_damaged_gets_it_back(filled, number, bit):
    filled.must("tag", str(number), "kept")
    settle(filled.db)
    before = filled.rows("*")
    flip_a_bit_of_an_id(filled.db, number, bit)
    assert filled("doctor").code == 1
    target = filled.folder / "saved.db"
    assert filled("doctor", "--salvage", str(target)).code == 0
    assert filled("doctor", "--repair").code == 0
    assert filled.rows("*") == before
    for store in (filled.db, target):
        found = filled.must("--db", str(store), "view", "--tag", "kept", "--json").out
        assert [row["id"] for row in json.loads(found)["messages"]] == [number]


def test_a_repair_yields_to_a_concurrent_writer(filled, monkeypatch):
    from reservoir_cli.errors import StoreLockedError
    from reservoir_cli.storage.open_store import open_store
    from reservoir_cli.storage.sqlite.care import repair

    drop_from_index(filled.db)
    copy = repair.copy_tables

    def copy_then_another_writes(*connections: sqlite3.Connection) -> set[str]:
        lost = copy(*connections)
        filled.must("ingest", "--no-embed", stdin="said while it was repaired")
        return lost

    monkeypatch.setattr(repair, "copy_tables", copy_then_another_writes)
    with closing(open_store(str(filled.db))) as store:
        with pytest.raises(StoreLockedError, match="while it was repaired"):
            store.repair()
        monkeypatch.undo()
        assert filled.rows("content", "id = 4") == [("said while it was repaired",)]
        store.repair()
        assert store.problems() == []
    assert len(filled.rows()) == 4


def test_invalid_text_is_refused_detected_and_repaired(filled):
    overwrite(filled.db, b"number 1 about", b"number \xff about")
    refused = filled("view", "0")
    assert (refused.code, refused.out) == (3, "")
    assert refused.is_one_line_error
    assert "corrupt" in refused.err
    assert "about" not in refused.err
    checked = filled("doctor")
    assert checked.code == 1
    assert "1 message cannot be read: 2" in checked.out
    mended = filled("doctor", "--repair")
    assert mended.code == 0
    assert "replaced by U+FFFD in messages 2" in mended.out
    assert filled.rows("content", "id = 2") == [("message number \ufffd about redis",)]
    assert len(filled.must("view", "0").out.splitlines()) == 3


def test_an_impossible_value_is_an_error_that_names_the_message(filled):
    with closing(sqlite3.connect(filled.db)) as connection, connection:
        connection.execute("UPDATE messages SET tool_calls = '[{]' WHERE id = 3")
    refused = filled("view", "0")
    assert refused.code == 3
    assert refused.is_one_line_error
    assert "message 3 cannot be read" in refused.err
    assert filled("doctor").code == 1


def test_a_repair_that_cannot_read_a_message_changes_nothing_and_gives_a_hint(filled):
    drop_from_index(filled.db)  # a reason to rewrite the index
    with closing(sqlite3.connect(filled.db)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE messages SET role = 'uses' WHERE id = 2")
    before = filled.rows("*")
    failed = filled("doctor", "--repair")
    assert failed.code == 1
    assert "not all messages can be read; it cannot be repaired" in failed.out
    assert filled.rows("*") == before
    assert not [path for path in filled.folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("column", ["ids", "codes", "flags"])
def test_unreadable_ranking_data_is_detected_and_rebuilt(tmp_path, column):
    home = damaging.build(tmp_path, 20)
    ask = ("context", "redis?", "--budget", "300")
    before = home.must(*ask).out
    with closing(sqlite3.connect(home.db)) as connection, connection:
        connection.execute(f"UPDATE blocks SET {column} = x'010203'")
    answered = home(*ask)
    assert answered.code in (0, 3)
    assert answered.code == 0 or answered.is_one_line_error
    assert home("doctor").code == 1
    assert home("doctor", "--repair").code == 0
    assert home.must(*ask).out == before


def test_an_empty_store_with_a_log_is_refused(person):
    person.must("ingest", "--no-embed", stdin="kept in the log")
    with closing(sqlite3.connect(person.db)) as reader:  # keeps the log from being truncated
        reader.execute("SELECT * FROM messages").fetchone()
        person.must("ingest", "--no-embed", stdin="kept in the log too")
        log = person.db.with_name("reservoir.db-wal").read_bytes()
        assert log
    person.db.write_bytes(b"")
    person.db.with_name("reservoir.db-wal").write_bytes(log)
    refused = person("ingest", "--no-embed", stdin="another")
    assert refused.code == 3
    assert refused.is_one_line_error
    assert "was emptied" in refused.err
    assert person.db.with_name("reservoir.db-wal").read_bytes() == log


def test_the_printed_recovery_steps_work(filled, tmp_path):
    backup = tmp_path / "backup.db"
    filled.must("backup", str(backup))
    before = filled.rows("*")
    data = filled.db.read_bytes()
    filled.db.write_bytes(data[: len(data) // 2])
    output = filled("doctor", "--repair").out
    assert "in a backup" in output or "copy a backup" in output
    for file in filled.folder.glob("reservoir.db*"):
        file.rename(tmp_path / f"away-{file.name}")
    filled.db.write_bytes(backup.read_bytes())
    assert filled("doctor").code == 0
    assert filled.rows("*") == before


@pytest.mark.parametrize(
    ("damage", "command"),
    [
        ("UPDATE messages SET partition = x'00ff' WHERE id = 2", ["partitions"]),
        ("UPDATE messages SET partition = x'00ff' WHERE id = 2", ["partitions", "--json"]),
        ("UPDATE messages SET created_at = 'then' WHERE id = 2", ["conversations"]),
        ("UPDATE messages SET created_at = 1e300 WHERE id = 2", ["partitions"]),
        ("DELETE FROM messages WHERE id > 5", ["search", "redis"]),
    ],
    ids=["partition", "partition in JSON", "time", "number", "row"],
)
def test_errors_of_damaged_rows_name_the_cause(tmp_path, damage, command):
    home = damaging.build(tmp_path, 20)
    with closing(sqlite3.connect(home.db, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(damage)
    result = home(*command)
    assert result.code == 3
    assert result.is_one_line_error
    assert "is corrupt" in result.err
    assert "hint: run reservoir doctor --repair" in result.err
    assert home("doctor").code == 1


MADE_AGAIN = [
    *("messages_by_partition", "messages_by_instance", "messages_by_trace"),
    *("messages_by_conversation", "messages_by_tool_call", "sqlite_autoindex_messages_1"),
    *("messages_fts_data", "messages_fts_idx", "messages_fts_docsize", "messages_fts_config"),
    *("pending", "rebuilding", "blocks", "blocks_by_place", "messages_by_time"),
    *("context_runs", "context_runs_by_time", "sqlite_sequence"),
]


@pytest.mark.parametrize("name", MADE_AGAIN)
def test_a_lost_page_of_derived_data_is_repaired(sound, tmp_path, name):
    path = tmp_path / "damaged.db"
    copied(sound.db, path)
    with closing(sqlite3.connect(path)) as connection:
        [[page]] = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?", [name]
        ).fetchall()
        before = connection.execute("SELECT * FROM messages ORDER BY id").fetchall()
    zero_page(path, page)
    with closing(open_store(str(path))) as store:
        assert store.problems()
        assert store.repair() == ([], [])
        assert store.problems() == []
        assert store.holdings()["messages"] == 120
    assert faults(path) == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM messages ORDER BY id").fetchall() == before


def test_a_repair_of_an_emptied_store_does_not_reuse_ids(filled):
    filled.must("forget", "--id", "1", "--id", "2", "--id", "3", "--yes")
    settle(filled.db)
    with closing(sqlite3.connect(filled.db)) as connection:
        [[page]] = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'messages_by_trace'"
        ).fetchall()
    zero_page(filled.db, page)
    filled.must("doctor", "--repair")
    filled.must("ingest", "--no-embed", stdin="said after the repair")
    assert filled.rows("id") == [(4,)]


def test_a_damaged_model_name_is_restored_from_the_vectors(sound, tmp_path):
    path = tmp_path / "damaged.db"
    copied(sound.db, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE properties SET value = 'inwented' WHERE key = 'embedding_model_id'"
        )
    with closing(open_store(str(path))) as store:
        assert store.problems()
        store.repair()
        assert store.active_model() == ("invented", "nobody/absent-model")
        assert store.problems() == []


@pytest.mark.parametrize("index_is_lost", [False, True])
def test_summaries_that_cannot_be_read_are_named_and_the_others_kept(
    sound, tmp_path, index_is_lost
):
    path = tmp_path / "damaged.db"
    copied(sound.db, path)
    ids = [f"c{number:02}" for number in range(10)]
    with closing(open_store(str(path))) as store:
        for name in ids:  # each on a page of its own
            Summaries(store).put(Summary("p", "p", name, "", f"{name} " * 900, "extract", 0))
    settle(path)
    zero_page(path, page_of(path, "c04 c04"))
    if index_is_lost:
        with closing(sqlite3.connect(path)) as connection:
            [[root]] = connection.execute(
                "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_summaries_1'"
            )
        zero_page(path, root)
    result = sound("--db", str(path), "doctor", "--repair", "--json")
    [check] = [row for row in json.loads(result.out)["checks"] if row["name"] == "summaries"]
    lost = "the summaries of 1 conversation could not be read, and are deleted: c04"
    if index_is_lost:
        lost = "some summaries of conversations could not be read, and are deleted"
    assert (result.code, check["status"], check["detail"]) == (0, "note", lost)
    with closing(open_store(str(path))) as store:
        kept = [summary.conversation_id for summary in Summaries(store).read(Scope("p"))]
    assert kept == [name for name in ids if name != "c04"]


def test_a_text_of_zeros_is_reported(person):
    person.must("ingest", "--no-embed", stdin="a long text about redis " * 400 + "and its end")
    settle(person.db)
    zero_page(person.db, page_of(person.db, "and its end"))
    assert person("view", "0").code == 3
    assert person("doctor").code == 1
    mended = person("doctor", "--repair")
    assert "replaced by U+FFFD in messages 1" in mended.out
    assert person("doctor").code == 0
    assert "\0" not in person.must("view", "0").out
