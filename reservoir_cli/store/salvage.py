"""Writing a damaged store anew: what is true is read from its tables, all else is made again.

A page that went bad in an index, in the full text, or in what ranking reads cannot be mended where
it is. So the tables are copied row by row into a fresh file, without the help of any index, and
that file's pages then replace the store's in one transaction: whoever has it open goes on.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from reservoir_cli.errors import StoreError, StoreLockedError

#: Made again from the others, or by SQLite itself.
_DERIVED = ("vector_chunks", "synapses", "messages_fts%", "_sqlite_%", "sqlite_%")
#: What a store can do without: vectors can be made again, records of runs are only statistics.
_DISPENSABLE = {"embeddings", "pending", "rebuilding", "context_runs"}
#: Few enough that the first portion is never the whole file.
_PAGES = 8


def rewrite(path: Path, fresh: Path, make: Callable[[], None], patience: float) -> None:
    """Replace the pages of a store by those of a fresh one that holds the same.

    :param fresh: an empty store of the same schema.
    :param make: makes everything derived in the fresh store, when the rest is there.
    :param patience: seconds to wait while others write.
    :raises StoreError: messages cannot be read any more.
    :raises StoreLockedError: another process wrote meanwhile; nothing is changed then.
    """
    uri = path.as_uri()
    with (
        closing(_connected(f"{uri}?mode=ro", patience)) as watching,
        closing(_connected(fresh.as_uri(), patience)) as source,
        # Not the caller's: what failed there may have left something open.
        closing(_connected(f"{uri}?mode=rw", patience)) as target,
    ):
        before = _version(watching)
        source.execute("ATTACH ? AS old", [f"{uri}?mode=ro"])
        _copy(source)
        source.execute("DETACH old")
        make()

        def alone(_status: int, left: int, _pages: int) -> None:
            # We have the write lock by now; with the last portion it is written and let go.
            if left and _version(watching) != before:
                raise StoreLockedError(
                    "another process wrote to the store while it was repaired",
                    hint="run reservoir doctor --repair again",
                )

        target.execute("PRAGMA secure_delete = ON").fetchall()
        source.backup(target, pages=_PAGES, progress=alone)
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _connected(uri: str, patience: float) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _copy(target: sqlite3.Connection) -> None:
    """Copy all that is not derived from the attached store ``old``, or raise."""
    unlike = " AND ".join("name NOT LIKE ?" for _ in _DERIVED)
    names = target.execute(
        f"SELECT name FROM main.sqlite_master WHERE type = 'table' AND {unlike}", _DERIVED
    ).fetchall()
    target.execute("PRAGMA foreign_keys = OFF")
    target.execute("BEGIN IMMEDIATE")
    lost = [name for (name,) in names if not _copied(target, name)]
    if lost:
        for name in ("embeddings", "pending", "rebuilding"):
            target.execute(f"DELETE FROM main.{name}")
        target.execute("DELETE FROM main.properties WHERE key LIKE 'next_model%'")
        target.execute("INSERT INTO main.pending SELECT id FROM main.messages")
    for name in ("embeddings", "pending", "rebuilding"):
        target.execute(
            f"DELETE FROM main.{name} WHERE message_id NOT IN (SELECT id FROM main.messages)"
        )
    _require_all(target)
    with suppress(sqlite3.DatabaseError):  # ids are not used again
        target.execute(
            """
            UPDATE main.sqlite_sequence SET seq = max(seq, (
                SELECT seq FROM old.sqlite_sequence WHERE name = 'messages'
            )) WHERE name = 'messages'
            """
        )
    target.execute("COMMIT")


def _copied(target: sqlite3.Connection, name: str) -> bool:
    """Copy a table; ``False`` if it cannot be read and need not be."""
    columns = ", ".join(
        f'"{row[1]}"' for row in target.execute(f"PRAGMA main.table_info({name})").fetchall()
    )
    target.execute("SAVEPOINT a_table")
    try:
        target.execute(f"DELETE FROM main.{name}")
        target.execute(
            f"INSERT INTO main.{name} ({columns}) SELECT {columns} FROM old.{name} NOT INDEXED"
        )
    except sqlite3.DatabaseError as error:
        if name not in _DISPENSABLE:
            raise StoreError(
                f"the store is corrupt: not all {name} can be read", hint="they are in a backup"
            ) from error
        target.execute("ROLLBACK TO a_table")
        return False
    finally:
        target.execute("RELEASE a_table")
    return True


def _require_all(target: sqlite3.Connection) -> None:
    """Hold the copy to what indexes know of: a page that is gone takes its rows along silently."""
    found = target.execute("SELECT COUNT(*) FROM main.messages").fetchone()[0]
    for other in ("messages INDEXED BY messages_by_instance", "messages_fts_docsize"):
        with suppress(sqlite3.DatabaseError):
            known = target.execute(f"SELECT COUNT(*) FROM old.{other}").fetchone()[0]
            if known > found:
                raise StoreError(
                    f"the store is corrupt: {known - found:,} messages cannot be read",
                    hint="they are in a backup",
                )
