"""Move a partition's messages to another one, with everything that refers to them."""

from collections.abc import Sequence

from reservoir_cli.messages import Scope
from reservoir_cli.storage import (
    conversations,
    properties,
    proxy_ledger,
    reads,
    sources,
    summaries,
    twins,
)
from reservoir_cli.storage.portable_sql import batches, placeholders
from reservoir_cli.storage.sqlite import delete, keyword_search, vector_blocks
from reservoir_cli.storage.sqlite.connection import Connection
from reservoir_cli.storage.sqlite.vector_blocks import Place


def move(
    connection: Connection, old: str, new: str, replace_text: twins.ReplaceText
) -> tuple[int, int]:
    """Move all messages of a partition into another; call it inside a write transaction.

    Instances keep their names, except one that is named like the partition and renamed with it.

    :returns: how many were moved, and how many were dropped as duplicates.
    """
    names = connection.execute(
        "SELECT instance FROM messages WHERE partition = ? GROUP BY instance", [old]
    ).fetchall()
    moved = dropped = 0
    for (instance,) in names:
        places = (old, instance), (new, new if instance == old else instance)
        duplicates = twins.merge(connection, *places, replace_text)
        delete.remove(connection, duplicates, mark=False)
        dropped += len(duplicates)
        moved += _move(connection, *places)
    for table in ("conversations", "summaries", "vector_chunks"):
        connection.execute(f"DELETE FROM {table} WHERE partition = ?", [old])
    sources.move(connection, old, new)
    proxy_ledger.clear(connection, old)
    connection.execute("UPDATE context_runs SET partition = ? WHERE partition = ?", [new, old])
    return moved, dropped


def _move(connection: Connection, old: Place, new: Place) -> int:
    select = "SELECT id FROM messages WHERE partition = ? AND instance = ? ORDER BY id"
    ids = [row[0] for row in connection.execute(select, old)]
    for batch in batches(ids):
        messages = reads.by_id(connection, batch, Scope(*old))
        keyword_search.unindex(connection, old, messages)
        keyword_search.index(connection, new, messages)
    connection.execute(
        "UPDATE messages SET partition = ?, instance = ? WHERE partition = ? AND instance = ?",
        [*new, *old],
    )
    connection.execute(conversations.MOVE, [*new, *old])
    connection.execute(summaries.MOVE, [*new, *old])
    _pack(connection, old, ids)
    return len(ids)


def _pack(connection: Connection, old: Place, ids: Sequence[int]) -> None:
    """Rebuild the vector blocks of moved messages, which contain a hash of their partition."""
    models = connection.execute(
        "SELECT DISTINCT model_id FROM vector_chunks WHERE partition = ? AND instance = ?", old
    ).fetchall()
    connection.execute("DELETE FROM vector_chunks WHERE partition = ? AND instance = ?", old)
    next_model = properties.get(connection, properties.NEXT_ID)
    for (model_id,) in models:
        waiting = "rebuilding" if model_id == next_model else "pending"
        for batch in batches(ids):
            rows = connection.execute(
                f"""
                SELECT id FROM messages WHERE id IN ({placeholders(batch)})
                AND id NOT IN (SELECT message_id FROM {waiting}) ORDER BY id
                """,
                batch,
            )
            embedded = [row[0] for row in rows]
            vectors = vector_blocks.read_vectors(connection, model_id, embedded)
            vector_blocks.append(connection, model_id, embedded, vectors)
