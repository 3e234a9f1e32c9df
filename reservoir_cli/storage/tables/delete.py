"""Delete messages and everything derived from them."""

from collections.abc import Callable, Mapping, Sequence

from reservoir_cli.errors import ReservoirError, StoreError
from reservoir_cli.messages import Scope, StoredMessage
from reservoir_cli.storage.portable_sql import Connection, batches, select_messages
from reservoir_cli.storage.schema import OF_MESSAGES
from reservoir_cli.storage.tables import (
    conversations,
    proxy_ledger,
    reads,
    sources,
    summaries,
    tombstones,
    writes,
)
from reservoir_cli.util.progress import Progress, no_progress

#: Removes messages of a partition and instance from the indexes of a store.
Unindex = Callable[[tuple[str, str], Sequence[StoredMessage]], None]


def remove(
    connection: Connection,
    ids: Mapping[str, Sequence[int]],
    unindex: Unindex,
    *,
    mark: bool,
    progress: Progress = no_progress,
) -> None:
    """Delete messages and everything derived from them; call it inside a write transaction."""
    connection.lock(ids)
    total = sum(map(len, ids.values()))
    deleted = 0
    for partition, message_ids in ids.items():
        for batch in batches(message_ids):
            messages = reads.by_id(connection, batch, Scope(partition))
            if missing := set(batch) - {message.id for message in messages}:
                raise ReservoirError(
                    f"message {min(missing)} is no longer in {partition}, so nothing was deleted",
                    hint="another command moved or forgot it at the same time; run this one again",
                )
            for channel, of_channel in reads.by_channel(messages).items():
                unindex(channel, of_channel)
            summaries.forget(connection, messages)
            proxy_ledger.forget(connection, partition, batch)
            if mark:
                tombstones.mark(connection, messages)
                sources.forget(connection, messages)
            for table in OF_MESSAGES:
                writes.delete_rows(connection, table, partition, batch)
            connection.delete("messages", partition, *connection.in_list("id", batch))
            for (remaining,) in select_messages(connection, "id", partition, batch):
                raise StoreError(
                    f"message {remaining} could not be deleted, so nothing was",
                    hint="reservoir doctor",
                )
            conversations.drop_empty(connection, messages)
            progress("forgetting", deleted := deleted + len(batch), total)
