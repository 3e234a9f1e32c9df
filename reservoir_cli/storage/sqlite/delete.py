"""Delete messages and everything derived from them.

SQLite overwrites a deleted row with zeros (``secure_delete``). Their words also have to be removed
from segments of the full-text index, remains of moved rows in pages, and the write-ahead log: see
the module ``erase_deleted_text``.
"""

from collections.abc import Sequence

from reservoir_cli.errors import StoreError
from reservoir_cli.messages import Scope
from reservoir_cli.storage import conversations, proxy_ledger, reads, sources, summaries, tombstones
from reservoir_cli.storage.compact_keys import by_partition
from reservoir_cli.storage.portable_sql import batches, placeholders
from reservoir_cli.storage.sqlite import keyword_search, vector_blocks
from reservoir_cli.storage.sqlite.connection import Connection
from reservoir_cli.storage.sqlite.vector_blocks import Place
from reservoir_cli.util.progress import Progress, no_progress


def remove(
    connection: Connection, ids: Sequence[int], *, mark: bool, progress: Progress = no_progress
) -> None:
    """Delete messages and everything derived from them; call it inside a write transaction.

    :param mark: whether to write tombstones, so that they are not imported again.
    """
    places: dict[Place, list[int]] = {}
    deleted = 0
    for batch in batches(ids):
        messages = reads.by_id(connection, batch, Scope(None))
        for message in messages:
            places.setdefault((message.partition, message.instance), []).append(message.id)
        for place, of_place in keyword_search.by_place(messages).items():
            keyword_search.unindex(connection, place, of_place)
        summaries.forget(connection, messages)
        for partition, message_ids in by_partition(message.key for message in messages).items():
            proxy_ledger.forget(connection, partition, message_ids)
        if mark:
            tombstones.mark(connection, messages)
            sources.forget(connection, messages)
        # This also deletes their vectors, links and rows of ``pending``.
        connection.executemany(
            "DELETE FROM messages WHERE id = ?", [(message.id,) for message in messages]
        )
        _require_deleted(connection, batch)
        progress("forgetting", deleted := deleted + len(batch), len(ids))
    for place, message_ids in places.items():
        vector_blocks.remove(connection, place, message_ids)
        conversations.drop_empty(connection, Scope(*place))


def _require_deleted(connection: Connection, ids: Sequence[int]) -> None:
    """Check that messages and their vectors were deleted.

    :raises StoreError: one was not; the transaction has to be rolled back.
    """
    marks = placeholders(ids)
    remaining = connection.execute(
        f"""
        SELECT id FROM messages WHERE id IN ({marks})
        UNION SELECT message_id FROM embeddings WHERE message_id IN ({marks})
        """,
        [*ids, *ids],
    ).fetchall()
    if remaining:
        raise StoreError(
            f"message {remaining[0][0]} could not be deleted, so nothing was",
            hint="reservoir doctor",
        )
