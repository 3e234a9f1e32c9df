"""Open a store's file, refuse those of other programs, and migrate its schema."""

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
from reservoir_cli.storage.sqlite.store_file import (
    create_file,
    exists,
    refuse_code,
    refuse_emptied,
    refuse_hard_link,
    refuse_special_files,
    refuse_unread_log,
    uri_of,
)
from reservoir_cli.storage.transactions import refuse_newer

#: The application id in the file's header: "Rsvr".
APPLICATION_ID = 0x52737672


def open_file(path: Path, create: bool, patience: float) -> tuple[Connection, bool]:
    """Open a file, or create it.

    :param create: whether to create a missing file; otherwise a database in memory is opened.
    :param patience: seconds to wait while other processes write.
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
    """Set the connection's pragmas, check whose file it is, and migrate an older schema.

    :param location: of the store, for errors.
    :param patience: seconds to wait while other processes write.
    :raises StoreError: another program's database, a newer schema, or an older one that cannot be
        migrated.
    """
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
    """Return the schema version; call it in each transaction, as a newer program may change it.

    :raises StoreError: it is newer than this program.
    """
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    refuse_newer(version, VERSION)
    return version


def _refuse_others(connection: Connection, location: str) -> None:
    """Refuse the database of another program; an empty one is accepted."""
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
    """Migrate a file to the newest schema, and give it a write-ahead log."""
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
