"""Making sure that what was deleted is in no file of the store any more."""

import sqlite3

from reservoir_cli.store import properties


def seal(connection: sqlite3.Connection) -> None:
    """Merge the full text, whose segments still hold the words, and note what is to be done.

    Call it in the transaction that deletes, and :func:`finish` behind it.
    """
    connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('optimize')")
    properties.put(connection, properties.UNFINISHED, "1")


def finish(connection: sqlite3.Connection, wait: float) -> bool:
    """Empty the write-ahead log; call it outside of transactions.

    :param wait: seconds to wait for readers and writers.
    :returns: whether nothing is left to be done.
    """
    if properties.get(connection, properties.UNFINISHED) is None:
        return True
    patience = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    connection.execute(f"PRAGMA busy_timeout = {round(wait * 1000)}")
    try:
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if not busy:
            properties.drop(connection, properties.UNFINISHED)
        return not busy
    except sqlite3.OperationalError:  # locked between the two
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}")
