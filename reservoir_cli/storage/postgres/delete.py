"""Delete messages and everything derived from them on a server."""

from collections.abc import Mapping, Sequence

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Scope, StoredMessage
from reservoir_cli.storage import (
    mark_rows,
    proxy_ledger,
    reads,
    sources,
    summaries,
    tombstones,
    writes,
)
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.util.progress import Progress, no_progress

_AT_ONCE = 5_000


def remove(
    connection: Connection,
    ids: Mapping[str, Sequence[int]],
    *,
    mark: bool,
    progress: Progress = no_progress,
) -> None:
    """Delete messages and everything derived from them; call it inside a write transaction.

    :param ids: by partition.
    :param mark: whether to write tombstones, so that they are not imported again.
    :raises ReservoirError: one of them is gone; the transaction has to be rolled back.
    """
    connection.lock(ids)
    total = sum(map(len, ids.values()))
    deleted = 0
    for partition, message_ids in ids.items():
        for start in range(0, len(message_ids), _AT_ONCE):
            batch = message_ids[start : start + _AT_ONCE]
            messages = reads.by_id(connection, batch, Scope(partition))
            _require_all(messages, partition, batch)
            summaries.forget(connection, messages)
            proxy_ledger.forget(connection, partition, batch)
            if mark:
                tombstones.mark(connection, messages)
                sources.forget(connection, messages)
            for table in mark_rows.TABLES:
                writes.delete_rows(connection, table, partition, batch)
            # This also deletes their words, vectors, links and rows of ``pending``.
            connection.execute(
                "DELETE FROM messages WHERE partition = ? AND id = ANY(?)", [partition, batch]
            )
            progress("forgetting", deleted := deleted + len(batch), total)
        _drop_empty_conversations(connection, partition)


def _require_all(messages: Sequence[StoredMessage], partition: str, ids: Sequence[int]) -> None:
    """Check that no message was moved to another partition since its id was read."""
    if missing := set(ids) - {message.id for message in messages}:
        raise ReservoirError(
            f"message {min(missing)} is no longer in {partition}, so nothing was deleted",
            hint="another command moved or forgot it at the same time; run this one again",
        )


def _drop_empty_conversations(connection: Connection, partition: str) -> None:
    """Delete the rows of conversations that have no messages left."""
    connection.execute(
        """
        DELETE FROM conversations c WHERE c.partition = ? AND NOT EXISTS (
            SELECT 1 FROM messages m WHERE m.partition = c.partition
            AND m.conversation_id = c.id AND m.instance = c.instance
        )
        """,
        [partition],
    )
