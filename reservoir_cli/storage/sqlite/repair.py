"""Check and rebuild derived data.

Messages and vectors are the primary data; the full-text index, the vector blocks and the links are
derived from them.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from reservoir_cli.errors import StoreError
from reservoir_cli.messages import Scope, clean_text
from reservoir_cli.storage import links, mark_rows, properties, reads
from reservoir_cli.storage.links import LinkThreshold
from reservoir_cli.storage.portable_sql import batches
from reservoir_cli.storage.sqlite import keyword_search, store_file, vector_blocks
from reservoir_cli.storage.sqlite.connection import Connection
from reservoir_cli.storage.store import Problem

_AT_ONCE = 1_000


def file_problems(connection: sqlite3.Connection) -> list[str]:
    """Return the problems that SQLite finds in the file itself, without any message text.

    Call it outside of transactions. The full-text index is checked unless others are writing.
    """
    lines: list[str] = []
    try:
        lines.extend(row[0] for row in connection.execute("PRAGMA integrity_check(10)"))
    except sqlite3.DatabaseError as error:  # the check can fail on a damaged page
        if not _is_damage(error):
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


def _is_damage(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def problems(connection: Connection, model_id: str | None) -> Iterator[Problem]:
    """Yield the problems of derived data, and of messages.

    :param model_id: the active model; ``None`` if there is none yet.
    """
    if code := store_file.find_code(connection):
        yield Problem(f"there is {code}: nothing is written", repairable=False)
    if count := count_full_text_problems(connection):
        yield Problem(f"the full-text index is wrong for {_messages(count)}", repairable=True)
    if count := vector_blocks.count_problems(connection, model_id or ""):
        yield Problem(f"the ranking data is wrong for {_messages(count)}", repairable=True)
    if count := mark_rows.count_orphans(connection):
        yield Problem(f"{count:,} tags and pins belong to no message", repairable=True)
    if unreadable := find_unreadable(connection):
        ids = ", ".join(map(str, unreadable[:10]))
        detail = f"{_messages(len(unreadable))} cannot be read: {ids}"
        yield Problem(detail, repairable=False)


def _messages(count: int) -> str:
    return f"{count:,} message{'' if count == 1 else 's'}"


def rebuild(
    connection: Connection, active: Callable[[], str | None], threshold: LinkThreshold
) -> list[int]:
    """Rebuild all derived data.

    :param active: returns the active model, called after its identity is repaired.
    :returns: ids of messages whose texts were not valid UTF-8.
    """
    repaired = repair_texts(connection)
    mark_rows.remove_orphans(connection)
    repair_model(connection)
    rebuild_full_text(connection)
    if model_id := active():
        rebuild_vector_blocks(connection, model_id)
        rebuild_links(connection, model_id, threshold)
    return repaired


def find_unreadable(connection: Connection) -> list[int]:
    """Return the ids of messages whose rows cannot be decoded."""
    unreadable: list[int] = []
    for batch in _batches(connection, "1"):
        if not _is_readable(connection, batch):
            unreadable += [
                message_id for message_id in batch if not _is_readable(connection, [message_id])
            ]
    return unreadable


def _is_readable(connection: Connection, ids: Sequence[int]) -> bool:
    try:
        reads.by_id(connection, ids, Scope(None))
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
    """Replace invalid UTF-8 by U+FFFD, so that the messages can be read again.

    :returns: ids of the changed messages.
    """
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
    used = {row[0] for row in connection.execute("SELECT DISTINCT model_id FROM embeddings")}
    waiting = connection.execute("SELECT EXISTS (SELECT 1 FROM pending)").fetchone()[0]
    if active and active not in used and len(used) == 1 and not waiting:
        properties.put(connection, properties.MODEL_ID, used.pop())


def rebuild_full_text(connection: Connection) -> None:
    """Rebuild the full-text index."""
    connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')")
    for batch in _batches(connection, "1"):
        messages = reads.by_id(connection, batch, Scope(None))
        for place, texts in keyword_search.texts_of(messages).items():
            keyword_search.index(connection, place, texts)


def rebuild_vector_blocks(connection: Connection, model_id: str) -> None:
    """Rebuild the vector blocks of a model."""
    connection.execute("DELETE FROM vector_chunks WHERE model_id = ?", [model_id])
    for batch in _batches(connection, "id NOT IN (SELECT message_id FROM pending)"):
        vector_blocks.append(
            connection, model_id, batch, vector_blocks.read_vectors(connection, model_id, batch)
        )


def rebuild_links(connection: Connection, model_id: str, threshold: LinkThreshold) -> None:
    """Rebuild all links, partition by partition in order of time."""
    connection.execute("DELETE FROM synapses")
    rows = connection.execute(
        """
        SELECT partition, id FROM messages WHERE id NOT IN (SELECT message_id FROM pending)
        ORDER BY partition, created_at, id
        """
    ).fetchall()
    for partition, in_partition in groupby(rows, key=lambda row: row[0]):
        for batch in batches([row[1] for row in in_partition], _AT_ONCE):
            links.add(connection, partition, batch, model_id, threshold)


def _batches(connection: Connection, condition: str) -> Iterator[Sequence[int]]:
    """Return the ids of messages that meet a condition, a thousand at a time."""
    rows = connection.execute(f"SELECT id FROM messages WHERE {condition} ORDER BY id")
    return batches([row[0] for row in rows.fetchall()], _AT_ONCE)
