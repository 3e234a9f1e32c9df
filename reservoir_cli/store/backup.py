"""A copy of a store that is of one moment, while others go on writing."""

import sqlite3
from pathlib import Path

from reservoir_cli.store import Progress

_PAGES = 2_000


def copy(connection: sqlite3.Connection, target: Path, progress: Progress) -> None:
    """Copy a store into an empty file; call it inside a read transaction.

    The transaction keeps the copy from starting over whenever somebody writes.
    """
    copied = sqlite3.connect(target, isolation_level=None)
    try:
        connection.backup(
            copied,
            pages=_PAGES,
            progress=lambda _, left, pages: progress("copying pages", pages - left, pages),
        )
    finally:
        copied.close()
