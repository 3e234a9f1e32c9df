"""Copy the readable messages of a damaged store into a fresh one."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copyfile

from reservoir_cli.errors import StoreCorruptError
from reservoir_cli.storage.sqlite.care import repair
from reservoir_cli.storage.sqlite.care.repair import (
    DISPENSABLE,
    connect_to_damaged,
    copy_tables,
    count_missing,
)
from reservoir_cli.storage.sqlite.store import SqliteStore
from reservoir_cli.util.timeouts import OWN_FILE

_NOTHING = "nothing of the store can be read"
_LONGEST = 1 << 40  #: The greatest size to believe in a header; a greater one is damage.


@dataclass(frozen=True, slots=True)
class Lost:
    """The result of salvaging a damaged store.

    :param tables: the other tables with lost rows that cannot be rebuilt; and ``tool_calls`` if
        messages were saved without theirs.
    """

    saved: int
    messages: int
    tables: tuple[str, ...]
    texts: int = 0


def rescue(path: Path, fresh: Path, folder: Path) -> Lost:
    """Copy the readable messages of a damaged store, which is not changed, into a fresh one.

    :raises StoreCorruptError: nothing can be read.
    :raises OSError: there is no room, or the damaged store cannot be read as a file.
    """
    store = SqliteStore(str(fresh), create=True, patience=OWN_FILE)
    try:
        lost = _copy_rows(_copy_files(path, folder), fresh)
        with store.write():
            repaired = repair.repair_texts(store._connection)
            without_calls = repair.find_unreadable(store._connection)
            store._connection.executemany(
                "UPDATE messages SET tool_calls = NULL WHERE id = ?",
                [(message_id,) for message_id in without_calls],
            )
            unreadable = repair.find_unreadable(store._connection)
            store._connection.executemany(
                "DELETE FROM messages WHERE id = ?", [(message_id,) for message_id in unreadable]
            )
        store.repair()
        saved = store.holdings()["messages"]
        if not saved and lost.messages:
            raise StoreCorruptError(_NOTHING, hint="copy a backup to its place")
    finally:
        store.close()
    has_lost_calls = len(without_calls) > len(unreadable)
    tables = (*lost.tables, "tool_calls") if has_lost_calls else lost.tables
    count = lost.messages + len(unreadable)
    return replace(lost, saved=saved, messages=count, tables=tables, texts=len(repaired))


def _copy_rows(path: Path, fresh: Path) -> Lost:
    try:
        with (
            closing(connect_to_damaged(fresh.as_uri(), OWN_FILE)) as new,
            closing(connect_to_damaged(f"{path.as_uri()}?mode=rw", OWN_FILE)) as old,
        ):
            lost = copy_tables(old, new, all_or_nothing=False)
            count = count_missing(old, new, is_complete="messages" not in lost)
    except sqlite3.DatabaseError as error:
        raise StoreCorruptError(_NOTHING, hint="copy a backup to its place") from error
    return Lost(0, count, tuple(sorted(lost - DISPENSABLE - {"messages"})))


def _copy_files(path: Path, folder: Path) -> Path:
    """Copy a store and its log; pad a truncated file, which SQLite refuses, to its full length."""
    target = folder / "copy.db"
    for ending in ("", "-wal"):
        source = path.with_name(path.name + ending)
        if source.is_file():  # not a pipe or a device
            copyfile(source, target.with_name(target.name + ending))
    with target.open("r+b") as file:
        header = file.read(100)
        size = int.from_bytes(header[16:18], "big") * int.from_bytes(header[28:32], "big")
        if target.stat().st_size < size <= _LONGEST:
            file.truncate(size)
    return target
