"""Putting a store in place: the log of another file is never replayed over it."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from trials import Home

from reservoir_cli import Reservoir
from reservoir_cli.errors import ReservoirError, StoreCorruptError, StoreError
from reservoir_cli.maintenance import backup as maintenance
from reservoir_cli.messages import Message
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.sqlite.care.replace_file import check_count, publish

COUNT = 200
NEWER = 300


def say(path: Path, first: int, count: int) -> None:
    with Reservoir.open(path) as reservoir:
        messages = [
            Message(
                "user", f"message {number} " + "x" * 400, datetime.now(UTC), source_id=f"{number}"
            )
            for number in range(first, first + count)
        ]
        reservoir.ingest(messages, embed=False)


def numbers(path: Path) -> list[int]:
    """Return the numbers of the messages in a store, which must be sound."""
    with Reservoir.open(path, create=False) as reservoir:
        assert reservoir.store.problems() == []
        return sorted(
            int(message.content.split()[1]) for message in reservoir.view(reservoir.scope(), 0)
        )


def backup(store: Path, target: Path) -> None:
    with Reservoir.open(store) as reservoir:
        reservoir.backup(target)


def salvage(store: Path, target: Path) -> None:
    maintenance.salvage(str(store), target)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.db"
    say(path, 0, COUNT)
    return path


def leave_log(path: Path) -> None:
    """Leave a store as a killed program does, with the newest messages in the log."""
    killed = path.with_name("killed.db")
    say(killed, 1_000, NEWER)
    writer = sqlite3.connect(killed, isolation_level=None)
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    writer.execute("UPDATE messages SET content = replace(content, 'x', 'y')")
    path.write_bytes(killed.read_bytes())
    path.with_name(f"{path.name}-wal").write_bytes(killed.with_name("killed.db-wal").read_bytes())
    writer.close()


def test_a_backup_replaces_a_copy_with_the_log_of_a_killed_program(source, tmp_path):
    target = tmp_path / "copy.db"
    leave_log(target)
    backup(source, target)
    assert numbers(target) == list(range(COUNT))
    assert not target.with_name("copy.db-wal").exists()


def test_a_failed_backup_leaves_the_copy_of_a_killed_program_intact(source, tmp_path):
    target = tmp_path / "copy.db"
    leave_log(target)
    with pytest.raises(KeyboardInterrupt), publish(target):
        raise KeyboardInterrupt
    with closing(sqlite3.connect(target)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        changed = "SELECT COUNT(*) FROM messages WHERE content LIKE '%y'"
        assert connection.execute(changed).fetchone() == (NEWER,)


@pytest.mark.parametrize("make", [backup, salvage])
@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_a_log_without_its_file_is_refused_and_kept(source, tmp_path, make, ending):
    target = tmp_path / "copy.db"
    leave_log(target)
    target.unlink()
    log = target.with_name(f"copy.db{ending}")
    target.with_name("copy.db-wal").rename(log)
    before = log.read_bytes()
    with pytest.raises(ReservoirError, match="the log of another database") as refused:
        make(source, target)
    assert refused.value.hint == f"move {log.name} away, or name another file"
    assert log.read_bytes() == before
    assert not target.exists()
    log.rename(tmp_path / "away")
    make(source, target)
    assert numbers(target) == list(range(COUNT))


@pytest.fixture(params=["WAL", "DELETE"])
def opened_elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Return a copy that another program is reading."""
    target = tmp_path / "copy.db"
    say(target, 1_000, NEWER)
    with closing(sqlite3.connect(target, isolation_level=None)) as other:
        other.execute(f"PRAGMA journal_mode = {request.param}")
        other.execute("BEGIN")
        other.execute("SELECT COUNT(*) FROM messages").fetchone()
        yield target


def test_a_copy_that_another_program_has_open_is_not_replaced(source, opened_elsewhere):
    with pytest.raises(ReservoirError, match=r"another program has .* open"):
        backup(source, opened_elsewhere)
    assert numbers(opened_elsewhere) == list(range(1_000, 1_000 + NEWER))


