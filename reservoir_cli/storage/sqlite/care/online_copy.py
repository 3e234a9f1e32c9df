"""Make a consistent copy of a store while other processes write to it."""

import errno
import os
import sqlite3
from pathlib import Path

from reservoir_cli.errors import StoreCorruptError
from reservoir_cli.storage.sqlite.care.repair import file_problems
from reservoir_cli.storage.sqlite.connection import Connection
from reservoir_cli.util.progress import Progress

_PAGES = 2_000


def write_copy(connection: Connection, target: Path, progress: Progress) -> None:
    """Copy a store into an empty file; call it inside a read transaction.

    Without the transaction, SQLite restarts the copy whenever another process writes.
    """
    copy = sqlite3.connect(target, isolation_level=None)
    try:
        connection.backup(
            copy,
            pages=_PAGES,
            progress=lambda _, left, pages: progress("copying pages", pages - left, pages),
        )
        progress("checking the copy", 0, 0)
        # A damaged copy must not replace the last good backup.
        if file_problems(copy):
            raise StoreCorruptError(
                "the store is corrupt, so it was not copied",
                hint="reservoir doctor says what is wrong; earlier backups are unchanged",
            )
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname in ("SQLITE_FULL", "SQLITE_IOERR_WRITE"):  # from the copy
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise
    finally:
        copy.close()
