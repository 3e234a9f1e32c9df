"""A whole store in portions, out of a file and into one; see ``copying``."""

import sqlite3
from collections.abc import Sequence

import numpy as np

from reservoir_cli.storage import summaries
from reservoir_cli.storage.replicate import Link, Portion, Remainder
from reservoir_cli.storage.sqlite import properties, reads, vector_blocks, writes
from reservoir_cli.storage.unfinished import UNFINISHED_COPY

#: What says how a store is doing, and nothing of what it holds.
_PASSING = (UNFINISHED_COPY, properties.UNFINISHED, properties.INDEX)
_WAITING = ("pending", "rebuilding")


def portion(connection: sqlite3.Connection, after: int, count: int) -> Portion:
    """The messages behind an id, and what belongs to them."""
    rows = connection.execute(
        f"SELECT {writes.COLUMNS} FROM messages WHERE id > ? ORDER BY id LIMIT ?", [after, count]
    ).fetchall()
    ids = [row[0] for row in rows]
    vectors = connection.execute(
        f"""
        SELECT message_id, model_id, passage, start, "end", vector FROM embeddings
        WHERE message_id IN ({reads.marks(ids)}) ORDER BY 1, 2, 3
        """,
        ids,
    ).fetchall()
    first, second = (sorted(reads.still_pending(connection, ids, table)) for table in _WAITING)
    return Portion(rows, vectors, (first, second))


def put_portion(connection: sqlite3.Connection, given: Portion) -> None:
    """Write messages with their ids, index them, and pack what ranking reads."""
    writes.insert_copied(connection, given.messages)
    connection.executemany("INSERT INTO embeddings VALUES (?, ?, ?, ?, ?, ?)", given.vectors)
    for table, ids in zip(_WAITING, given.waiting, strict=True):
        connection.executemany(f"INSERT INTO {table} VALUES (?)", [(each,) for each in ids])
    lacking = {
        properties.get(connection, key) or "": ids
        for key, ids in zip((properties.MODEL_ID, properties.NEXT_ID), given.waiting, strict=True)
    }
    for model_id in sorted({row[1] for row in given.vectors} | (lacking.keys() - {""})):
        vectors: dict[int, list[np.ndarray[tuple[int], np.dtype[np.float32]]]] = {}
        for number, of, _, _, _, vector in given.vectors:
            if of == model_id:
                vectors.setdefault(number, []).append(np.frombuffer(vector, "<f4"))
        waiting = set(lacking.get(model_id, set(given.ids) - vectors.keys()))
        done = [each for each in given.ids if each not in waiting]
        stacked = {number: np.stack(some) for number, some in vectors.items()}
        vector_blocks.append(connection, model_id, done, stacked)


def links(connection: sqlite3.Connection, ids: Sequence[int]) -> list[Link]:
    """The links from messages to those before them."""
    return connection.execute(
        f"""
        SELECT m.partition, s.source_id, s.target_id, s.score, s.kind
        FROM synapses s JOIN messages m ON m.id = s.source_id
        WHERE s.source_id IN ({reads.marks(ids)}) ORDER BY 1, 2, 3
        """,
        list(ids),
    ).fetchall()


def put_links(connection: sqlite3.Connection, given: Sequence[Link]) -> None:
    """Write links; both ends are there."""
    connection.executemany("INSERT INTO synapses VALUES (?, ?, ?, ?)", [row[1:] for row in given])


def remainder(connection: sqlite3.Connection) -> Remainder:
    """What belongs to no message."""
    kept = dict(connection.execute("SELECT key, value FROM properties").fetchall())
    return Remainder(
        connection.execute(f"""
            SELECT partition, instance, {reads.CONVERSATION_COLUMNS} FROM conversations
            ORDER BY 1, 2, 3
            """).fetchall(),
        [
            {name: value for name, value in sorted(run.items()) if name != "id"}
            for run in reads.runs(connection, 0)
        ],
        [row[0] for row in connection.execute("SELECT mark FROM forgotten ORDER BY 1")],
        {key: value for key, value in kept.items() if key.partition(":")[0] not in _PASSING},
        connection.execute(summaries.ALL).fetchall(),
    )


def put_remainder(connection: sqlite3.Connection, given: Remainder) -> None:
    """Write what belongs to no message, in place of what is there of it."""
    for table in ("conversations", "context_runs", "forgotten", "summaries"):
        connection.execute(f"DELETE FROM {table}")
    connection.executemany(
        f"INSERT INTO conversations (partition, instance, {reads.CONVERSATION_COLUMNS}) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        given.conversations,
    )
    for run in given.runs:
        connection.execute(
            f"INSERT INTO context_runs ({', '.join(run)}) VALUES ({reads.marks(list(run))})",
            list(run.values()),
        )
    connection.executemany(
        "INSERT INTO forgotten VALUES (?)", [(each,) for each in given.forgotten]
    )
    connection.executemany(summaries.inserting("?"), given.summaries)
    for key, value in given.properties.items():
        properties.put(connection, key, value)
