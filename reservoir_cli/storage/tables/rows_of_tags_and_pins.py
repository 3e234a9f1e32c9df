"""Read, write and move the rows of tags and pins."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from reservoir_cli.messages import Message, StoredMessage, check_name, from_epoch_ms, to_epoch_ms
from reservoir_cli.storage.keys import by_partition
from reservoir_cli.storage.portable_sql import Condition, Connection, batches, decoding, of_message
from reservoir_cli.storage.schema import OF_MESSAGES

Tag = tuple[str, int, str]  #: Partition, message id, name.
Pin = tuple[str, int, int]  #: Partition, message id, milliseconds since 1970.

TABLES = ("tags", "pins")


def add_tags(connection: Connection, tags: Iterable[Tag]) -> None:
    """Store tags, except those already stored."""
    connection.insert("tags", "partition, message_id, name", tags, ignore=True)


def add_pins(connection: Connection, pins: Iterable[Pin]) -> None:
    """Store pins, except on messages that have one."""
    connection.insert("pins", "partition, message_id, pinned_at", pins, ignore=True)


def add(
    connection: Connection, stored: StoredMessage | None, message: Message
) -> StoredMessage | None:
    """Store the tags and the pin of a new message, and return the message with them."""
    if stored is None or not (message.tags or message.pinned_at):
        return stored
    names = sorted({check_name(name) for name in message.tags})
    add_tags(connection, [(*stored.key, name) for name in names])
    at = to_epoch_ms(message.pinned_at) if message.pinned_at else None
    add_pins(connection, [] if at is None else [(*stored.key, at)])
    return _with_marks(stored, names, at)


def read(connection: Connection, partition: str, ids: Sequence[int]) -> tuple[list[Tag], list[Pin]]:
    """Return the tags and pins of messages, ascending."""
    listed, bound = connection.in_list("message_id", ids)
    rows = connection.execute(
        f"""
        SELECT message_id, name, NULL FROM tags WHERE partition = ? AND {listed}
        UNION ALL
        SELECT message_id, NULL, pinned_at FROM pins WHERE partition = ? AND {listed}
        """,
        [partition, *bound, partition, *bound],
    ).fetchall()
    with decoding("tags and pins"):
        tags = sorted(
            (partition, message_id, name) for message_id, name, _ in rows if name is not None
        )
        pins = sorted((partition, message_id, at) for message_id, _, at in rows if at is not None)
    return tags, pins


def attach(connection: Connection, messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Return messages with their tags and pins."""
    names: dict[tuple[str, int], list[str]] = {}
    moments: dict[tuple[str, int], int] = {}
    for partition, ids in by_partition(
        (message.partition, message.id) for message in messages
    ).items():
        for batch in batches(ids):
            tags, pins = read(connection, partition, batch)
            for _, message_id, name in tags:
                names.setdefault((partition, message_id), []).append(name)
            moments |= {(partition, message_id): at for _, message_id, at in pins}
    if not names and not moments:
        return list(messages)
    return [
        _with_marks(message, names.get(message.key, []), moments.get(message.key))
        if message.key in names or message.key in moments
        else message
        for message in messages
    ]


def _with_marks(message: StoredMessage, names: list[str], at: int | None) -> StoredMessage:
    with decoding("tags and pins"):
        moment = None if at is None else from_epoch_ms(at)
        return replace(message, tags=tuple(map(str, names)), pinned_at=moment)


def copy(connection: Connection, old: str, new: str, new_ids: Mapping[int, int]) -> None:
    """Copy the tags and pins of messages to messages of another partition."""
    for batch in batches(list(new_ids)):
        tags, pins = read(connection, old, batch)
        add_tags(connection, [(new, new_ids[message_id], name) for _, message_id, name in tags])
        add_pins(connection, [(new, new_ids[message_id], at) for _, message_id, at in pins])


def where_in(
    table: str, partition: str | None, condition: str = "true", values: Sequence[str] = ()
) -> Condition:
    """Return the condition that ``messages m`` have a row in a table that meets a condition."""
    if partition is None:  # ids are not unique on a server
        join = f"SELECT 1 FROM {table} t WHERE {of_message('t')} AND {condition}"
        return f"EXISTS ({join})", list(values)
    chosen = f"SELECT t.message_id FROM {table} t WHERE t.partition = ? AND {condition}"
    return f"m.id IN ({chosen})", [partition, *values]


def _orphans(table: str) -> str:
    return f"FROM {table} WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE {of_message(table)})"


def count_orphans(connection: Connection) -> int:
    """Count the tags and pins of messages that do not exist."""
    counts = [
        connection.execute(f"SELECT COUNT(*) {_orphans(table)}").fetchone()[0] for table in TABLES
    ]
    return sum(counts)


def remove_orphans(connection: Connection) -> None:
    """Delete the rows of messages that do not exist."""
    for table in OF_MESSAGES:
        connection.execute(f"DELETE {_orphans(table)}")
