"""The tags and pins that a person puts on messages."""

from collections.abc import Sequence
from datetime import datetime

from reservoir_cli.messages import Key, check_name, to_epoch_ms
from reservoir_cli.storage import tag_and_pin_rows, writes
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.transactions import writing


@writing
def add_tags(store: Store, key: Key, names: Sequence[str]) -> None:
    """Add tags to a message.

    :raises UsageError: a name is empty or has control characters.
    """
    tags = [(*key, check_name(name)) for name in names]
    store._connection.lock([key.partition])
    tag_and_pin_rows.add_tags(store._connection, tags if store.by_key([key]) else [])


@writing
def remove_tags(store: Store, key: Key, names: Sequence[str]) -> None:
    """Remove tags from a message."""
    in_partition, values = store._connection.in_partition("tags", key.partition)
    listed, bound = store._connection.in_list("name", names)
    store._connection.lock([key.partition])
    store._connection.execute(
        f"DELETE FROM tags WHERE {in_partition} AND message_id = ? AND {listed}",
        [*values, key.id, *bound],
    )


@writing
def pin(store: Store, key: Key, now: datetime) -> None:
    """Pin a message; if it is already pinned, the time of its pin stays."""
    store._connection.lock([key.partition])
    if store.by_key([key]):
        tag_and_pin_rows.add_pins(store._connection, [(*key, to_epoch_ms(now))])


@writing
def unpin(store: Store, key: Key) -> None:
    """Unpin a message."""
    store._connection.lock([key.partition])
    writes.delete_rows(store._connection, "pins", key.partition, [key.id])
