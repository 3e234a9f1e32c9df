"""A copy of a store that is of one moment, while others go on writing."""

import errno
import os
import sqlite3
from pathlib import Path

from reservoir_cli.store import Progress

_PAGES = 2_000


def copy(connection: sqlite3.Connection, target: Path, progress: Progress) -> None:
    """Copy a store into an empty file; call it inside a read transaction.

    The transaction keeps the copy from starting over whenever somebody writes.

    :raises OSError: there is no room for the copy.
    """
    copied = sqlite3.connect(target, isolation_level=None)
    try:
        connection.backup(
            copied,
            pages=_PAGES,
            progress=lambda _, left, pages: progress("copying pages", pages - left, pages),
        )
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname in ("SQLITE_FULL", "SQLITE_IOERR_WRITE"):  # of the copy
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise
    finally:
        copied.close()
