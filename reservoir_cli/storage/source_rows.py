"""Rows of sources: how they are written, moved, and emptied with the messages they speak of."""

import json
from collections.abc import Iterable

from reservoir_cli.messages import StoredMessage
from reservoir_cli.storage.portable_sql import Connection

#: The columns of :class:`reservoir_cli.storage.sources.SourceFile`.
COLUMNS = (
    "partition, machine, path, tool, version, size, mtime_ns, head, tail, bytes_read, "
    "state, settled"
)
#: All rows, in an order that both kinds of store share.
ALL = f"SELECT {COLUMNS} FROM sources ORDER BY partition, machine, path"
#: Write a row, in place of the one before it.
PUT = f"""
    INSERT INTO sources ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (partition, machine, path) DO UPDATE SET
    tool = excluded.tool, version = excluded.version, size = excluded.size,
    mtime_ns = excluded.mtime_ns, head = excluded.head, tail = excluded.tail,
    bytes_read = excluded.bytes_read, state = excluded.state, settled = excluded.settled
"""
#: Copy them to a partition, whose own row of a file stays; the values are the new one and the old.
_COPY = f"""
    INSERT INTO sources ({COLUMNS})
    SELECT ?, machine, path, tool, version, size, mtime_ns, head, tail, bytes_read, state, settled
    FROM sources s WHERE s.partition = ?
    ON CONFLICT (partition, machine, path) DO NOTHING
"""
#: For so many conversations each is looked for by itself.
_FEW = 50


def move(connection: Connection, old: str, new: str) -> None:
    """Let the sources of a partition go on in another."""
    connection.execute(_COPY, [new, old])
    connection.execute("DELETE FROM sources WHERE partition = ?", [old])


def forget(connection: Connection, messages: Iterable[StoredMessage]) -> None:
    """Delete what is known of the contents of files that held deleted messages.

    If such a file grows, it is read from its beginning; unchanged ones are not read.
    """
    talks: dict[str, set[str]] = {}
    for message in messages:
        if message.conversation_id:
            talks.setdefault(message.partition, set()).add(message.conversation_id)
    for partition, numbers in talks.items():
        names = [json.dumps(number) for number in sorted(numbers)]
        # The state names each conversation that it knows something of.
        each = [(f"{connection.instr}(state, ?) > 0", [name]) for name in names]
        for condition, values in each if len(names) <= _FEW else [("state <> ''", [])]:
            connection.execute(
                "UPDATE sources SET state = '', head = '', tail = '', bytes_read = 0 "
                f"WHERE partition = ? AND {condition}",
                [partition, *values],
            )
