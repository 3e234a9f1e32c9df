"""What a statement needs of a connection so that it is written once for both databases.

Statements have ``?`` in place of a value. Where the two databases differ in a word, the
connection supplies it. In a file, only messages and conversations have a column ``partition``:
ids of messages are unique there, and derived tables refer to them.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from reservoir_cli.errors import StoreCorruptError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Value = TypeVar("Value")
#: A condition, and the values that stand for its ``?``.
Condition = tuple[str, list[Any]]

#: As many rows as there are, where a statement limits them.
NO_LIMIT = 2**62
#: How many rows are worked on at once where there may be very many.
AT_ONCE = 5_000
#: What Python raises when it decodes a value that no row of ours holds.
UNDECODABLE = (ValueError, TypeError, AttributeError, OverflowError)


class Cursor(Protocol):
    """The rows of a statement."""

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""

    @property
    def description(self) -> Any:
        """The columns, each a sequence that begins with its name."""

    def fetchone(self) -> Any:
        """Return the next row, or ``None``."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection to a database, and the words in which the two kinds differ."""

    #: A join that reads the left table first, where the planner would not.
    ordered_join: str
    #: The function that finds a text in another, 1 for its beginning.
    instr: str
    #: The columns that name a message in a derived table, and those of ``messages m``.
    message_key: str
    key_of_message: str
    #: The tables that hold vectors.
    vector_tables: tuple[str, ...]

    def execute(self, sql: str, values: Any = (), /) -> Cursor:
        """Run a statement."""

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Run a statement for each row."""

    def stream(self, sql: str, values: Sequence[Any], /) -> Iterator[Any]:
        """Yield the rows of a query without keeping all of them in memory."""

    def numbers(self, column: str, rest: str, values: Sequence[Any], /) -> Sequence[int]:
        """Return a column of integers that are not null.

        :param rest: what follows ``SELECT column``.
        """

    def with_vectors(self, sql: str, values: Sequence[Any], /) -> Iterator[Any]:
        """Yield the rows of a query whose last column is a vector, as a float32 array."""

    def insert(
        self, table: str, columns: str, rows: Iterable[Sequence[Any]], *, ignore: bool = False
    ) -> None:
        """Insert rows.

        :param columns: their names with commas between. ``partition`` may be among them for any
            table.
        :param ignore: leave out rows whose key is already there.
        """

    def in_list(self, column: str, values: Sequence[Any]) -> Condition:
        """Return the condition that a column has one of some values."""

    def in_partition(self, alias: str, partition: str | None) -> Condition:
        """Return the condition that keeps a derived table inside a partition, if one is named."""

    def of_message(self, alias: str, messages: str = "m") -> str:
        """Return the condition that joins a derived table to one of messages."""

    def index_hint(self, index: str | None) -> str:
        """Return what tells the planner to use an index; ``None`` for the primary key."""

    def null_safe(self, column: str) -> str:
        """Return a comparison of a column with a value by which null equals null."""

    def octets(self, column: str) -> str:
        """Return the expression for the bytes of a text column."""

    def lock(self, partitions: Iterable[str] | None, /) -> None:
        """Take the write locks of these partitions until the transaction ends; ``None``: of all."""

    def new_ids(self, partition: str, table: str = "messages") -> Iterator[int]:
        """Yield ids for rows of a partition; call it inside a write transaction."""


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Report values of rows that cannot be decoded as damage of the store.

    Put nothing but the decoding inside: a fault of our own would be called damage, too.

    :param what: the values, in the plural.
    :raises StoreCorruptError: they cannot be decoded.
    """
    try:
        yield
    except UNDECODABLE as error:
        raise StoreCorruptError(
            f"the store is corrupt: {what} cannot be read", hint=StoreCorruptError.WAY_OUT
        ) from error


def placeholders(values: Sequence[object]) -> str:
    """Return a placeholder for each value."""
    return ", ".join("?" * len(values))


def pack(vector: "NDArray[Any]") -> bytes:
    """Return a vector as float32, little-endian."""
    return vector.astype("<f4", copy=False).tobytes()


def batches(values: Sequence[Value], size: int = AT_ONCE) -> Iterator[Sequence[Value]]:
    """Split values into batches."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
