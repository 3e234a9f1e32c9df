"""Open a store's file: check it, refuse those of other programs, and migrate its schema."""

import os
import sqlite3
import time
from functools import partial
from pathlib import Path

from reservoir_cli.errors import StoreError
from reservoir_cli.storage.schema import VERSION
from reservoir_cli.storage.sqlite.connection import (
    PRAGMAS,
    Connection,
    connect,
    is_busy,
    refuse_old_sqlite,
)
from reservoir_cli.storage.sqlite.foreign_code import refuse_code
from reservoir_cli.storage.transactions import refuse_newer
from reservoir_cli.util.private_files import make_private_dir

APPLICATION_ID = 0x52737672  #: The application id in the file's header: "Rsvr".
_COMPANIONS = ("-wal", "-shm", "-journal")  #: The endings of SQLite's files beside a store.
_WAY_BACK = "move it and the files -wal and -shm beside it away, then copy a backup there"


def open_file(path: Path, create: bool, patience: float) -> tuple[Connection, bool]:
    """Open a file; create a missing one, or open a database in memory in its place.

    :returns: the connection, and whether the file or its folder cannot be written to.
    """
    refuse_old_sqlite()
    if str(path) == ":memory:" or not exists(path):
        if not create or str(path) == ":memory:":
            return connect("file::memory:", patience), False
        refuse_emptied(path)
        create_file(path)
    refuse_special_files(path)
    refuse_emptied(path)
    refuse_hard_link(path)
    # SQLite keeps files beside the store, so the folder must be writable too.
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return connect(f"{uri_of(path)}?mode=rw", patience), False
    connection = connect(f"{uri_of(path)}?mode=ro", patience)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if is_busy(error):
            raise
        # SQLite cannot read a WAL file in a read-only folder. Nobody can write to it there, so
        # it can be opened as immutable, but SQLite would not read its log then.
        refuse_unread_log(path)
        connection = connect(f"{uri_of(path)}?immutable=1", patience)
    return connection, True


def check_and_migrate(
    connection: Connection, location: str, read_only: bool, patience: float
) -> None:
    """Set the connection's pragmas, check whose file it is, and migrate an older schema."""
    version = known_version(connection)
    for pragma, value in PRAGMAS.items():
        connection.execute(f"PRAGMA {pragma} = {value}").fetchall()
    _refuse_others(connection, location)
    if version < VERSION:
        if read_only:
            raise StoreError(
                f"the store has an older schema ({version}) and cannot be written to",
                hint="make it writable once, so that it can be migrated",
            )
        _migrate(connection, location, patience)


def known_version(connection: Connection) -> int:
    """Return the schema version; call it in each transaction, as a newer program may change it."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    refuse_newer(version, VERSION)
    return version


def _refuse_others(connection: Connection, location: str) -> None:
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
    # Read again: another process may have set up the file between the two statements.
    if tables and mark != APPLICATION_ID:
        mark = connection.execute("PRAGMA application_id").fetchone()[0]
    if (tables or mark) and mark != APPLICATION_ID:
        raise StoreError(
            f"{location} is another program's database",
            hint="give --db the path of a Reservoir store or of a new file",
        )


def _migrate(connection: Connection, location: str, patience: float) -> None:
    from reservoir_cli.storage.sqlite import schema

    check = partial(refuse_code, connection, location)
    schema.migrate(connection, APPLICATION_ID, check)
    # This pragma ignores the busy timeout, so retry it until it succeeds.
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def path_of(location: str) -> Path:
    """Return the path with ``~`` expanded."""
    try:
        return Path(location).expanduser()
    except RuntimeError:
        raise StoreError(
            f"there is no home folder for {location}", hint="use a full path"
        ) from None


def uri_of(path: Path) -> str:
    """Return the file's URI, without parameters."""
    try:
        return path.absolute().as_uri()
    except OSError:
        raise StoreError(
            f"cannot open the store {path}: the current folder is gone",
            hint="give an absolute path",
        ) from None


def exists(path: Path) -> bool:
    """Return whether there is a file or folder."""
    try:
        return path.exists()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise StoreError(
            f"cannot open the store {path}: {reason}", hint="check the path and its permissions"
        ) from None


def refuse_special_files(path: Path) -> None:
    """Refuse a pipe, a device, a socket or a folder in place of the store or a file beside it.

    SQLite would wait for a writer of a pipe, and write to a device.
    """
    if path.is_dir():
        raise StoreError(f"{path} is a folder", hint="give the path of a file")
    for file in map(path.with_name, (path.name, *(f"{path.name}{end}" for end in _COMPANIONS))):
        if exists(file) and not file.is_file():
            raise StoreError(
                f"{file} is not a regular file",
                hint="give the path of a file" if file == path else "move it away",
            )


def refuse_emptied(path: Path) -> None:
    """Refuse an empty or missing file whose log exists: SQLite would delete the log."""
    log = path.with_name(path.name + "-wal")
    file_exists = exists(path)
    if (file_exists and path.stat().st_size) or not exists(log) or not log.stat().st_size:
        return
    happened = "emptied" if file_exists else "removed"
    raise StoreError(f"the store {path} was {happened}, but its log was not", hint=_WAY_BACK)


def refuse_unread_log(path: Path) -> None:
    """Refuse a file whose log holds messages, but cannot be read in a read-only folder."""
    log = path.with_name(path.name + "-wal")
    if exists(log) and log.stat().st_size:
        raise StoreError(
            f"the log of the store {path} cannot be read in a read-only folder",
            hint=f"copy {path.name} and {log.name} to a folder that you can write to, and use them "
            "there",
        )


def refuse_hard_link(path: Path) -> None:
    """Refuse a file with several names: each name has its own log, and one overwrites the other.

    File systems that do not count names report 0 or 1, as some on Windows do.
    """
    try:
        names = path.stat().st_nlink
    except OSError:  # just removed
        return
    if names > 1:
        raise StoreError(
            f"the store {path} has {names} names (hard links): writes under one name are lost "
            "under the other",
            hint="remove the others, not the one with a -wal file beside it (find FOLDER -samefile "
            f"{path} lists them); a symbolic link is fine",
        )


def create_file(path: Path) -> None:
    """Create an empty private file; SQLite gives the files beside it the same mode."""
    try:
        make_private_dir(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreError(
            f"cannot create the store {path}: {error.strerror}",
            hint="check the path and its permissions, or give another with --db",
        ) from error
