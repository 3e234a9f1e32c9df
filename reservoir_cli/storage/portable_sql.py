"""The connection's interface that lets one SQL statement serve both databases."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from reservoir_cli.errors import StoreCorruptError
from reservoir_cli.messages import Scope

if TYPE_CHECKING:
    from numpy.typing import NDArray

Value = TypeVar("Value")
Condition = tuple[str, list[Any]]  #: A condition, and the values of its placeholders.

NO_LIMIT = 2**62  #: The ``LIMIT`` that returns all rows.
AT_ONCE = 5_000  #: The batch size for operations on many rows.
#: The exceptions that decoding a damaged value can raise.
UNDECODABLE = (ValueError, TypeError, AttributeError, OverflowError)


class Cursor(Protocol):
    """The rows of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of changed rows."""

    @property
    def description(self) -> Any:
        """The columns, each a sequence that begins with its name."""

    def fetchone(self) -> Any:
        """Return the next row, or ``None``."""

    def fetchall(self) -> list[Any]:
        """Return all remaining rows."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection to a database, with the SQL in which the two dialects differ."""

    ordered_join: str  #: A join that makes the planner read the left table first.
    instr: str  #: The function that returns the position of one text in another, counted from 1.
    #: The table of vectors, the number of messages that have any, the columns of its key without
    #: the model, and how many rows of it are deleted in one transaction.
    vectors: str
    vectors_embedded: str
    vectors_key: str
    vectors_at_once: int

    def execute(self, sql: str, values: Any = (), /) -> Cursor:
        """Run a statement."""

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Run a statement for each row."""

    def stream(self, sql: str, values: Sequence[Any], /) -> Iterator[Any]:
        """Yield the rows of a query without holding all of them in memory."""

    def numbers(self, column: str, rest: str, values: Sequence[Any], /) -> Sequence[int]:
        """Return an integer column without nulls; ``rest`` is the SQL after ``SELECT column``."""

    def insert(
        self, table: str, columns: str, rows: Iterable[Sequence[Any]], *, ignore: bool = False
    ) -> None:
        """Insert rows; ``ignore`` skips those whose key already exists."""

    def together(self) -> AbstractContextManager[object]:
        """Return a context in which statements without results are sent in one round trip."""

    def delete(
        self, table: str, partition: str, condition: str = "true", values: Sequence[Any] = (), /
    ) -> None:
        """Delete the rows of a partition that meet a condition."""

    def in_list(self, column: str, values: Sequence[Any]) -> Condition:
        """Return the condition that a column has one of these values."""

    def index_hint(self, index: str | None) -> str:
        """Return the planner hint to use an index; ``None`` for the primary key."""

    def null_safe(self, column: str) -> str:
        """Return the condition that a column equals a value, null being equal to null."""

    def octets(self, column: str) -> str:
        """Return the expression for the length of a text column in bytes."""

    def lock(self, partitions: Iterable[str] | None, /) -> None:
        """Take the write locks of these partitions until the transaction ends; ``None``: of all."""

    def new_ids(self, partition: str, table: str = "messages") -> Iterator[int]:
        """Yield ids for new rows of a partition; call it inside a write transaction."""


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Report values that cannot be decoded as corruption of the store.

    Wrap nothing but the decoding: a programming error inside would be reported as corruption.
    """
    try:
        yield
    except UNDECODABLE as error:
        raise StoreCorruptError(
            f"the store is corrupt: {what} cannot be read", hint=StoreCorruptError.WAY_OUT
        ) from error


def of_message(alias: str, messages: str = "m") -> str:
    """Return the condition that joins a table of messages' rows to the messages."""
    return f"{alias}.partition = {messages}.partition AND {alias}.message_id = {messages}.id"


def select_messages(
    connection: Connection, columns: str, partition: str, ids: Sequence[int]
) -> list[Any]:
    """Return columns of the messages of a partition with these ids, as far as they exist."""
    listed, bound = connection.in_list("id", ids)
    hint = connection.index_hint(None)  # else SQLite scans the partition
    sql = f"SELECT {columns} FROM messages {hint} WHERE partition = ? AND {listed}"
    return connection.execute(sql, [partition, *bound]).fetchall()


def select_by_source(
    connection: Connection, scope: Scope, source: str, ids: Sequence[str]
) -> dict[str, int]:
    """Return the messages of a partition and instance with these source ids, by source id."""
    listed, bound = connection.in_list("source_id", ids)
    rows = connection.execute(
        "SELECT source_id, id FROM messages "
        f"WHERE partition = ? AND instance = ? AND source = ? AND {listed}",
        [scope.partition, scope.instance, source, *bound],
    )
    return dict(rows.fetchall())


def copy_rows(
    connection: Connection, table: str, columns: str, old: Scope, new: Sequence[str | None]
) -> None:
    """Copy the rows of a scope to another, unless it has one with the same key.

    :param columns: all of the table, those of a scope first.
    """
    where, values = where_scope(old, "t")
    names = ", ".join(columns.split(", ")[len(new) :])
    rows = connection.execute(f"SELECT {names} FROM {table} t WHERE {where}", values).fetchall()
    connection.insert(table, columns, [(*new, *row) for row in rows], ignore=True)


def placeholders(values: Sequence[object]) -> str:
    """Return a placeholder for each value."""
    return ", ".join("?" * len(values))


def replacing(columns: str) -> str:
    """Return the assignments by which an inserted row replaces columns of a stored one."""
    return ", ".join(f"{name} = excluded.{name}" for name in columns.split(", "))


def pack(vector: "NDArray[Any]") -> bytes:
    """Return a vector as float32, little-endian."""
    return vector.astype("<f4", copy=False).tobytes()


def batches(values: Sequence[Value], size: int = AT_ONCE) -> Iterator[Sequence[Value]]:
    """Split values into batches."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def where_scope(scope: Scope, table: str = "m") -> Condition:
    """Return the condition that restricts a table to a scope."""
    if scope.partition is None:
        return "true", []
    if scope.instance is None:
        return f"{table}.partition = ?", [scope.partition]
    return f"{table}.partition = ? AND {table}.instance = ?", [scope.partition, scope.instance]


def where_thread(conversation_id: str | None) -> Condition:
    """Return the condition that selects one thread of a partition and instance."""
    if conversation_id is None:
        return "m.conversation_id IS NULL", []
    return "m.conversation_id = ?", [conversation_id]
