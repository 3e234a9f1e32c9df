"""Carrying a partition's messages over to another, with everything that names their place."""

from collections.abc import Sequence

from reservoir_cli.messages import Scope
from reservoir_cli.storage import (
    conversations,
    mark_rows,
    properties,
    proxy_ledger_rows,
    reads,
    source_rows,
    summary_rows,
)
from reservoir_cli.storage.portable_sql import batches, placeholders
from reservoir_cli.storage.sqlite import delete, keyword_search, vector_blocks
from reservoir_cli.storage.sqlite.connection import Connection
from reservoir_cli.storage.sqlite.vector_blocks import Place


def move(connection: Connection, old: str, new: str) -> tuple[int, int]:
    """Bring all messages of a partition into another; call it inside a write transaction.

    An instance keeps its name; the one that is named like the partition is renamed with it.

    :returns: how many were moved, and how many were there already and are gone.
    """
    names = connection.execute(
        "SELECT instance FROM messages WHERE partition = ? GROUP BY instance", [old]
    ).fetchall()
    moved = there = 0
    for (instance,) in names:
        places = (old, instance), (new, new if instance == old else instance)
        known = _already_there(connection, *places)
        mark_rows.hand_on(connection, *places, known)
        delete.remove(connection, known, mark=False)
        there += len(known)
        moved += _move(connection, *places)
    for statement in (
        "DELETE FROM conversations WHERE partition = ?",
        "DELETE FROM summaries WHERE partition = ?",
        "DELETE FROM vector_chunks WHERE partition = ?",
    ):
        connection.execute(statement, [old])
    source_rows.move(connection, old, new)
    proxy_ledger_rows.clear(connection, old)
    connection.execute("UPDATE context_runs SET partition = ? WHERE partition = ?", [new, old])
    return moved, there


def _already_there(connection: Connection, old: Place, new: Place) -> list[int]:
    """Messages whose source and id the new place has already."""
    rows = connection.execute(
        """
        SELECT a.id FROM messages a CROSS JOIN messages b
        ON b.partition = ? AND b.instance = ?
        AND b.source = a.source AND b.source_id = a.source_id
        WHERE a.partition = ? AND a.instance = ?
        """,
        [*new, *old],
    )
    return [row[0] for row in rows]


def _move(connection: Connection, old: Place, new: Place) -> int:
    ids = [
        row[0]
        for row in connection.execute(
            "SELECT id FROM messages WHERE partition = ? AND instance = ? ORDER BY id", old
        )
    ]
    for some in batches(ids):
        found = reads.by_id(connection, some, Scope(*old))
        for texts in keyword_search.texts_of(found).values():
            keyword_search.unindex(connection, old, texts)
            keyword_search.index(connection, new, texts)
    connection.execute(
        "UPDATE messages SET partition = ?, instance = ? WHERE partition = ? AND instance = ?",
        [*new, *old],
    )
    # What the new place knows of a conversation stays.
    connection.execute(
        f"""
        INSERT OR IGNORE INTO conversations (partition, instance, {conversations.COLUMNS})
        SELECT ?, ?, {conversations.COLUMNS} FROM conversations
        WHERE partition = ? AND instance = ?
        """,
        [*new, *old],
    )
    connection.execute(summary_rows.MOVE, [*new, *old])
    _pack(connection, old, ids)
    return len(ids)


def _pack(connection: Connection, old: Place, ids: Sequence[int]) -> None:
    """Make again what ranking reads of moved messages: it holds a key of their thread."""
    models = connection.execute(
        "SELECT DISTINCT model_id FROM vector_chunks WHERE partition = ? AND instance = ?", old
    ).fetchall()
    connection.execute("DELETE FROM vector_chunks WHERE partition = ? AND instance = ?", old)
    for (model_id,) in models:
        lacking = "rebuilding" if _is_next(connection, model_id) else "pending"
        for some in batches(ids):
            rows = connection.execute(
                f"""
                SELECT id FROM messages WHERE id IN ({placeholders(some)})
                AND id NOT IN (SELECT message_id FROM {lacking}) ORDER BY id
                """,
                some,
            )
            done = [row[0] for row in rows]
            vectors = vector_blocks.stored_vectors(connection, model_id, done)
            vector_blocks.append(connection, model_id, done, vectors)


def _is_next(connection: Connection, model_id: str) -> bool:
    return properties.get(connection, properties.NEXT_ID) == model_id
