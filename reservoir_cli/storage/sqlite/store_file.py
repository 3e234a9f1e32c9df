"""Checks of a store's file before SQLite opens it and between writes, and of code in its schema.

Foreign code would run when the store is written to: a trigger can prevent a message from being
deleted, and a view or a generated column can return values that were never stored. Foreign tables,
indexes and statistics are harmless.
"""

import os
import sqlite3
from pathlib import Path

from reservoir_cli.errors import StoreError
from reservoir_cli.storage import schema
from reservoir_cli.util.private_files import make_private_dir

#: The endings of SQLite's files beside a store.
_COMPANIONS = ("-wal", "-shm", "-journal")
_WAY_BACK = "move it and the files -wal and -shm beside it away, then copy a backup there"
#: Our tables; those of the full-text index start with :data:`FULL_TEXT`.
TABLES = frozenset({*schema.TABLES, "blocks", "_sqlite_migrations"})
FULL_TEXT = "messages_fts"


def path_of(location: str) -> Path:
    """Return the path with ``~`` expanded."""
    try:
        return Path(location).expanduser()
    except RuntimeError:
        raise StoreError(f"there is no home folder for {location}") from None


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
    """Return whether there is a file or folder.

    :raises StoreError: the system reports an error, or the path is invalid.
    """
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


def refuse_code(connection: sqlite3.Connection, location: str) -> None:
    """Refuse to write to a store if foreign code in the file's schema would run."""
    if code := find_code(connection):
        raise StoreError(
            f"the store {location} has {code}, and is not written to",
            hint="drop it if it is yours; else reservoir doctor --salvage FILE makes a store "
            "without it",
        )


def find_code(connection: sqlite3.Connection) -> str | None:
    """Describe the first code that would run in a write to our tables, if there is any."""
    entries = connection.execute(
        "SELECT type, name, lower(tbl_name), coalesce(sql, '') FROM sqlite_master"
    )
    described = (_describe(connection, *entry) for entry in entries.fetchall())
    return next(filter(None, described), None)


def _describe(
    connection: sqlite3.Connection, kind: str, name: str, table: str, sql: str
) -> str | None:
    """Describe the code in an entry of the schema, if any; escape its name."""
    if kind == "view":
        return f"a view ({name!a})"
    if table not in TABLES and not table.startswith(FULL_TEXT):
        return None
    if kind == "trigger":
        return f"a trigger on {table} ({name!a})"
    if kind != "table":
        return None
    if sql.upper().startswith("CREATE VIRTUAL") != (table == FULL_TEXT):
        return f"another kind of table in place of {table}"
    if table != FULL_TEXT and _has_generated(connection, table):
        return f"a generated column in {table}"
    return None


def _has_generated(connection: sqlite3.Connection, table: str) -> bool:
    rows = connection.execute("SELECT hidden FROM pragma_table_xinfo(?)", [table])
    return any(hidden in (2, 3) for (hidden,) in rows)
