"""The tags and pins that a person puts on messages."""

from collections.abc import Sequence
from datetime import datetime

from reservoir_cli.messages import Key, check_name, to_epoch_ms
from reservoir_cli.storage.tables import reads, rows_of_tags_and_pins, writes
from reservoir_cli.storage.transactions import TableAccess, writing


class TagsAndPins(TableAccess):
    """Change the tags and pins of a store."""

    @writing
    def add_tags(self, key: Key, names: Sequence[str]) -> None:
        """Add tags to a message."""
        tags = [(*key, check_name(name)) for name in names]
        self._connection.lock([key.partition])
        if reads.by_key(self._connection, [key]):
            rows_of_tags_and_pins.add_tags(self._connection, tags)

    @writing
    def remove_tags(self, key: Key, names: Sequence[str]) -> None:
        """Remove tags from a message."""
        listed, bound = self._connection.in_list("name", names)
        self._connection.lock([key.partition])
        condition = f"message_id = ? AND {listed}"
        self._connection.delete("tags", key.partition, condition, [key.id, *bound])

    @writing
    def pin(self, key: Key, now: datetime) -> None:
        """Pin a message; if it is already pinned, the time of its pin stays."""
        self._connection.lock([key.partition])
        if reads.by_key(self._connection, [key]):
            rows_of_tags_and_pins.add_pins(self._connection, [(*key, to_epoch_ms(now))])

    @writing
    def unpin(self, key: Key) -> None:
        """Unpin a message."""
        self._connection.lock([key.partition])
        writes.delete_rows(self._connection, "pins", key.partition, [key.id])
