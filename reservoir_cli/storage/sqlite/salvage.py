"""Saving into a fresh store whatever can still be read of a damaged one."""

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copyfile

from reservoir_cli.errors import StoreCorruptError
from reservoir_cli.storage.links import LinkThreshold
from reservoir_cli.storage.sqlite import repair
from reservoir_cli.storage.sqlite.rewrite import DISPENSABLE, connected, copy, missing
from reservoir_cli.storage.sqlite.store import SqliteStore

_NOTHING = "nothing of the store can be read"
#: Seconds to wait for a lock that nobody has.
_PATIENCE = 1.0
#: A header that says more than this is damaged itself.
_LONGEST = 1 << 40


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


def rescue(path: Path, fresh: Path, folder: Path, link_threshold: LinkThreshold) -> Lost:
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
        with store.write():
            mended = repair.mend_texts(store._connection)
            unreadable = repair.unreadable(store._connection)
            store._connection.executemany(
                "DELETE FROM messages WHERE id = ?", [(each,) for each in unreadable]
            )
        store.repair(link_threshold)
        saved = store.holdings()["messages"]
        if not saved and lost.messages:
            raise StoreCorruptError(_NOTHING, hint="copy a backup to its place")
    finally:
        store.close()
    return replace(lost, saved=saved, messages=lost.messages + len(unreadable), texts=len(mended))


def _rescued(path: Path, fresh: Path) -> Lost:
    try:
        with (
            closing(connected(fresh.as_uri(), _PATIENCE)) as new,
            closing(connected(f"{path.as_uri()}?mode=rw", _PATIENCE)) as old,
        ):
            lost = copy(old, new, all_or_nothing=False)
            count = missing(old, new)
    except sqlite3.DatabaseError as error:
        raise StoreCorruptError(_NOTHING, hint="copy a backup to its place") from error
    return Lost(0, count, tuple(sorted(lost - DISPENSABLE - {"messages"})))


def _completed(path: Path, folder: Path) -> Path:
    """Copy a store and its log; pad a truncated file to the length in its header.

    SQLite refuses a file that is too short, though most of its pages are there.
    """
    copied = folder / "copy.db"
    for ending in ("", "-wal"):
        with suppress(FileNotFoundError):
            copyfile(path.with_name(path.name + ending), copied.with_name(copied.name + ending))
    with copied.open("r+b") as file:
        header = file.read(100)
        size = int.from_bytes(header[16:18], "big") * int.from_bytes(header[28:32], "big")
        if copied.stat().st_size < size <= _LONGEST:
            file.truncate(size)
    return copied
