"""Check and copy a store, rebuild derived data, and rewrite a damaged file.

A damaged page of an index, of the full-text index or of the blocks cannot be repaired in place:
tables are copied row by row into a fresh file, without any index. If every message can be read, its
pages replace the store's in one transaction, so that programs can keep the store open.
"""

import errno
import os
import sqlite3
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from reservoir_cli.errors import StoreCorruptError, StoreError, StoreLockedError
from reservoir_cli.messages import EVERYWHERE, ConversationName, clean_text
from reservoir_cli.storage import properties
from reservoir_cli.storage.portable_sql import batches
from reservoir_cli.storage.properties import UNFINISHED_COPY
from reservoir_cli.storage.schema import OF_MESSAGES
from reservoir_cli.storage.sqlite import foreign_code, keyword_search
from reservoir_cli.storage.sqlite.care import check_blocks
from reservoir_cli.storage.sqlite.connection import Connection, connect, primary_code
from reservoir_cli.storage.store import Problem, derived_problems
from reservoir_cli.storage.tables import reads, rows_of_tags_and_pins
from reservoir_cli.util.progress import Progress, counted

_AT_ONCE = 1_000
_PAGES_COPIED = 2_000  #: Pages per step of a backup.
#: Tables that are rebuilt from the others, created by SQLite itself, or useful only for a short
#: time.
_DERIVED = ("ledger%", "messages_fts%", "_sqlite_%", "sqlite_%")
#: Tables that a store can lose: vectors can be computed again, records of runs are statistics.
DISPENSABLE = {"blocks", "pending", "rebuilding", "context_runs", "summaries", "sources"}
_PAGES = 8  #: Pages per step of the copy: so few that the first step never copies the whole file.
#: Where the ids of messages are, beside their own pages.
_OTHER_IDS = (
    "SELECT id FROM messages INDEXED BY messages_by_instance",
    "SELECT id FROM messages_fts_docsize",
)
#: How many ids are read at once, and the most ranges of ids; if that fails, half of them, down to
#: one.
_IDS_AT_ONCE, _RANGES = 4_096, 1_000


def file_problems(connection: sqlite3.Connection) -> list[str]:
    """Return the problems that SQLite finds in the file itself, without any message text.

    Call it outside of transactions. The full-text index is checked unless others are writing.
    """
    lines: list[str] = []
    try:
        lines.extend(row[0] for row in connection.execute("PRAGMA integrity_check(10)"))
    except sqlite3.DatabaseError as error:  # the check can fail on a damaged page
        if primary_code(error) not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        lines.append("a page is malformed")
    if lines != ["ok"]:
        return [line.replace("*** in database main ***\n", "").splitlines()[0] for line in lines]
    patience = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('integrity-check')")
    except sqlite3.OperationalError:  # the file is read-only, or another process is writing
        return []
    except sqlite3.DatabaseError:
        return ["the full-text index is malformed"]
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}")
    return []


