"""Keys of messages, many of them in 12 bytes each, and of threads."""

from array import array
from collections.abc import Iterable, Sequence
from typing import overload

from reservoir_cli.messages import Channel, Key, StoredMessage


class Keys(Sequence[Key]):
    """A sequence of message keys; a million take 12 MB."""

    def __init__(self, keys: Iterable[tuple[str, int]] = ()) -> None:
        self._partitions: list[str] = []
        self._number_of: dict[str, int] = {}
        self._numbers = array("i")
        self._ids = array("q")
        self.extend(keys)

    def extend(self, keys: Iterable[tuple[str, int]]) -> None:
        """Append keys."""
        for partition, message_id in keys:
            at = self._number_of.setdefault(partition, len(self._partitions))
            if at == len(self._partitions):
                self._partitions.append(partition)
            self._numbers.append(at)
            self._ids.append(message_id)

    @property
    def ids(self) -> list[int]:
        """The ids without their partitions; not unique on a server."""
        return self._ids.tolist()

    @overload
    def __getitem__(self, at: int) -> Key: ...
    @overload
    def __getitem__(self, at: slice) -> "Keys": ...
    def __getitem__(self, at: int | slice) -> "Key | Keys":
        if isinstance(at, int):
            return Key(self._partitions[self._numbers[at]], self._ids[at])
        return Keys(self[index] for index in range(*at.indices(len(self))))

    def __len__(self) -> int:
        return len(self._ids)


def by_partition(keys: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Return the ids of each partition, ascending and unique; partitions in order of name."""
    ids: dict[str, set[int]] = {}
    for partition, message_id in keys:
        ids.setdefault(partition, set()).add(message_id)
    return {partition: sorted(ids[partition]) for partition in sorted(ids)}


def conversation_ids(messages: Iterable[StoredMessage]) -> dict[Channel, list[str]]:
    """Return the conversations of messages by partition and instance."""
    ids: dict[Channel, set[str]] = {}
    for message in messages:
        if message.conversation_id is not None:
            channel = message.partition, message.instance
            ids.setdefault(channel, set()).add(message.conversation_id)
    return {channel: sorted(ids[channel]) for channel in sorted(ids)}


def thread_key(partition: str, instance: str, conversation_id: str | None) -> int:
    """Hash the conversation of a message to a number, the same in every process and store."""
    import hashlib  # it loads OpenSSL

    names = (name for name in (partition, instance, conversation_id) if name is not None)
    digest = hashlib.blake2b("\0".join(names).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
