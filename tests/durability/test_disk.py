"""Disks that are full, read-only, or lose files: a clear error, and nothing is lost."""

import os
import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import killing
import pytest
from filling import room
from trials import ended, faults

posix_only = pytest.mark.skipif(os.name != "posix", reason="limits and modes of POSIX")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Return a file of 1,500 messages."""
    file = tmp_path / "rows.jsonl"
    killing.rows(file, random.Random(1), 1_500, needle_every=10)
    return file


FULL = {
    "a new store": (0, ["ingest", "--no-embed"]),
    "a new store, half made": (50_000, ["ingest", "--no-embed"]),
}


@posix_only
@pytest.mark.parametrize(("most", "command"), FULL.values(), ids=FULL)
def test_a_failed_creation_of_a_store_can_be_repeated(person, most, command):
    refused = person(*command, stdin="hello", preexec_fn=room(most))
    assert (refused.code, refused.out) == (3, "")
    assert refused.is_one_line_error
    assert "quota" in refused.err
    assert person.must(*command, stdin="hello").out == "1\n"
    assert faults(person.db) == []


@posix_only
def test_a_full_disk_leaves_no_partial_writes(person, rows, tmp_path):
    person.must("ingest", "--no-embed", stdin="said before")
    long = "a long message " * 20_000
    refused = person("ingest", "--no-embed", stdin=long, preexec_fn=room(100_000))
    assert (refused.code, refused.out) == (3, "")
    assert refused.is_one_line_error
    assert person.rows("content") == [("said before",)]
    assert person.must("ingest", "--no-embed", stdin=long).out == "2\n"
    before = person.rows("*")

    imported = person("ingest", "--no-embed", str(rows), preexec_fn=room(700_000))
    assert imported.code == 3
    assert imported.is_one_line_error
    part = person.rows("*")
    assert part[: len(before)] == before
    assert faults(person.db) == []
    person.must("ingest", "--no-embed", str(rows))
    whole = person.rows("*")
    assert whole[: len(part)] == part
    assert len(whole) == len(before) + 1_500

    forget = ("forget", "--match", killing.NEEDLE, "--all-partitions", "--yes")
    assert person(*forget, preexec_fn=room(100_000)).code == 3
    assert person.rows("*") == whole
    for command in (["backup", "copy.db"], ["export", "--all-partitions", "-o", "out.jsonl"]):
        refused = person(*command, preexec_fn=room(100_000))
        assert refused.code == 1
        assert f"cannot write {command[-1]}" in refused.err or command[-1] in refused.err
        assert not (person.folder / command[-1]).exists()
    assert not [path for path in person.folder.iterdir() if path.name.startswith(".")]
    assert person("doctor").code == 0


@posix_only
def test_a_full_disk_leaves_the_settings_unchanged(person):
    person.must("config", "--set", "recent_context_size=3")
    before = person.config.read_bytes()
    refused = person("config", "--set", "recent_context_size=4", preexec_fn=room(5))
    assert refused.code == 2
    assert refused.is_one_line_error
    assert person.config.read_bytes() == before
    assert not [path for path in person.folder.iterdir() if path.name.startswith(".")]


@posix_only
@pytest.mark.parametrize("which", ["the file", "the folder"])
def test_read_only_stores_can_be_read_but_not_written(person, without_rights, which):
    person.must("ingest", "--no-embed", stdin="said before")
    closed, mode = (person.db, 0o400) if which == "the file" else (person.folder, 0o500)
    closed.chmod(mode)
    try:
        for command in (["ingest", "--no-embed"], ["forget", "--id", "1", "--yes"]):
            refused = person(*command, stdin="x", prefix=without_rights)
            assert refused.code == 3
            assert refused.is_one_line_error
            assert "hint: check the permissions" in refused.err
        assert person.must("view", prefix=without_rights).out == "user: said before\n"
        if which == "the folder":
            refused = person("config", "--set", "recent_context_size=4", prefix=without_rights)
            assert refused.code == 2
            assert refused.is_one_line_error
    finally:
        closed.chmod(0o700)
    assert person.must("ingest", "--no-embed", stdin="said after").out == "2\n"


# A store that is removed while it is in use


TAKEN = {
    "removed": lambda path: path.unlink(),
    "replaced": lambda path: (path.rename(path.with_name("old.db")), path.write_bytes(b"")),
}


@posix_only
@pytest.mark.parametrize("take", TAKEN.values(), ids=TAKEN)
def test_writes_to_an_unlinked_file_are_not_acknowledged(tmp_path, take):
    from reservoir_cli import Message, Reservoir
    from reservoir_cli.errors import StoreError

    path = tmp_path / "store.db"
    with Reservoir.open(path) as opened:
        opened.ingest([Message("user", "before")], embed=False)
        take(path)
        with pytest.raises(StoreError, match="removed or replaced") as caught:
            opened.ingest([Message("user", "into the void")], embed=False)
    assert caught.value.exit_code == 3
    assert caught.value.hint


@posix_only
def test_a_running_import_ends_if_its_store_is_removed(person, tmp_path):
    file = tmp_path / "many.jsonl"
    killing.rows(file, random.Random(1), 30_000)
    process = person.start("ingest", "--no-embed", str(file))
    while not _stored(person.db) and process.poll() is None:
        time.sleep(0.02)
    for file_of_store in person.folder.glob("reservoir.db*"):
        file_of_store.unlink()
    result = ended(process)
    assert (result.code, result.out) == (3, "")
    assert "removed or replaced while it was in use" in result.err
    assert "hint: " in result.err
    killing.rows(file, random.Random(1), 1_500)
    person.must("ingest", "--no-embed", str(file))
    assert person.rows("COUNT(*)") == [(1_500,)]


def _stored(path: Path) -> int:
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT COUNT(*) FROM messages").fetchone()[0])
    except sqlite3.OperationalError:  # not created yet
        return 0
