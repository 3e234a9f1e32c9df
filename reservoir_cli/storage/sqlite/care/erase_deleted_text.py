"""Erase all remains of deleted rows: merge the full-text index, rewrite the file, empty its log."""

import os
import sqlite3
from contextlib import closing

from reservoir_cli.storage import properties
from reservoir_cli.storage.sqlite.connection import Connection

_REWRITE, _EMPTY_LOG = "rewrite", "log"  #: The next step: rewrite the file, or only empty its log.
#: The size up to which a store is rewritten in memory, not through a temporary file.
_IN_MEMORY = 256 << 20


def seal(connection: Connection) -> None:
    """Merge the full-text index, whose segments still contain the words, and record the next step.

    Call it in the transaction that deletes, and :func:`finish` after it.
    """
    connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('optimize')")
    properties.put(connection, properties.UNFINISHED, _REWRITE)


def finish(connection: Connection, wait: float) -> bool:
    """Rewrite the file and empty the write-ahead log; call it outside of transactions."""
    unfinished = properties.get(connection, properties.UNFINISHED)
    if unfinished is None:
        return True
    patience = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    connection.execute(f"PRAGMA busy_timeout = {round(wait * 1000)}")
    try:
        if unfinished != _EMPTY_LOG:
            _rewrite(connection, wait)
            properties.put(connection, properties.UNFINISHED, _EMPTY_LOG)
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if not busy:
            properties.drop(connection, properties.UNFINISHED)
        return not busy
    except sqlite3.OperationalError:  # another process has the lock, or the disk is full
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}")


def _rewrite(connection: Connection, wait: float) -> None:
    """Rewrite all pages of the file in one transaction.

    When SQLite splits or joins pages, it copies rows and leaves the old bytes in free space, which
    deleting the row does not overwrite. Freshly written pages have no such remains.
    """
    # As bytes: a path need not be valid UTF-8.
    listed = "SELECT CAST(file AS BLOB) FROM pragma_database_list WHERE name = 'main'"
    file = os.fsdecode(connection.execute(listed).fetchone()[0])
    size = connection.execute("PRAGMA page_count").fetchone()[0]
    size *= connection.execute("PRAGMA page_size").fetchone()[0]
    with closing(sqlite3.connect(file, timeout=wait, isolation_level=None)) as own_connection:
        own_connection.execute("PRAGMA secure_delete = ON")
        own_connection.execute(f"PRAGMA temp_store = {'MEMORY' if size <= _IN_MEMORY else 'FILE'}")
        own_connection.execute("VACUUM")