def write_copy(connection: Connection, target: Path, progress: Progress) -> None:
    """Copy a store into an empty file; call it inside a read transaction.

    Without the transaction, SQLite restarts the copy whenever another process writes.
    """
    copy = sqlite3.connect(target, isolation_level=None)
    try:
        connection.backup(
            copy,
            pages=_PAGES_COPIED,
            progress=lambda _, rest, pages: progress("copying pages", pages - rest, pages),
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


def problems(connection: Connection, model_id: str | None) -> Iterator[Problem]:
    """Yield the problems of derived data, and of messages."""
    if code := foreign_code.find_code(connection):
        yield Problem(f"there is {code}: nothing is written", repairable=False)
    unranked = check_blocks.count_problems(connection, model_id) if model_id else 0
    yield from derived_problems(connection, count_full_text_problems(connection), unranked)
    if unreadable := find_unreadable(connection):
        ids = ", ".join(map(str, unreadable[:10]))
        detail = f"{counted(len(unreadable), 'message')} cannot be read: {ids}"
        yield Problem(detail, repairable=False)


def rebuild(connection: Connection, active: Callable[[], str | None]) -> list[int]:
    """Rebuild all derived data, and return the ids of messages that were not valid UTF-8.

    :param active: returns the active model, called after its identity is repaired.
    """
    repaired = repair_texts(connection)
    rows_of_tags_and_pins.remove_orphans(connection)
    repair_model(connection)
    rebuild_full_text(connection)
    if model_id := active():
        check_blocks.repair(connection, model_id)
    else:
        connection.execute(
            "INSERT INTO pending (partition, message_id) SELECT partition, id FROM messages "
            "WHERE true ON CONFLICT DO NOTHING"
        )
    return repaired


def find_unreadable(connection: Connection) -> list[int]:
    """Return the ids of messages whose rows cannot be decoded."""
    unreadable: list[int] = []
    for batch in _batches(connection):
        if not _is_readable(connection, batch):
            unreadable += [
                message_id for message_id in batch if not _is_readable(connection, [message_id])
            ]
    return unreadable


def _is_readable(connection: Connection, ids: Sequence[int]) -> bool:
    try:
        reads.by_id(connection, ids, EVERYWHERE)
    except (StoreError, sqlite3.OperationalError):  # OperationalError: invalid UTF-8
        return False
    return True


def count_full_text_problems(connection: Connection) -> int:
    """Count the messages that are missing from the full-text index, or wrongly in it."""
    one_way = "SELECT COUNT(*) FROM (SELECT id FROM {} EXCEPT SELECT id FROM {})"
    pair = ("messages", "messages_fts_docsize")
    return sum(
        int(connection.execute(one_way.format(*names)).fetchone()[0])
        for names in (pair, pair[::-1])
    )


def repair_texts(connection: Connection) -> list[int]:
    """Replace invalid UTF-8 by U+FFFD; return the ids of the changed messages."""
    columns = connection.execute("PRAGMA table_info(messages)").fetchall()
    names = [row[1] for row in columns if row[2] == "TEXT"]
    blobs = ", ".join(f"CAST({name} AS BLOB)" for name in names)
    repaired = []
    for message_id in find_unreadable(connection):
        select = f"SELECT {blobs} FROM messages WHERE id = ?"
        values = connection.execute(select, [message_id]).fetchone()
        for name, value in zip(names, values, strict=True):
            if value is not None and value != (text := _decode(value)).encode():
                update = f"UPDATE messages SET {name} = ? WHERE id = ?"
                connection.execute(update, [text, message_id])
                repaired.append(message_id)
    return list(dict.fromkeys(repaired))


def _decode(data: bytes) -> str:
    return clean_text(data.decode("utf-8", "replace"))


def repair_model(connection: Connection) -> None:
    """Take the active model's identity from the vectors if none of them has it.

    Do nothing during a change of models, when there are two models or pending messages.
    """
    active = properties.get(connection, properties.MODEL_ID)
    used = {row[0] for row in connection.execute("SELECT DISTINCT model_id FROM blocks")}
    waiting = connection.execute("SELECT EXISTS (SELECT 1 FROM pending)").fetchone()[0]
    if active and active not in used and len(used) == 1 and not waiting:
        properties.put(connection, properties.MODEL_ID, used.pop())


def rebuild_full_text(connection: Connection) -> None:
    """Rebuild the full-text index."""
    connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')")
    for batch in _batches(connection):
        messages = reads.by_id(connection, batch, EVERYWHERE)
        for channel, of_channel in reads.by_channel(messages).items():
            keyword_search.index(connection, channel, of_channel)


def _batches(connection: Connection) -> Iterator[Sequence[int]]:
    rows = connection.execute("SELECT id FROM messages ORDER BY id")
    return batches([row[0] for row in rows.fetchall()], _AT_ONCE)


def rewrite_damaged(
    path: Path, fresh: Path, rebuild: Callable[[], None], patience: float
) -> list[ConversationName] | None:
    """Replace the pages of a store by those of a fresh one with the same messages.

    :returns: the conversations whose summaries could not be read; ``None`` if it is unknown which.
    :raises StoreCorruptError: messages cannot be read any more.
    :raises StoreLockedError: another process has written meanwhile; nothing is changed then.
    """
    uri = path.as_uri()
    with (
        closing(connect_to_damaged(f"{uri}?mode=ro", patience)) as watching,
        closing(connect_to_damaged(fresh.as_uri(), patience)) as new,
        # Not the caller's connection, which may have a failed statement open.
        closing(connect_to_damaged(f"{uri}?mode=rw", patience)) as target,
    ):
        before = _version(watching)
        # Closing the connection is the only sure way to end its transaction before the write.
        with closing(connect_to_damaged(f"{uri}?mode=ro", patience)) as old:
            is_lost = "summaries" in copy_tables(old, new)
            summaries = find_lost_summaries(old, new) if is_lost else []
        rebuild()

        def require_unchanged(_status: int, rest: int, _pages: int) -> None:
            # The backup has the write lock now; its last step commits and releases it.
            if rest and _version(watching) != before:
                raise StoreLockedError(
                    "another process wrote to the store while it was repaired",
                    hint="run reservoir doctor --repair again",
                )

        target.execute("PRAGMA secure_delete = ON").fetchall()
        new.backup(target, pages=_PAGES, progress=require_unchanged)
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return summaries


def connect_to_damaged(uri: str, patience: float) -> Connection:
    """Connect to a file that may be damaged, also in its schema."""
    connection = connect(uri, patience)
    # The tables of which the schema is intact can be read.
    connection.execute("PRAGMA writable_schema = ON")
    return connection


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def copy_tables(
    old: sqlite3.Connection, new: sqlite3.Connection, *, all_or_nothing: bool = True
) -> set[str]:
    """Copy all tables that are not derived, and return the incomplete ones.

    :raises StoreCorruptError: with ``all_or_nothing``, if an indispensable table is incomplete.
    """
    unlike = " AND ".join("name NOT LIKE ?" for _ in _DERIVED)
    names = new.execute(
        f"SELECT name FROM sqlite_master WHERE type = 'table' AND {unlike}", _DERIVED
    ).fetchall()
    new.execute("BEGIN IMMEDIATE")
    with suppress(sqlite3.DatabaseError):
        old.execute("BEGIN")  # read all tables in the same state
    lost = {name for (name,) in names if not _copy_table(old, new, name, all_or_nothing)}
    if "rebuilding" in lost or "properties" in lost:  # what the next model lacks is unknown
        new.execute("DELETE FROM rebuilding")
        new.execute("DELETE FROM properties WHERE key LIKE 'next_model%'")
    if "properties" in lost:  # so is the model of the vectors
        new.execute("DELETE FROM blocks")
        new.execute("DELETE FROM pending")
        new.execute(
            "INSERT INTO pending (partition, message_id) SELECT partition, id FROM messages"
        )
    _restore_ids(old, new)
    for name in OF_MESSAGES:
        new.execute(f"DELETE FROM {name} WHERE message_id NOT IN (SELECT id FROM messages)")
    if not all_or_nothing:  # the salvaged store is a new one
        new.execute("DELETE FROM properties WHERE key = ?", [UNFINISHED_COPY])
    if all_or_nothing and (count := count_missing(old, new)):
        raise StoreCorruptError(
            f"the store is corrupt: {counted(count, 'message')} cannot be read",
            hint="look in a backup",
        )
    with suppress(sqlite3.DatabaseError):  # ids of deleted messages must not be reused
        last = old.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'messages'")
        [used] = last.fetchone()
        [copied] = new.execute("SELECT max(id) FROM messages").fetchone()
        new.execute("DELETE FROM sqlite_sequence WHERE name = 'messages'")
        new.execute(
            "INSERT INTO sqlite_sequence VALUES ('messages', ?)", [max(used or 0, copied or 0)]
        )
    new.execute("COMMIT")
    return lost


def _copy_table(
    old: sqlite3.Connection, new: sqlite3.Connection, name: str, all_or_nothing: bool
) -> bool:
    # Texts are copied as bytes: invalid UTF-8 is replaced later, in the new file.
    columns = [(f'"{row[1]}"', row[2] == "TEXT") for row in _common_columns(old, new, name)]
    read = ", ".join(f"CAST({column} AS BLOB)" if text else column for column, text in columns)
    written = ", ".join("CAST(? AS TEXT)" if text else "?" for _, text in columns)
    select = f"SELECT {read} FROM {name} NOT INDEXED"
    names = ", ".join(column for column, _ in columns)
    insert = f"INSERT INTO {name} ({names}) VALUES ({written})"
    new.execute(f"DELETE FROM {name}")
    try:
        new.executemany(insert, old.execute(select))
        return True
    except sqlite3.DatabaseError as error:
        if _is_newer_than(old, name):
            return True
        if all_or_nothing and name not in DISPENSABLE:
            raise StoreCorruptError(
                f"the store is corrupt: not all {name} can be read",
                hint="look for them in a backup",
            ) from error
    new.execute(f"DELETE FROM {name}")
    if name in ("summaries", "blocks") or not all_or_nothing:
        for row in _readable_rows(old, name, select):
            with suppress(sqlite3.DatabaseError):  # skip rows that break a constraint
                new.execute(insert, row)
    return False


def _common_columns(
    old: sqlite3.Connection, new: sqlite3.Connection, name: str
) -> list[tuple[Any, ...]]:
    """Return the columns of a table; an older store may have only some of them."""
    columns = new.execute(f"PRAGMA table_info({name})").fetchall()
    with suppress(sqlite3.DatabaseError):
        old_names = {row[1] for row in old.execute(f"PRAGMA table_info({name})")}
        return [row for row in columns if row[1] in old_names] or columns
    return columns


def _readable_rows(old: sqlite3.Connection, name: str, select: str) -> Iterator[Sequence[Any]]:
    """Yield the readable rows; without row ids, only those before the first bad page."""
    row = old.execute("SELECT sql FROM sqlite_master WHERE name = ?", [name]).fetchone()
    # An older store does not have all tables.
    if row is None or str(row[0]).endswith("WITHOUT ROWID"):
        with suppress(sqlite3.DatabaseError):
            yield from old.execute(select)
        return
    last = _last_id(old, name)
    step = max(_IDS_AT_ONCE, last // _RANGES)  # the ids of blocks are times, far apart
    ranges = [(start, start + step) for start in range(last // step * step, -1, -step)]
    while ranges:
        start, end = ranges.pop()
        is_one = end - start == 1  # only a search for one id does not read the next page, too
        where = "rowid = ?" if is_one else "rowid >= ? AND rowid < ? ORDER BY rowid"
        try:
            bounds = (start,) if is_one else (start, end)
            yield from old.execute(f"{select} WHERE {where}", bounds).fetchall()
        except sqlite3.DatabaseError:
            if not is_one:
                middle = (start + end) // 2
                ranges += [(middle, end), (start, middle)]


def _is_newer_than(old: sqlite3.Connection, name: str) -> bool:
    with suppress(sqlite3.DatabaseError):
        return not old.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [name]).fetchone()
    return False


def _last_id(old: sqlite3.Connection, name: str) -> int:
    last = 0
    for statement in (
        f"SELECT max(rowid) FROM {name}",
        f"SELECT max(seq) FROM sqlite_sequence WHERE name = '{name}'",
        "SELECT max(id) FROM messages_fts_docsize",
    ):
        with suppress(sqlite3.DatabaseError):
            last = max(last, old.execute(statement).fetchone()[0] or 0)
    return last


def _restore_ids(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Give messages the ids that both old indexes have, in place of ids that neither of them has.

    A flipped bit of a row's id raises no error, and its message would lose its tags and passages.
    """
    try:
        in_index, in_full_text = ({row[0] for row in old.execute(ids)} for ids in _OTHER_IDS)
    except sqlite3.DatabaseError:
        return
    indexed, either = in_index & in_full_text, in_index | in_full_text
    copied = _ids_in_file_order(old, new)
    present, missing = sorted(indexed.intersection(copied)), sorted(indexed.difference(copied))
    # A row is still where its id was, whichever bit of it has flipped.
    unknown, counts_before, before = list[int](), list[int](), 0
    for number in copied:
        before += number in indexed
        if number not in either:
            unknown.append(number)
            counts_before.append(before)
    if [bisect(present, number) for number in missing] == counts_before:
        pairs = zip(missing, unknown, strict=True)
        new.executemany("UPDATE messages SET id = ? WHERE id = ?", pairs)


def _ids_in_file_order(old: sqlite3.Connection, new: sqlite3.Connection) -> list[int]:
    """Return the ids of copied messages in the order of their rows, else ascending."""
    copied = {row[0] for row in new.execute("SELECT id FROM messages")}
    try:
        rows = old.execute("SELECT id FROM messages NOT INDEXED").fetchall()
    except sqlite3.DatabaseError:
        return sorted(copied)
    return [number for (number,) in rows if number in copied]


def count_missing(
    old: sqlite3.Connection, new: sqlite3.Connection, *, is_complete: bool = True
) -> int:
    """Count the messages in the old indexes that the copy lacks, as a lost page raises no error.

    :param is_complete: whether all pages of the messages were read. If not, and no index can be
        read either, every number that was ever given to a message counts.
    """
    copied = new.execute("SELECT COUNT(*) FROM messages").fetchone()[0]
    counts = []
    for ids in _OTHER_IDS:
        with suppress(sqlite3.DatabaseError):
            counts.append(old.execute(f"SELECT COUNT(*) FROM ({ids})").fetchone()[0])
    if not counts and not is_complete:
        counts.append(_last_id(old, "messages"))
    return int(max([copied, *counts]) - copied)


def find_lost_summaries(
    old: sqlite3.Connection, new: sqlite3.Connection
) -> list[ConversationName] | None:
    """Return the conversations whose summaries the copy lacks; ``None`` if that is unknown."""
    names = ", ".join(
        f"CAST({name} AS BLOB)" for name in ("partition", "instance", "conversation_id")
    )
    select = f"SELECT {names} FROM summaries"
    try:
        listed = old.execute(f"{select} INDEXED BY sqlite_autoindex_summaries_1").fetchall()
    except sqlite3.DatabaseError:
        return None
    lost = set(listed) - set(new.execute(select))
    return sorted((_decode(p), _decode(i), _decode(c)) for p, i, c in lost)
