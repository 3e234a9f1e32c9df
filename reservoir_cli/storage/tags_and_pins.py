"""The tags and pins that a person puts on messages."""

from collections.abc import Sequence
from datetime import datetime

from reservoir_cli.messages import Key, check_name, to_epoch_ms
from reservoir_cli.storage import mark_rows, writes
from reservoir_cli.storage.store import Store


class Tags:
    """Write the tags of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._connection = store._connection

    def add(self, key: Key, names: Sequence[str]) -> None:
        """Add tags to a message.

        :raises UsageError: a name is empty or has control characters.
        """
        tags = [(*key, check_name(name)) for name in names]

        def write() -> None:
            self._connection.lock([key.partition])
            mark_rows.add_tags(self._connection, tags if self._store.by_key([key]) else [])

        self._store._run_write(write)

    def remove(self, key: Key, names: Sequence[str]) -> None:
        """Remove tags from a message."""

        def write() -> None:
            in_partition, values = self._connection.in_partition("tags", key.partition)
            listed, bound = self._connection.in_list("name", names)
            self._connection.lock([key.partition])
            self._connection.execute(
                f"DELETE FROM tags WHERE {in_partition} AND message_id = ? AND {listed}",
                [*values, key.id, *bound],
            )

        self._store._run_write(write)


class Pins:
    """Write the pins of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._connection = store._connection

    def add(self, key: Key, now: datetime) -> None:
        """Pin a message; if it is already pinned, the time of its pin stays."""

        def write() -> None:
            self._connection.lock([key.partition])
            if self._store.by_key([key]):
                mark_rows.add_pins(self._connection, [(*key, to_epoch_ms(now))])

        self._store._run_write(write)

    def remove(self, key: Key) -> None:
        """Unpin a message."""

        def write() -> None:
            self._connection.lock([key.partition])
            writes.delete_rows(self._connection, "pins", key.partition, [key.id])

        self._store._run_write(write)
