"""Records of how far the files of other tools were read, so that imports read only what is new."""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from reservoir_cli.messages import Scope, StoredMessage
from reservoir_cli.storage.portable_sql import Condition, Connection, replacing
from reservoir_cli.storage.tables import holdings, reads, writes
from reservoir_cli.storage.transactions import TableAccess, reading, writing

MARKED = "do_not_index"  #: The key in a state for the conversations that must not be stored.
#: The key in a state for a hash of the settings that left out messages of the file.
LEFT_OUT = "left_out"
#: The columns of :class:`reservoir_cli.storage.tables.sources.SourceFile`.
_STATE = "tool, version, size, mtime_ns, head, tail, bytes_read, state, settled"
COLUMNS = f"partition, machine, path, {_STATE}"
#: Insert or replace a row.
PUT = f"""
    INSERT INTO sources ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (partition, machine, path) DO UPDATE SET
    {replacing(_STATE)}
"""
_FEW = 50  #: Up to this number of conversations, only the rows that name one of them are reset.


def parse_state(state: str) -> dict[str, Any] | None:
    """Return a state as an object; ``None`` if it is damaged: its file has to be read again."""
    if not state:
        return {}
    try:
        value = json.loads(state)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("importer", ""), dict | None):
        return None
    marked = value.get(MARKED, [])
    are_ids = isinstance(marked, list) and all(isinstance(each, str) for each in marked)
    return value if are_ids else None


class SourceFile(NamedTuple):
    """A file of another tool, as of its last read.

    :param tool: the importer that read it.
    :param head: a hash of the first bytes that were read, at most 4 KiB.
    :param tail: a hash of the 4 KiB before ``bytes_read``.
    :param state: the importer's state at that offset, as JSON, never the text of a message.
        Empty if the file has to be read from its beginning.
    :param settled: whether none of its messages is held back.
    """

    partition: str
    machine: str
    path: str
    tool: str
    version: int
    size: int
    mtime_ns: int
    head: str = ""
    tail: str = ""
    bytes_read: int = 0
    state: str = ""
    settled: int = 1


class FileRow(NamedTuple):
    """The size and time of a file when it was read."""

    size: int
    mtime_ns: int
    settled: int
    version: int
    left_out: str = ""


class Sources(TableAccess):
    """Read and write the sources of a store."""

    @reading
    def file_states(self, partition: str, machine: str) -> dict[str, dict[str, FileRow]]:
        """Return what is known of the files of each tool, by their path."""
        instr = self._connection.instr
        rows = self._connection.execute(
            "SELECT tool, path, size, mtime_ns, settled, version, "
            f"CASE WHEN {instr}(state, ?) > 0 THEN state ELSE '' END "
            "FROM sources WHERE partition = ? AND machine = ?",
            [f'"{LEFT_OUT}"', partition, machine],
        ).fetchall()
        by_tool: dict[str, dict[str, FileRow]] = {}
        for tool, path, *values in rows:
            by_tool.setdefault(tool, {})[path] = FileRow(*values)
        return by_tool

    @reading
    def get(self, partition: str, machine: str, path: str) -> SourceFile | None:
        """Return the record of a file, if there is one."""
        row = self._connection.execute(
            f"SELECT {COLUMNS} FROM sources WHERE partition = ? AND machine = ? AND path = ?",
            [partition, machine, path],
        ).fetchone()
        return None if row is None else SourceFile(*row)

    @writing
    def put(self, file: SourceFile) -> None:
        """Store the record of a file."""
        self._connection.execute(PUT, file)

    @writing
    def drop(self, partition: str, machine: str, paths: Collection[str]) -> None:
        """Delete the records of files."""
        listed, bound = self._connection.in_list("path", list(paths))
        self._connection.delete(
            "sources", partition, f"machine = ? AND {listed}", [machine, *bound]
        )

    @reading
    def find_stored(
        self, scope: Scope, ids: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], StoredMessage]:
        """Return the messages of a partition and instance by these sources and source ids."""
        numbers = list(writes.find_present(self._connection, scope, ids).values())
        stored = reads.by_id(self._connection, numbers, scope) if numbers else ()
        return {(message.source, message.source_id): message for message in stored}

    @reading
    def conversations(self, scope: Scope, source: str, beginning: str) -> list[str]:
        """Return the newest eight conversations with a message whose source id has a prefix."""
        rows = self._connection.execute(
            "SELECT conversation_id, max(created_at) FROM messages "
            "WHERE partition = ? AND instance = ? AND source = ? "
            "AND source_id BETWEEN ? AND ? AND conversation_id IS NOT NULL "
            "GROUP BY conversation_id ORDER BY 2 DESC, 1 LIMIT 8",
            [scope.partition, scope.instance, source, beginning, f"{beginning}{'f' * 65}"],
        ).fetchall()
        return [row[0] for row in rows]

    @reading
    def find_marked(self, partition: str, machine: str, tool: str) -> list[str]:
        """Return the states of files with a conversation that must not be stored."""
        rows = self._connection.execute(
            "SELECT state FROM sources WHERE partition = ? AND machine = ? AND tool = ? "
            f"AND {self._connection.instr}(state, ?) > 0",
            [partition, machine, tool, f'"{MARKED}"'],
        ).fetchall()
        return [state for (state,) in rows]

    @reading
    def scopes(self, source: str) -> list[Scope]:
        """Return the partitions and instances that have messages of a source."""
        channels = holdings.channels(self._connection)
        return [
            Scope(partition, instance)
            for partition, instance, _ in channels
            if self._connection.execute(
                "SELECT 1 FROM messages WHERE partition = ? AND instance = ? AND source = ? "
                "LIMIT 1",
                [partition, instance, source],
            ).fetchone()
        ]

    @reading
    def find_present(
        self, scopes: Collection[Scope], ids: Sequence[tuple[str, str]]
    ) -> set[tuple[str, str]]:
        """Return the (source, source id) among these that one of the scopes has stored."""
        present = [writes.find_present(self._connection, scope, ids) for scope in scopes]
        return set().union(*present)


def forget(connection: Connection, messages: Iterable[StoredMessage]) -> None:
    """Delete the import states of files that contained deleted messages.

    If such a file grows, it is read from its beginning. An unchanged one is not read, unless
    settings left out messages of it: then the settings are lost with the state.
    """
    has_left_out = f"{connection.instr}(state, ?) > 0"
    ids_by_partition: dict[str, set[str]] = {}
    for message in messages:
        if message.conversation_id:
            ids_by_partition.setdefault(message.partition, set()).add(message.conversation_id)
    for partition, ids in ids_by_partition.items():
        # A state contains the ids of its conversations.
        conditions: list[Condition] = [
            (f"{connection.instr}(state, ?) > 0", [json.dumps(conversation)])
            for conversation in sorted(ids)
        ]
        for condition, values in conditions if len(ids) <= _FEW else [("state <> ''", [])]:
            connection.execute(
                "UPDATE sources SET state = '', head = '', tail = '', bytes_read = 0, "
                f"mtime_ns = CASE WHEN {has_left_out} THEN 0 ELSE mtime_ns END "
                f"WHERE partition = ? AND {condition}",
                [f'"{LEFT_OUT}"', partition, *values],
            )
