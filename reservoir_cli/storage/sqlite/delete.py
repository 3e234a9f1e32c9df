"""Taking messages out of a store so that no word of them stays in its files.

A deleted row is overwritten with zeros (``secure_delete``), but the full text keeps words in
segments until they are merged, pages keep remains of rows that once were moved, and the write-ahead
log keeps whole pages until it is emptied: see ``secure_delete``.
"""

from collections.abc import Sequence

from reservoir_cli.errors import StoreError
from reservoir_cli.messages import Scope
from reservoir_cli.storage import proxy_ledger_rows, reads, source_rows, summary_rows, tombstones
from reservoir_cli.storage.compact_keys import by_partition
from reservoir_cli.storage.portable_sql import batches, placeholders
from reservoir_cli.storage.sqlite import keyword_search, vector_blocks
from reservoir_cli.storage.sqlite.connection import Connection
from reservoir_cli.storage.sqlite.vector_blocks import Place
from reservoir_cli.util.progress import Progress, no_progress


def remove(
    connection: Connection,
    ids: Sequence[int],
    *,
    mark: bool,
    progress: Progress = no_progress,
) -> None:
    """Delete messages and everything derived from them; call it inside a write transaction.

    :param mark: note their sources, so that they are not imported again.
    """
    places: dict[Place, list[int]] = {}
    done = 0
    for some in batches(ids):
        found = reads.by_id(connection, some, Scope(None))
        for message in found:
            places.setdefault((message.partition, message.instance), []).append(message.id)
        for place, texts in keyword_search.texts_of(found).items():
            keyword_search.unindex(connection, place, texts)
        summary_rows.forget(connection, found)
        for partition, numbers in by_partition(message.key for message in found).items():
            proxy_ledger_rows.forget(connection, partition, numbers)
        if mark:
            tombstones.mark(connection, found)
            source_rows.forget(connection, found)
        # Vectors, links, and what is still to be embedded go with their messages.
        connection.executemany("DELETE FROM messages WHERE id = ?", [(each.id,) for each in found])
        _require_gone(connection, some)
        progress("forgetting", done := done + len(some), len(ids))
    for place, gone in places.items():
        vector_blocks.remove(connection, place, gone)
        _drop_empty_conversations(connection, place)


def _require_gone(connection: Connection, ids: Sequence[int]) -> None:
    """Check that messages were deleted, with their vectors.

    :raises StoreError: something kept one; the transaction has to be taken back.
    """
    marks = placeholders(ids)
    kept = connection.execute(
        f"""
        SELECT id FROM messages WHERE id IN ({marks})
        UNION SELECT message_id FROM embeddings WHERE message_id IN ({marks})
        """,
        [*ids, *ids],
    ).fetchall()
    if kept:
        raise StoreError(
            f"message {kept[0][0]} could not be deleted, so nothing was", hint="reservoir doctor"
        )


def _drop_empty_conversations(connection: Connection, place: Place) -> None:
    """Forget the titles of conversations of which no message is left."""
    connection.execute(
        """
        DELETE FROM conversations AS c WHERE c.partition = ? AND c.instance = ? AND NOT EXISTS (
            SELECT 1 FROM messages m INDEXED BY messages_by_conversation
            WHERE m.partition = c.partition AND m.conversation_id = c.id
            AND m.instance = c.instance
        )
        """,
        place,
    )