def test_a_file_that_is_not_a_database_is_replaced(source, tmp_path):
    for content in (b"", b"precious" * 200):
        target = tmp_path / "copy.db"
        target.write_bytes(content)
        target.with_name("copy.db-wal").touch()
        backup(source, target)
        assert numbers(target) == list(range(COUNT))


def test_a_store_with_data_in_its_log_is_not_published(source, tmp_path):
    target = tmp_path / "copy.db"
    with pytest.raises(ReservoirError, match="log of another"), publish(target) as unfinished:
        leave_log(unfinished)
    assert not target.exists()


def test_a_written_store_is_counted(source):
    with closing(open_store(str(source))) as store:
        check_count(store, COUNT)
        with pytest.raises(StoreCorruptError, match="holds 200 messages instead of 201"):
            check_count(store, COUNT + 1)


def test_logs_of_unfinished_copies_are_removed(source, tmp_path):
    names = [f".copy.db.0123abcd{ending}" for ending in ("", "-wal", "-shm", "-journal")]
    others = [".copy.db.0123abcd-other", ".copy.db.backup-of-mine"]
    for name in (*names, *others):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    backup(source, tmp_path / "copy.db")
    assert not [name for name in names if (tmp_path / name).exists()]
    assert all((tmp_path / name).exists() for name in others)


def test_a_new_store_beside_a_log_is_refused(source, tmp_path):
    target = tmp_path / "copy.db"
    leave_log(target)
    target.unlink()
    log = target.with_name("copy.db-wal")
    before = log.read_bytes()
    person = Home(tmp_path / "person")
    for command in (["db", "copy", str(source), str(target)], ["--db", str(target), "ingest"]):
        refused = person(*command, stdin="hello")
        assert (refused.code, refused.out) == (3, "")
        assert refused.err.startswith(f"error: the store {target} was removed, but its log was not")
    assert log.read_bytes() == before
    assert not target.exists()
    log.unlink()
    person.must("db", "copy", str(source), str(target))
    assert numbers(target) == list(range(COUNT))


@pytest.fixture
def linked(source: Path, tmp_path: Path) -> Path:
    """Return a second hard link to the store."""
    link = tmp_path / "link.db"
    try:
        os.link(source, link)
    except OSError:
        pytest.skip("no hard links here")
    return link


def test_a_store_with_two_names_is_refused_until_one_is_removed(source, linked, tmp_path):
    person, before = Home(tmp_path / "person"), source.read_bytes()
    for path in (source, linked):
        for command in (["ingest"], ["view"], ["backup", "new.db"], ["doctor", "--repair"]):
            refused = person("--db", str(path), *command, stdin="hello")
            assert refused.code == (1 if command[0] == "doctor" else 3)
            assert f"{path} has 2 names (hard links)" in refused.out + refused.err
            assert "remove the others" in refused.out + refused.err
    assert source.read_bytes() == before
    source.unlink()
    assert numbers(linked) == list(range(COUNT))
    symbolic = tmp_path / "symbolic.db"
    symbolic.symlink_to(linked)
    say(symbolic, COUNT, 1)
    assert numbers(linked) == list(range(COUNT + 1))


def test_a_hard_link_added_while_the_store_is_open_stops_the_writer(source, tmp_path):
    with Reservoir.open(source) as reservoir:
        try:
            os.link(source, tmp_path / "link.db")
        except OSError:
            pytest.skip("no hard links here")
        with pytest.raises(StoreError, match="has 2 names"):
            reservoir.ingest([Message("user", "lost")], embed=False)
        (tmp_path / "link.db").unlink()
        assert reservoir.ingest([Message("user", "message 200")], embed=False)
    assert numbers(source) == list(range(COUNT + 1))


def test_a_file_system_without_link_counts_works(source, monkeypatch):
    stat = Path.stat

    def uncounted(path: Path, **options: bool) -> os.stat_result:
        return os.stat_result([*stat(path, **options)[:3], 0, *stat(path, **options)[4:]])

    monkeypatch.setattr(Path, "stat", uncounted)
    say(source, COUNT, 1)
    assert len(numbers(source)) == COUNT + 1
