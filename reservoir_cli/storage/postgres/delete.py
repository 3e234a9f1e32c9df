"""Delete messages and everything derived from them on a server."""

from collections.abc import Mapping, Sequence

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Scope, StoredMessage
from reservoir_cli.storage import (
    conversations,
    proxy_ledger,
    reads,
    sources,
    summaries,
    tag_and_pin_rows,
    tombstones,
    writes,
)
from reservoir_cli.storage.portable_sql import batches
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.util.progress import Progress, no_progress


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
        for batch in batches(message_ids):
            messages = reads.by_id(connection, batch, Scope(partition))
            _require_all(messages, partition, batch)
            summaries.forget(connection, messages)
            proxy_ledger.forget(connection, partition, batch)
            if mark:
                tombstones.mark(connection, messages)
                sources.forget(connection, messages)
            for table in tag_and_pin_rows.TABLES:
                writes.delete_rows(connection, table, partition, batch)
            # This also deletes their words, vectors, links and rows of ``pending``.
            connection.execute(
                "DELETE FROM messages WHERE partition = ? AND id = ANY(?)", [partition, batch]
            )
            progress("forgetting", deleted := deleted + len(batch), total)
        conversations.drop_empty(connection, Scope(partition))


def _require_all(messages: Sequence[StoredMessage], partition: str, ids: Sequence[int]) -> None:
    """Check that no message was moved to another partition since its id was read."""
    if missing := set(ids) - {message.id for message in messages}:
        raise ReservoirError(
            f"message {min(missing)} is no longer in {partition}, so nothing was deleted",
            hint="another command moved or forgot it at the same time; run this one again",
        )
