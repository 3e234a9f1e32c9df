"""A copy of a store that is of one moment, while others go on writing."""

import errno
import os
import sqlite3
from pathlib import Path

from reservoir_cli.errors import StoreCorruptError
from reservoir_cli.storage.sqlite.connection import Connection
from reservoir_cli.storage.sqlite.repair import file_problems
from reservoir_cli.util.progress import Progress

_PAGES = 2_000


def copy(connection: Connection, target: Path, progress: Progress) -> None:
    """Copy a store into an empty file; call it inside a read transaction.

    The transaction keeps the copy from starting over whenever somebody writes.

    :raises OSError: there is no room for the copy.
    :raises StoreCorruptError: the store is damaged, and the copy with it.
    """
    copied = sqlite3.connect(target, isolation_level=None)
    try:
        connection.backup(
            copied,
            pages=_PAGES,
            progress=lambda _, left, pages: progress("copying pages", pages - left, pages),
        )
        progress("checking the copy", 0, 0)
        # Else it would take the place of the last good one.
        if file_problems(copied):
            raise StoreCorruptError(
                "the store is corrupt, so there is no copy of it",
                hint="reservoir doctor says what is wrong; an earlier backup is as it was",
            )
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname in ("SQLITE_FULL", "SQLITE_IOERR_WRITE"):  # of the copy
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise
    finally:
        copied.close()
