"""Writing a damaged store anew: what is true is read from its tables, all else is made again.

A page that went bad in an index, in the full text, or in what ranking reads cannot be mended where
it is. So the tables are copied row by row into a fresh file, without the help of any index. For a
repair that has to succeed with every message: then that file's pages replace the store's in one
transaction, and whoever has it open goes on. Else the fresh file can keep what is left.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copyfile
from typing import Any

from reservoir_cli.errors import StoreCorruptError, StoreLockedError
from reservoir_cli.storage.base import LinkThreshold
from reservoir_cli.storage.sqlite import repair
from reservoir_cli.storage.sqlite.store import SqliteStore
from reservoir_cli.storage.unfinished import UNFINISHED_COPY

#: Made again from the others, or by SQLite itself.
_DERIVED = ("vector_chunks", "synapses", "messages_fts%", "_sqlite_%", "sqlite_%")
#: What a store can do without: vectors can be made again, records of runs are only statistics.
_DISPENSABLE = {"embeddings", "pending", "rebuilding", "context_runs", "summaries"}
#: Few enough that the first portion is never the whole file.
_PAGES = 8
_NOTHING = "nothing of the store can be read"
#: Seconds to wait for a lock that nobody has.
_PATIENCE = 1.0
#: A header that says more than this is damaged itself.
_LONGEST = 1 << 40
#: So many ids are read at once; where that fails, half of them, down to one.
_AT_ONCE = 4_096


@dataclass(frozen=True, slots=True)
class Lost:
    """What became of a damaged store.

    :param saved: how many messages there are now.
    :param messages: how many are known to be missing.
    :param tables: the other tables of which something is missing that cannot be made again.
    :param texts: in how many messages bytes became U+FFFD.
    """

    saved: int
    messages: int
    tables: tuple[str, ...]
    texts: int = 0


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
        closing(_connected(f"{uri}?mode=ro", patience)) as watching,
        closing(_connected(fresh.as_uri(), patience)) as new,
        # Not the caller's: what failed there may have left something open.
        closing(_connected(f"{uri}?mode=rw", patience)) as target,
    ):
        before = _version(watching)
        # Closed before anything is written: no other way of ending it is sure to work.
        with closing(_connected(f"{uri}?mode=ro", patience)) as old:
            _copy(old, new)
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


def rescue(path: Path, fresh: Path, folder: Path, synapse_threshold: LinkThreshold) -> Lost:
    """Copy into a fresh store whatever can still be read of a damaged one, which is not touched.

    :param path: a store that nobody is writing to.
    :param fresh: an empty file, which becomes a store.
    :param folder: an empty one, to work in.
    :raises StoreCorruptError: nothing can be read.
    :raises OSError: there is no room, or the damaged store cannot be read as a file.
    """
    store = SqliteStore(str(fresh), create=True, patience=_PATIENCE)
    try:
        lost = _rescued(_completed(path, folder), fresh)
        with store.writing():
            mended = repair.mend_texts(store._connection)
            unreadable = repair.unreadable(store._connection)
            store._connection.executemany(
                "DELETE FROM messages WHERE id = ?", [(each,) for each in unreadable]
            )
        store.repair(synapse_threshold)
        saved = store.holdings()["messages"]
        if not saved and lost.messages:
            raise StoreCorruptError(_NOTHING, hint="copy a backup to its place")
    finally:
        store.close()
    return replace(lost, saved=saved, messages=lost.messages + len(unreadable), texts=len(mended))


def _rescued(path: Path, fresh: Path) -> Lost:
    try:
        with (
            closing(_connected(fresh.as_uri(), _PATIENCE)) as new,
            closing(_connected(f"{path.as_uri()}?mode=rw", _PATIENCE)) as old,
        ):
            lost = _copy(old, new, all_or_nothing=False)
            missing = _missing(old, new)
    except sqlite3.DatabaseError as error:
        raise StoreCorruptError(_NOTHING, hint="copy a backup to its place") from error
    return Lost(0, missing, tuple(sorted(lost - _DISPENSABLE - {"messages"})))


def _completed(path: Path, folder: Path) -> Path:
    """A copy of a store and its log; where its end is cut off, as long as its header says.

    SQLite refuses a file that is too short, though most of its pages are there.
    """
    copy = folder / "copy.db"
    for ending in ("", "-wal"):
        with suppress(FileNotFoundError):
            copyfile(path.with_name(path.name + ending), copy.with_name(copy.name + ending))
    with copy.open("r+b") as file:
        header = file.read(100)
        size = int.from_bytes(header[16:18], "big") * int.from_bytes(header[28:32], "big")
        if copy.stat().st_size < size <= _LONGEST:
            file.truncate(size)
    return copy


def _connected(uri: str, patience: float) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _copy(
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
    if lost - {"conversations", "forgotten", "summaries"}:
        # Vectors of which some are missing, or of a model that is not known, are made again.
        for name in ("embeddings", "pending", "rebuilding"):
            new.execute(f"DELETE FROM {name}")
        new.execute("DELETE FROM properties WHERE key LIKE 'next_model%'")
        new.execute("INSERT INTO pending SELECT id FROM messages")
    for name in ("embeddings", "pending", "rebuilding"):
        new.execute(f"DELETE FROM {name} WHERE message_id NOT IN (SELECT id FROM messages)")
    if not all_or_nothing:  # what is saved is a store of its own
        new.execute("DELETE FROM properties WHERE key = ?", [UNFINISHED_COPY])
    if all_or_nothing and (missing := _missing(old, new)):
        raise StoreCorruptError(
            f"the store is corrupt: {missing:,} messages cannot be read",
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
        if all_or_nothing and name not in _DISPENSABLE:
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
    """The columns of a table that an older store may have only some of."""
    columns = new.execute(f"PRAGMA table_info({name})").fetchall()
    with suppress(sqlite3.DatabaseError):
        there = {row[1] for row in old.execute(f"PRAGMA table_info({name})")}
        return [row for row in columns if row[1] in there] or columns
    return columns


def _readable(old: sqlite3.Connection, name: str, select: str) -> Iterator[Sequence[Any]]:
    """The rows of a table that has bad pages; of one without row ids those before the first."""
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


def _last_id(old: sqlite3.Connection, name: str) -> int:
    """An id behind which a table has no rows, as far as anything says so."""
    found = 0
    for statement in (
        f"SELECT max(rowid) FROM {name}",
        f"SELECT max(seq) FROM sqlite_sequence WHERE name = '{name}'",
        "SELECT max(id) FROM messages_fts_docsize",
    ):
        with suppress(sqlite3.DatabaseError):
            found = max(found, old.execute(statement).fetchone()[0] or 0)
    return found


def _missing(old: sqlite3.Connection, new: sqlite3.Connection) -> int:
    """How many messages indexes know of that the copy lacks: a lost page takes them silently."""
    found = new.execute("SELECT COUNT(*) FROM messages").fetchone()[0]
    known = [found]
    for other in ("messages INDEXED BY messages_by_instance", "messages_fts_docsize"):
        with suppress(sqlite3.DatabaseError):
            known.append(old.execute(f"SELECT COUNT(*) FROM {other}").fetchone()[0])
    return int(max(known) - found)
