"""Making sure that what was deleted is in no file of the store any more."""

import sqlite3
from contextlib import closing

from reservoir_cli.storage import properties
from reservoir_cli.storage.sqlite.connection import Connection

#: What is still to be done: the file is to be rewritten, or only its log emptied.
_REWRITE, _EMPTY_LOG = "rewrite", "log"
#: A store that is larger is rewritten through a temporary file, not in memory.
_IN_MEMORY = 256 << 20


def seal(connection: Connection) -> None:
    """Merge the full text, whose segments still hold the words, and note what is to be done.

    Call it in the transaction that deletes, and :func:`finish` behind it.
    """
    connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('optimize')")
    properties.put(connection, properties.UNFINISHED, _REWRITE)


def finish(connection: Connection, wait: float) -> bool:
    """Rewrite the file and empty the write-ahead log; call it outside of transactions.

    :param wait: seconds to wait for readers and writers.
    :returns: whether nothing is left to be done.
    """
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
    except sqlite3.OperationalError:  # locked between the two, or no room
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}")


def _rewrite(connection: Connection, wait: float) -> None:
    """Rewrite all pages of the file in one transaction.

    When pages are split and joined, rows are copied, and what is left of a copy in the free space
    of a page is not overwritten when its row is deleted. Pages that are written one after the
    other have no such remains.
    """
    file = next(row[2] for row in connection.execute("PRAGMA database_list") if row[1] == "main")
    size = connection.execute("PRAGMA page_count").fetchone()[0]
    size *= connection.execute("PRAGMA page_size").fetchone()[0]
    with closing(sqlite3.connect(file, timeout=wait, isolation_level=None)) as alone:
        alone.execute("PRAGMA secure_delete = ON")
        alone.execute(f"PRAGMA temp_store = {'MEMORY' if size <= _IN_MEMORY else 'FILE'}")
        alone.execute("VACUUM")
