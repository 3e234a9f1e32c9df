"""How far the files of other tools were read, so that only what is new is read again."""

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from reservoir_cli.messages import Scope, StoredMessage
from reservoir_cli.storage import conversations, reads, writes
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.source_rows import COLUMNS, PUT

#: The key of a state under which conversations stand that are not to be stored.
MARKED = "do_not_index"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of another tool, as it was when it was read last.

    :param machine: the name of the computer that it lies on.
    :param tool: the importer that read it.
    :param version: of the importer.
    :param head: a hash of its first bytes, of as many as were read and at most 4 KiB.
    :param tail: a hash of the 4 KiB before ``bytes_read``.
    :param bytes_read: from where it is read on.
    :param state: what the importer has to know of those bytes, as JSON; never the text of a
        message. Empty if the file has to be read from its beginning.
    :param settled: nothing of it is held back.
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


class Sources:
    """The sources of a store, on its connection."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._connection = store._connection

    def seen(self, partition: str, machine: str, tool: str) -> dict[str, tuple[int, int, int]]:
        """Return (size, mtime_ns, settled) of the files of a tool, by their path."""
        with self._store.snapshot():
            rows = self._connection.execute(
                "SELECT path, size, mtime_ns, settled FROM sources "
                "WHERE partition = ? AND machine = ? AND tool = ?",
                [partition, machine, tool],
            ).fetchall()
        return {path: (size, mtime_ns, settled) for path, size, mtime_ns, settled in rows}

    def get(self, partition: str, machine: str, path: str) -> SourceFile | None:
        """Return what is known of a file."""
        with self._store.snapshot():
            row = self._connection.execute(
                f"SELECT {COLUMNS} FROM sources WHERE partition = ? AND machine = ? AND path = ?",
                [partition, machine, path],
            ).fetchone()
        return None if row is None else SourceFile(*row)

    def put(self, file: SourceFile) -> None:
        """Store how far a file was read."""
        with self._store.write():
            self._connection.execute(PUT, astuple(file))

    def drop(self, partition: str, machine: str, paths: Iterable[str]) -> None:
        """Delete what is known of files."""
        with self._store.write():
            self._connection.executemany(
                "DELETE FROM sources WHERE partition = ? AND machine = ? AND path = ?",
                [(partition, machine, path) for path in paths],
            )

    def stored(self, scope: Scope, source: str, ids: Sequence[str]) -> dict[str, StoredMessage]:
        """Return the messages of a place that have these source ids."""
        listed, bound = self._connection.in_list("source_id", ids)
        with self._store.snapshot():
            rows = self._connection.execute(
                "SELECT source_id, id FROM messages "
                f"WHERE partition = ? AND instance = ? AND source = ? AND {listed}",
                [scope.partition, scope.instance, source, *bound],
            ).fetchall()
            messages = {
                message.id: message
                for message in reads.by_id(self._connection, [row[1] for row in rows], scope)
            }
        return {own: messages[number] for own, number in rows}

    def conversations(self, scope: Scope, source: str, beginning: str) -> list[str]:
        """Return the conversations with messages of a place whose source id begins so.

        The newest come first, and few are enough.

        :param beginning: hexadecimal digits, as are those behind it.
        """
        with self._store.snapshot():
            rows = self._connection.execute(
                "SELECT conversation_id, max(created_at) FROM messages "
                "WHERE partition = ? AND instance = ? AND source = ? "
                "AND source_id BETWEEN ? AND ? AND conversation_id IS NOT NULL "
                "GROUP BY conversation_id ORDER BY 2 DESC, 1 LIMIT 8",
                [scope.partition, scope.instance, source, beginning, f"{beginning}{'f' * 65}"],
            ).fetchall()
        return [row[0] for row in rows]

    def marked(self, partition: str, machine: str, tool: str) -> list[str]:
        """Return the states of files with a conversation that is not to be stored."""
        with self._store.snapshot():
            rows = self._connection.execute(
                "SELECT state FROM sources WHERE partition = ? AND machine = ? AND tool = ? "
                f"AND {self._connection.instr}(state, ?) > 0",
                [partition, machine, tool, f'"{MARKED}"'],
            ).fetchall()
        return [state for (state,) in rows]

    def places(self, source: str) -> list[Scope]:
        """Return the partitions and instances that have messages of a source."""
        with self._store.snapshot():
            places = conversations.places(self._connection)
            return [
                Scope(partition, instance)
                for partition, instance, _ in places
                if self._connection.execute(
                    "SELECT 1 FROM messages WHERE partition = ? AND instance = ? AND source = ? "
                    "LIMIT 1",
                    [partition, instance, source],
                ).fetchone()
            ]

    def present(
        self, places: Iterable[Scope], ids: Sequence[tuple[str, str]]
    ) -> set[tuple[str, str]]:
        """Return those of some (source, source id) that one of these places has."""
        with self._store.snapshot():
            known = [writes.present(self._connection, place, ids) for place in places]
        return set().union(*known)
