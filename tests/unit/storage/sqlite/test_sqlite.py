"""A store in a SQLite file: transactions, locks, and errors when opening."""

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from builders import NOW
from stored import COUNTER, EVERYWHERE, HERE, contents

from reservoir_cli.errors import StoreError, StoreLockedError, UsageError
from reservoir_cli.messages import Conversation, Message
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.sqlite.connection import Connection


def run(script: str, *arguments: str, unprivileged: bool = False) -> subprocess.CompletedProcess:
    """Run Python in a new process; if unprivileged, file modes hold for root, too."""
    command = [sys.executable, "-c", script, *arguments]
    if unprivileged and os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root is stopped by no file mode, and setpriv is not here")
        command[:0] = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_an_old_sqlite_is_refused_before_a_store_is_created(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.26.0")
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 26, 0))
    with pytest.raises(StoreError, match=r"SQLite 3\.26\.0; Reservoir needs 3\.32 or later"):
        open_store(str(tmp_path / "store.db"))
    assert not list(tmp_path.iterdir())


# Transactions


def test_a_failed_write_leaves_nothing(store, add):
    def failing() -> None:
        with store.write():
            add(Message("user", "half"))
            store.add_conversations(HERE, [Conversation("c", "title")])
            raise RuntimeError("in between")

    with pytest.raises(RuntimeError):
        failing()
    assert store.last(EVERYWHERE, 0) == []
    assert store.count_unembedded(EVERYWHERE) == 0
    assert store.keyword("half", EVERYWHERE, 1)[0] == []
    assert contents(add(Message("user", "whole"))) == ["whole"]


def test_a_snapshot_is_consistent(store, add):
    add(Message("user", "before"))
    with closing(open_store(store.location)) as reader, reader.snapshot():
        assert contents(reader.last(HERE, 0)) == ["before"]
        add(Message("user", "after"))
        assert contents(reader.last(HERE, 0)) == ["before"]
    assert contents(store.last(HERE, 0)) == ["before", "after"]


def test_threads_that_share_a_store_lose_nothing(store, add):
    def work(number: int) -> None:
        for index in range(25):
            add(Message("user", f"{number}-{index}"))
            store.last(HERE, 5)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(contents(store.last(HERE, 0)))) == 100


INSERT = """
import sys
from datetime import UTC, datetime
from reservoir_cli.messages import Message, Scope
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.tokens import load_counter
path, who, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store, counter = open_store(path), load_counter("approximate")
for number in range(count):
    message = Message("user", f"{who}-{number}")
    store.add(Scope("p", "i"), [message], counter=counter, now=datetime.now(UTC))
store.close()
"""


def _insert_concurrently(count: int, path: Path, inserts: int) -> list[str]:
    command = [sys.executable, "-c", INSERT, str(path)]
    processes = [
        subprocess.Popen([*command, str(writer), str(inserts)], stderr=subprocess.PIPE, text=True)
        for writer in range(count)
    ]
    errors = [process.communicate(timeout=120)[1] for process in processes]
    return [text for process, text in zip(processes, errors, strict=True) if process.returncode]


def test_two_processes_with_two_hundred_inserts_each_lose_nothing(tmp_path):
    path = tmp_path / "new.db"
    assert _insert_concurrently(2, path, 200) == []
    with closing(open_store(str(path))) as store:
        stored = store.last(HERE, 0)
    expected = {f"{writer}-{number}" for writer in range(2) for number in range(200)}
    assert {message.content for message in stored} == expected
    assert len(stored) == 400


def test_twelve_processes_can_create_one_store_at_once(tmp_path):
    path = tmp_path / "folder" / "new.db"
    assert _insert_concurrently(12, path, 1) == []
    with closing(open_store(str(path))) as store:
        assert len(store.last(HERE, 0)) == 12


def test_a_locked_store_has_its_own_error_and_works_afterwards(store, add):
    add(Message("user", "before"))
    with closing(open_store(store.location, patience=0.01)) as hasty:
        with store.write():
            add(Message("user", "meanwhile"))
            with pytest.raises(StoreLockedError) as caught:
                hasty.add(HERE, [Message("user", "x")], counter=COUNTER, now=NOW)
            with pytest.raises(StoreLockedError), hasty.write(wait=0):
                hasty.add(HERE, [Message("user", "x")], counter=COUNTER, now=NOW)
            assert contents(hasty.last(HERE, 0)) == ["before"]  # readers do not wait
        assert caught.value.exit_code == 4
        assert caught.value.hint
        hasty.add(HERE, [Message("user", "after")], counter=COUNTER, now=NOW)
    assert contents(store.last(HERE, 0)) == ["before", "meanwhile", "after"]


def test_a_new_file_that_another_process_holds_is_locked(tmp_path):
    path = tmp_path / "new.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreLockedError):
            open_store(str(path), patience=0.01)
        other.execute("ROLLBACK")
    open_store(str(path)).close()


# Opening

OPEN = """
import sys
from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Message, Scope
from reservoir_cli.storage.open_store import open_store
try:
    store = open_store(sys.argv[1], create="create" in sys.argv)
    print(*(each.content for each in store.last(Scope(None), 0)))
    print(*store.keyword("kept", Scope(None), 9)[0])
    if "write" in sys.argv:
        store.add_conversations(Scope("p", "i"), [])
except ReservoirError as error:
    sys.exit(f"{error.exit_code} {error.message} | {error.hint}")
"""


