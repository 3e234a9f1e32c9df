"""``reservoir backup``: consistent copies while other processes write."""

import re
import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import closing

import pytest

#: Ten megabytes.
BULK = "AS SELECT randomblob(4000) FROM messages a, messages b"

CHANGED = r"\d{4}-\d\d-\d\d \d\d:\d\d"


def dump(path):
    connection = sqlite3.connect(path)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


@pytest.fixture
def copied(cli, tmp_path):
    cli.store(*({"content": f"message {number}"} for number in range(50)))
    target = tmp_path / "copies" / "one.db"
    target.parent.mkdir()
    return cli, target


def test_a_copy_is_a_complete_store(copied):
    cli, target = copied
    result = cli("backup", str(target), "--json")
    assert result.document == {
        "schema_version": 1,
        "file": str(target),
        "bytes": target.stat().st_size,
    }
    assert result.err.startswith(f"copied the store to {target}, ")
    assert target.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in target.parent.iterdir()] == ["one.db"]
    assert dump(target) == dump(cli.db)
    assert len(cli("--db", str(target), "view", "0").out.splitlines()) == 50
    cli("--db", str(target), "doctor")
    with closing(sqlite3.connect(target)) as connection, connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_an_existing_file_is_replaced_only_after_confirmation(copied):
    cli, target = copied
    target.write_text("precious")
    refused = cli("backup", str(target), code=2).err
    path = re.escape(str(target))
    question = rf"without a terminal: {path} exists, 8 bytes, changed {CHANGED}; replace it\?\n"
    assert re.search(f"{question}hint: add --yes\n", refused)
    assert target.read_text() == "precious"
    cli("backup", str(target), "--yes")
    assert dump(target) == dump(cli.db)


def test_an_empty_store_replaces_no_copy_that_holds_messages(copied, tmp_path):
    cli, target = copied
    cli("backup", str(target))
    empty = tmp_path / "empty.db"
    empty.touch()
    refused = cli("--db", str(empty), "backup", str(target), "--yes", "--quiet", code=1).err
    assert f"the store {empty} is empty, and {target} is not" in refused
    assert dump(target) == dump(cli.db)
    target.unlink()
    cli("--db", str(empty), "backup", str(target))
    cli("--db", str(empty), "backup", str(target), "--yes")


def test_the_question_says_what_a_store_holds_that_is_to_be_replaced(copied):
    cli, target = copied
    cli("backup", str(target))
    refused = cli("backup", str(target), code=2).err
    assert re.search(rf"exists, 0\.\d MB, changed {CHANGED}, 50 messages; replace it\?\n", refused)
    assert [path.name for path in target.parent.iterdir()] == ["one.db"]
    with closing(sqlite3.connect(target)) as connection, connection:
        connection.execute("ALTER TABLE messages RENAME TO others")
        connection.execute(
            "CREATE VIEW messages AS WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i FROM n) "
            "SELECT i FROM n"
        )
    assert re.search(rf"changed {CHANGED}; replace", cli("backup", str(target), code=2).err)


@pytest.mark.parametrize(
    ("file", "code", "message"),
    [
        ("none/x.db", 1, "No such file or directory"),
        (".", 1, "is a folder"),
        ("home/reservoir.db", 2, "is the store itself"),
        ("home/reservoir.db-wal", 2, "is the store itself"),
        ("home/reservoir.toml", 2, "is Reservoir's settings file"),
    ],
)
def test_a_path_that_cannot_be_written_is_an_error(copied, file, code, message):
    cli, _ = copied
    before = dump(cli.db)
    assert message in cli("backup", file, "--yes", code=code).err
    assert dump(cli.db) == before


def test_the_settings_file_in_use_is_never_overwritten(copied, tmp_path):
    cli, _ = copied
    settings = tmp_path / "mine.toml"
    settings.write_text('partition = "default"\n', encoding="utf-8")
    for command in ("backup", "export --all-partitions -o"):
        arguments = [*command.split(), str(settings)]
        yes = ["--yes"] if command == "backup" else []
        refused = cli("--config", str(settings), *arguments, *yes, code=2).err
        assert "is Reservoir's settings file" in refused
        assert settings.read_text(encoding="utf-8") == 'partition = "default"\n'


def test_without_a_store_there_is_nothing_to_copy(cli, tmp_path):
    assert "there is no store" in cli("backup", str(tmp_path / "x.db"), code=1).err
    assert not (tmp_path / "x.db").exists()
    assert not cli.db.exists()


def test_a_read_only_store_is_copied(copied, as_owner):
    cli, target = copied
    cli.db.chmod(0o400)
    cli("backup", str(target), command=(*as_owner, "reservoir"))
    assert len(cli("--db", str(target), "view", "0").out.splitlines()) == 50


def test_a_copy_is_consistent_while_others_write(copied):
    """A writer keeps two rows equal, so they must be equal in every copy."""
    cli, target = copied
    with closing(sqlite3.connect(cli.db)) as connection, connection:
        connection.execute("INSERT INTO properties VALUES ('left', '0'), ('right', '0')")
        connection.execute(
            "CREATE TABLE bulk AS SELECT randomblob(4000) FROM messages a, messages b"
        )
    result, written = threading.Event(), threading.Event()

    def write():
        writer = sqlite3.connect(cli.db, isolation_level=None, timeout=30)
        number = 0
        while not result.is_set():
            number += 1
            writer.execute("BEGIN IMMEDIATE")
            for key in ("left", "right"):
                writer.execute("UPDATE properties SET value = ? WHERE key = ?", (number, key))
            writer.execute("UPDATE bulk SET rowid = rowid WHERE rowid % 100 = ?", [number % 100])
            writer.execute("COMMIT")
            written.set()
        writer.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        seen = set()
        for _ in range(3):
            for _ in range(2):  # the first may be of what the last copy has already
                written.clear()
                assert written.wait(120), "the writer does not write"
            cli("backup", str(target), "--yes")
            with closing(sqlite3.connect(target)) as copy, copy:
                left, right = (
                    row[0]
                    for row in copy.execute(
                        "SELECT value FROM properties WHERE key IN ('left', 'right') ORDER BY key"
                    )
                )
                assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            copy.close()
            assert left == right
            seen.add(left)
    finally:
        result.set()
        thread.join()
    assert len(seen) == 3  # the writer did write in between


def test_an_interrupted_copy_leaves_the_target_unchanged(copied):
    cli, target = copied
    with closing(sqlite3.connect(cli.db)) as connection, connection:
        connection.execute(
            "CREATE TABLE bulk AS SELECT randomblob(9000) FROM messages a, messages b"
        )
    target.write_text("precious")
    process = cli.start("backup", str(target), "--yes", stderr=subprocess.PIPE)
    while process.poll() is None and not list(target.parent.glob(".one.db.*")):
        time.sleep(0.001)
    process.terminate()
    process.communicate(timeout=300)
    if target.read_bytes() == b"precious":
        assert process.returncode == 143
    else:  # the copy was complete; Python handles no signals while it shuts down
        assert process.returncode in (0, 143, -signal.SIGTERM)
    assert [file.name for file in target.parent.iterdir()] == ["one.db"]


def test_a_store_is_not_written_to_stdout(cli):
    cli.say("hello")
    assert "a store cannot be written to stdout" in cli("backup", "-", code=2).err
    assert not (cli.home.parent / "-").exists()
