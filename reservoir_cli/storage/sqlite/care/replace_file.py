"""Replace an SQLite file safely: no write-ahead log of another file may be replayed over it.

SQLite identifies a log by its name alone: it replays ``x.db-wal`` over any file named ``x.db``.
Therefore the log of the old file is written back into that file first, and a log without its file
is refused.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from reservoir_cli.errors import ReservoirError, StoreCorruptError
from reservoir_cli.settings import paths
from reservoir_cli.storage.sqlite.connection import connect, primary_code
from reservoir_cli.storage.sqlite.foreign_code import find_code
from reservoir_cli.storage.sqlite.store import SqliteStore
from reservoir_cli.storage.sqlite.store_file import refuse_special_files
from reservoir_cli.storage.store import Store
from reservoir_cli.util.private_files import replace_atomically, resolve_path
from reservoir_cli.util.timeouts import OWN_FILE


@contextmanager
def publish(path: Path) -> Iterator[Path]:
    """Yield an empty file for a new store, move it to a path, open it and count its messages.

    :raises OSError: the folder is not writable; the old file stays as it is.
    :raises ReservoirError: another program uses the old file, there is a log of another file, or
        the new file has no messages that can be read.
    """
    path = resolve_path(path)
    with _locked(path):  # raise before the work instead of after it
        pass
    with ExitStack() as stack, replace_atomically(path) as unfinished:
        yield unfinished
        _refuse_logs(unfinished)
        try:
            expected = _count_unopened(unfinished)
        except sqlite3.DatabaseError as error:  # the table is missing
            raise StoreCorruptError(
                "the messages of the copy cannot be read, so it was not kept",
                hint="reservoir doctor says what is wrong with the store",
            ) from error
        stack.enter_context(_locked(path))  # until the new file is in place
    with closing(SqliteStore(str(path), create=False, patience=OWN_FILE)) as store:
        check_count(store, expected)


def check_count(store: Store, expected: int) -> None:
    """Check the number of messages of a store that was written before it was opened."""
    count = store.holdings()["messages"]
    if count != expected:
        raise StoreCorruptError(
            f"{store.location} holds {count:,} messages instead of {expected:,}",
            hint="another program wrote there: name another file",
        )


def count_messages(path: Path) -> int | None:
    """Return how many messages a file holds, as far as it is a store; nothing is changed."""
    try:
        with closing(_unopened(path)) as connection:
            if find_code(connection):  # counting would run it
                return None
        return _count_unopened(path)
    except (sqlite3.Error, ValueError):
        return None


def _count_unopened(path: Path) -> int:
    with closing(_unopened(path)) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM messages").fetchone()[0])


def _unopened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a file about to be replaced, and write its log back into it."""
    if not path.is_file() or path.stat().st_size == 0:
        _refuse_logs(path)
        yield
        return
    refuse_special_files(path)
    uri = f"{path.as_uri()}?mode=rw"
    with closing(connect(uri, OWN_FILE)) as connection:
        _write_back(connection, path)
        if os.name == "nt":  # Windows cannot replace an open file
            connection.close()
        _refuse_logs(path)
        yield


def _write_back(connection: sqlite3.Connection, path: Path) -> None:
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")  # keeps the lock
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.DatabaseError as error:
        if primary_code(error) == sqlite3.SQLITE_BUSY:
            raise ReservoirError(
                f"another program has {path} open", hint="close that program, or name another file"
            ) from None


def _refuse_logs(path: Path) -> None:
    _, *logs = paths.store_files(path)
    for log in logs:
        with suppress(FileNotFoundError):
            if log.name.endswith("-shm") or not log.stat().st_size:
                log.unlink()
            else:
                raise ReservoirError(
                    f"{log} is the log of another database, and would be replayed over {path.name}",
                    hint=f"move {log.name} away, or name another file",
                )