def test_an_unknown_kind_of_store_is_refused():
    with pytest.raises(UsageError, match="mysql://"):
        open_store("mysql://localhost/reservoir")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(StoreError, match="is a folder"):
        open_store(str(tmp_path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and devices")
@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_special_file_in_place_of_a_file_of_the_store_is_refused(tmp_path, ending, kind):
    path = tmp_path / "reservoir.db"
    open_store(str(path)).close()
    special = Path(f"{path}{ending}")
    special.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(special)
    elif kind == "device":
        special.symlink_to("/dev/zero")
    else:
        special.mkdir()
    for create in (True, False):
        with pytest.raises(StoreError, match=r"is not a regular file|is a folder") as caught:
            open_store(str(path), create=create)
        assert caught.value.exit_code == 3
        assert caught.value.hint


def test_a_path_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="cannot create the store"):
        open_store(str(tmp_path / "file" / "new.db"))


def test_the_home_of_an_unknown_user_is_refused():
    with pytest.raises(StoreError):
        open_store("~no-such-user-here/reservoir.db")


@pytest.mark.parametrize("name", ["what?.db", "50%20#1.db", "ü 北.db", "file:x.db"])
def test_a_file_may_have_any_name(tmp_path, name):
    open_store(str(tmp_path / name)).close()
    assert (tmp_path / name).is_file()


def test_a_tilde_is_the_users_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    open_store("~/own.db").close()
    assert (tmp_path / "own.db").is_file()


def test_reading_a_missing_store_creates_nothing(tmp_path):
    with closing(open_store(str(tmp_path / "sub" / "new.db"), create=False)) as store:
        assert store.last(EVERYWHERE, 0) == []
        assert store.channels() == []
        assert store.keyword("word", HERE, 5) == ([], True)
    assert list(tmp_path.iterdir()) == []


READ_ONLY = [
    # file, folder
    (0o400, 0o700),
    (0o400, 0o500),
    (0o600, 0o500),
]


@pytest.mark.parametrize(("file_mode", "folder_mode"), READ_ONLY)
def test_a_read_only_store_can_be_read(tmp_path, file_mode, folder_mode):
    path = _closed_store(tmp_path / "folder" / "store.db")
    path.chmod(file_mode)
    path.parent.chmod(folder_mode)
    result = run(OPEN, str(path), unprivileged=True)
    path.parent.chmod(0o700)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("kept\n")
    assert "1" in result.stdout.splitlines()[1]


def test_a_read_only_store_is_not_read_without_its_log(tmp_path):
    path, folder = tmp_path / "store.db", tmp_path / "folder"
    folder.mkdir()
    with closing(open_store(str(path))) as store:
        store.add(HERE, [Message("user", "kept")], counter=COUNTER, now=NOW)
        for name in ("store.db", "store.db-wal"):
            shutil.copy(tmp_path / name, folder / name)
    folder.chmod(0o500)
    result = run(OPEN, str(folder / "store.db"), unprivileged=True)
    folder.chmod(0o700)
    assert (result.stdout, result.returncode) == ("", 1)
    assert result.stderr.startswith("3 the log of the store")


def test_writing_to_a_read_only_store_is_an_error(tmp_path):
    path = _closed_store(tmp_path / "folder" / "store.db")
    path.chmod(0o400)
    path.parent.chmod(0o500)
    result = run(OPEN, str(path), "write", unprivileged=True)
    path.parent.chmod(0o700)
    assert result.returncode == 1
    assert result.stderr.startswith("3 the store")
    assert "cannot be written to" in result.stderr


@pytest.mark.parametrize("mode", [0o000, 0o500], ids=["closed", "read-only"])
@pytest.mark.parametrize("create", ["create", "read"])
def test_an_inaccessible_folder_is_an_error_without_a_traceback(tmp_path, mode, create):
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(mode)
    result = run(OPEN, str(folder / "new.db"), create, unprivileged=True)
    folder.chmod(0o700)
    assert "Traceback" not in result.stderr
    if create == "create":
        assert result.stderr.startswith("3 cannot ")


def test_an_inaccessible_file_is_an_error_without_a_traceback(tmp_path):
    path = _closed_store(tmp_path / "store.db")
    path.chmod(0o000)
    result = run(OPEN, str(path), unprivileged=True)
    assert result.stderr.startswith("3 cannot open the store")


def _closed_store(path: Path) -> Path:
    """Create a closed store in WAL mode with one message."""
    with closing(open_store(str(path))) as store:
        store.add(HERE, [Message("user", "kept")], counter=COUNTER, now=NOW)
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    return path


def test_lists_of_values_need_few_statements():
    with closing(Connection(":memory:")) as connection:
        statements = set()
        for count in range(300):
            condition, values = connection.in_list("value", list(range(count)))
            statements.add(condition)
            [found] = connection.execute(
                f"SELECT COUNT(*) FROM json_each('{list(range(-9, 999))}') WHERE {condition}",
                values,
            ).fetchone()
            assert found == count
        assert len(statements) <= 11
