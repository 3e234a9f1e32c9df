"""SQL statements that write, move and reset rows of sources."""

import json
from collections.abc import Iterable

from reservoir_cli.messages import StoredMessage
from reservoir_cli.storage.portable_sql import Condition, Connection

#: The columns of :class:`reservoir_cli.storage.sources.SourceFile`.
COLUMNS = (
    "partition, machine, path, tool, version, size, mtime_ns, head, tail, bytes_read, "
    "state, settled"
)
#: Select all rows, in an order that both kinds of store share.
ALL = f"SELECT {COLUMNS} FROM sources ORDER BY partition, machine, path"
#: Insert or replace a row.
PUT = f"""
    INSERT INTO sources ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (partition, machine, path) DO UPDATE SET
    tool = excluded.tool, version = excluded.version, size = excluded.size,
    mtime_ns = excluded.mtime_ns, head = excluded.head, tail = excluded.tail,
    bytes_read = excluded.bytes_read, state = excluded.state, settled = excluded.settled
"""
#: Copy rows to another partition, without replacing its own; the values are the new partition and
#: the old one.
_COPY = f"""
    INSERT INTO sources ({COLUMNS})
    SELECT ?, machine, path, tool, version, size, mtime_ns, head, tail, bytes_read, state, settled
    FROM sources s WHERE s.partition = ?
    ON CONFLICT (partition, machine, path) DO NOTHING
"""
#: Up to this number of conversations, only the rows that name one of them are reset.
_FEW = 50


def move(connection: Connection, old: str, new: str) -> None:
    """Move the sources of a partition to another."""
    connection.execute(_COPY, [new, old])
    connection.execute("DELETE FROM sources WHERE partition = ?", [old])


def forget(connection: Connection, messages: Iterable[StoredMessage]) -> None:
    """Delete the import states of files that contained deleted messages.

    If such a file grows, it is read from its beginning; an unchanged one is not read.
    """
    conversations: dict[str, set[str]] = {}
    for message in messages:
        if message.conversation_id:
            conversations.setdefault(message.partition, set()).add(message.conversation_id)
    for partition, ids in conversations.items():
        # A state contains the ids of its conversations.
        conditions: list[Condition] = [
            (f"{connection.instr}(state, ?) > 0", [json.dumps(conversation)])
            for conversation in sorted(ids)
        ]
        for condition, values in conditions if len(ids) <= _FEW else [("state <> ''", [])]:
            connection.execute(
                "UPDATE sources SET state = '', head = '', tail = '', bytes_read = 0 "
                f"WHERE partition = ? AND {condition}",
                [partition, *values],
            )
