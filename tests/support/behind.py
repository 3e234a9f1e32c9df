"""Access a store's database directly, as another program would."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any


def behind(location: str, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of a statement on a file or a server; ``?`` is a placeholder."""
    if "://" not in location:
        with closing(sqlite3.connect(location)) as file, file:
            file.execute("PRAGMA foreign_keys = ON")
            return file.execute(statement, values).fetchall()
    import psycopg

    with psycopg.connect(location, autocommit=True) as server:
        server.execute("SET search_path = reservoir, public")
        cursor = server.execute(statement.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []
