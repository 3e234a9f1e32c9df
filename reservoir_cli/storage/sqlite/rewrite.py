"""Rewrite a damaged store: read what its tables hold, and rebuild the rest.

A page that went bad in an index, in the full text, or in what ranking reads cannot be repaired in
place. So the tables are copied row by row into a fresh file, without the help of any index. If
every message can be read, that file's pages replace the store's in one transaction, and programs
that have it open go on.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from reservoir_cli.errors import StoreCorruptError, StoreLockedError
from reservoir_cli.storage.unfinished_copy import UNFINISHED_COPY

#: Made again from the others or by SQLite itself, or of use for a short time only.
_DERIVED = ("vector_chunks", "synapses", "ledger%", "messages_fts%", "_sqlite_%", "sqlite_%")
#: What a store can do without: vectors can be made again, records of runs are only statistics.
DISPENSABLE = {"embeddings", "pending", "rebuilding", "context_runs", "summaries", "sources"}
#: Few enough that the first portion is never the whole file.
_PAGES = 8
#: So many ids are read at once; where that fails, half of them, down to one.
_AT_ONCE = 4_096


def rewrite(path: Path, fresh: Path, make: Callable[[], None], patience: float) -> None:
    """Replace the pages of a store by those of a fresh one that holds the same.

    :param fresh: an empty store of the same schema.
    :param make: makes everything derived in the fresh store, when the rest is there.
    :param patience: seconds to wait while others write.
    :raises StoreCorruptError: messages cannot be read any more.
    :raises StoreLockedError: another process wrote meanwhile; nothing is changed then.
    """
    uri = path.as_uri()
    with (
        closing(connected(f"{uri}?mode=ro", patience)) as watching,
        closing(connected(fresh.as_uri(), patience)) as new,
        # Not the caller's: what failed there may have left something open.
        closing(connected(f"{uri}?mode=rw", patience)) as target,
    ):
        before = _version(watching)
        # Closed before anything is written: no other way of ending it is sure to work.
        with closing(connected(f"{uri}?mode=ro", patience)) as old:
            copy(old, new)
        make()

        def alone(_status: int, left: int, _pages: int) -> None:
            # We have the write lock by now; with the last portion it is written and let go.
            if left and _version(watching) != before:
                raise StoreLockedError(
                    "another process wrote to the store while it was repaired",
                    hint="run reservoir doctor --repair again",
                )

        target.execute("PRAGMA secure_delete = ON").fetchall()
        new.backup(target, pages=_PAGES, progress=alone)
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def connected(uri: str, patience: float) -> sqlite3.Connection:
    """Return a connection to a file."""
    return sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def copy(
    old: sqlite3.Connection, new: sqlite3.Connection, *, all_or_nothing: bool = True
) -> set[str]:
    """Copy all that is not derived.

    :returns: the tables of which something is missing.
    :raises StoreCorruptError: with ``all_or_nothing``, if that is more than can be done without.
    """
    unlike = " AND ".join("name NOT LIKE ?" for _ in _DERIVED)
    names = new.execute(
        f"SELECT name FROM sqlite_master WHERE type = 'table' AND {unlike}", _DERIVED
    ).fetchall()
    new.execute("PRAGMA foreign_keys = OFF")
    new.execute("BEGIN IMMEDIATE")
    with suppress(sqlite3.DatabaseError):
        old.execute("BEGIN")  # one state of all tables
    lost = {name for (name,) in names if not _copied(old, new, name, all_or_nothing)}
    if lost - {"conversations", "forgotten", "summaries", "sources", "tags", "pins"}:
        # Vectors of which some are missing, or of a model that is not known, are made again.
        for name in ("embeddings", "pending", "rebuilding"):
            new.execute(f"DELETE FROM {name}")
        new.execute("DELETE FROM properties WHERE key LIKE 'next_model%'")
        new.execute("INSERT INTO pending SELECT id FROM messages")
    for name in ("embeddings", "pending", "rebuilding", "tags", "pins"):
        new.execute(f"DELETE FROM {name} WHERE message_id NOT IN (SELECT id FROM messages)")
    if not all_or_nothing:  # what is saved is a store of its own
        new.execute("DELETE FROM properties WHERE key = ?", [UNFINISHED_COPY])
    if all_or_nothing and (count := missing(old, new)):
        raise StoreCorruptError(
            f"the store is corrupt: {count:,} messages cannot be read",
            hint="they are in a backup",
        )
    with suppress(sqlite3.DatabaseError):  # ids are not used again
        last = old.execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").fetchone()
        new.execute(
            "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'messages'", last or (0,)
        )
    new.execute("COMMIT")
    return lost


def _copied(
    old: sqlite3.Connection, new: sqlite3.Connection, name: str, all_or_nothing: bool
) -> bool:
    """Copy a table, or what can be read of it.

    Each connection has its own file: what breaks on the damaged one leaves the other as it is.

    :returns: whether it is whole.
    :raises StoreCorruptError: with ``all_or_nothing``, if it cannot be done without.
    """
    columns = _common_columns(old, new, name)
    # A text that is no UTF-8 any more is carried over as it is, and mended there.
    shape = [(f'"{row[1]}"', row[2] == "TEXT") for row in columns]
    given = ", ".join(f"CAST({each} AS BLOB)" if text else each for each, text in shape)
    taken = ", ".join("CAST(? AS TEXT)" if text else "?" for _, text in shape)
    select = f"SELECT {given} FROM {name} NOT INDEXED"
    insert = f"INSERT INTO {name} ({', '.join(each for each, _ in shape)}) VALUES ({taken})"
    new.execute(f"DELETE FROM {name}")
    try:
        new.executemany(insert, old.execute(select))
        return True
    except sqlite3.DatabaseError as error:
        if _is_of_later(old, name):
            return True
        if all_or_nothing and name not in DISPENSABLE:
            raise StoreCorruptError(
                f"the store is corrupt: not all {name} can be read", hint="they are in a backup"
            ) from error
    new.execute(f"DELETE FROM {name}")
    if not all_or_nothing:
        for row in _readable(old, name, select):
            with suppress(sqlite3.DatabaseError):  # what no row of such a table can hold
                new.execute(insert, row)
    return False


def _common_columns(
    old: sqlite3.Connection, new: sqlite3.Connection, name: str
) -> list[tuple[Any, ...]]:
    """Return the columns of a table; an older store may have only some of them."""
    columns = new.execute(f"PRAGMA table_info({name})").fetchall()
    with suppress(sqlite3.DatabaseError):
        there = {row[1] for row in old.execute(f"PRAGMA table_info({name})")}
        return [row for row in columns if row[1] in there] or columns
    return columns


def _readable(old: sqlite3.Connection, name: str, select: str) -> Iterator[Sequence[Any]]:
    """Yield the rows of a table with bad pages; without row ids, those before the first."""
    if _has_no_ids(old, name):
        with suppress(sqlite3.DatabaseError):
            yield from old.execute(select)
        return
    last = _last_id(old, name) // _AT_ONCE * _AT_ONCE
    wanted = [(start, start + _AT_ONCE) for start in range(last, -1, -_AT_ONCE)]
    while wanted:
        start, end = wanted.pop()
        try:
            yield from old.execute(
                f"{select} WHERE rowid >= ? AND rowid < ? ORDER BY rowid", (start, end)
            ).fetchall()
        except sqlite3.DatabaseError:
            if end - start > 1:
                middle = (start + end) // 2
                wanted += [(middle, end), (start, middle)]


def _has_no_ids(old: sqlite3.Connection, name: str) -> bool:
    row = old.execute("SELECT sql FROM sqlite_master WHERE name = ?", [name]).fetchone()
    # An older store lacks some tables.
    return row is None or str(row[0]).endswith("WITHOUT ROWID")


def _is_of_later(old: sqlite3.Connection, name: str) -> bool:
    """Return whether a store is of an older schema, which has no such table."""
    with suppress(sqlite3.DatabaseError):
        return not old.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [name]).fetchone()
    return False


def _last_id(old: sqlite3.Connection, name: str) -> int:
    """Return an id after which a table has no rows, as far as is known."""
    found = 0
    for statement in (
        f"SELECT max(rowid) FROM {name}",
        f"SELECT max(seq) FROM sqlite_sequence WHERE name = '{name}'",
        "SELECT max(id) FROM messages_fts_docsize",
    ):
        with suppress(sqlite3.DatabaseError):
            found = max(found, old.execute(statement).fetchone()[0] or 0)
    return found


def missing(old: sqlite3.Connection, new: sqlite3.Connection) -> int:
    """How many messages indexes know of that the copy lacks: a lost page takes them silently."""
    found = new.execute("SELECT COUNT(*) FROM messages").fetchone()[0]
    known = [found]
    for other in ("messages INDEXED BY messages_by_instance", "messages_fts_docsize"):
        with suppress(sqlite3.DatabaseError):
            known.append(old.execute(f"SELECT COUNT(*) FROM {other}").fetchone()[0])
    return int(max(known) - found)
