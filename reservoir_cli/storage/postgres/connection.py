"""Connect to the server, and report its errors without quoting anything secret.

Only this package loads psycopg, and only for a store at the URL of a server.
"""

import itertools
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from reservoir_cli.errors import ReservoirError, StoreError, StoreLockedError
from reservoir_cli.storage.portable_sql import Condition
from reservoir_cli.storage.postgres import locks
from reservoir_cli.storage.postgres.ids import IdSource

try:
    import psycopg
    from psycopg import conninfo, pq
    from psycopg.adapt import Dumper
except ImportError as missing:  # pragma: no cover - the tests install it
    raise StoreError(
        "a store on a server needs psycopg, which is not installed",
        hint="pip install 'psycopg[binary]'",
    ) from missing

_names = itertools.count()
#: The batch size for reading many rows.
_AT_ONCE = 2_000
#: The expressions that convert a number to bytes, by its type in numpy.
_SEND = {
    "i8": "int8send(({})::int8)",
    "i4": "int4send(({})::int4)",
    "i2": "int2send(({})::int2)",
    "f4": "float4send(({})::float4)",
}
#: The types of columns other than text, by table.
_TYPES = {
    "messages": {
        **dict.fromkeys(("id", "created_at", "thread"), "bigint"),
        **dict.fromkeys(("tokens", "terms"), "int"),
        "asks": "smallint",
    },
    "pending": {"message_id": "bigint"},
    "rebuilding": {"message_id": "bigint"},
    "tags": {"message_id": "bigint"},
    "pins": {"message_id": "bigint", "pinned_at": "bigint"},
    "synapses": {"source_id": "bigint", "target_id": "bigint", "score": "float8"},
    "words": {"message_id": "bigint", "part": "int", "start": "int", "stems": "tsvector"},
    "forgotten": {"mark": "bytea"},
}

#: The OIDs of the types ``real`` and ``real[]``.
_REAL, _REALS = 700, 1021

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The number of attempts to connect while the server restarts, and the seconds before the second.
_TRIES, _PAUSE = 5, 0.1
#: The same if the URL names several servers: about 12 seconds, in which one of them takes over.
_TRIES_OF_SEVERAL = 8
#: Seconds between two attempts while all connections of the server are in use.
_PAUSE_IF_FULL = 0.5
#: Default parameters of URLs: the timeout of an attempt to connect, and the keepalives by which a
#: vanished server is noticed.
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "application_name": "reservoir",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,  # milliseconds
}
#: Parts of messages of libpq and pgbouncer after which another attempt can succeed.
_TEMPORARY = (
    "refused",
    "starting up",
    "shutting down",
    "recovery",
    "session is read-only",
    "closed the connection",
    "reset by peer",
    "login has been failing",
)
#: Parts of messages of a server or a pool that has no connection left.
_FULL = ("too many", "remaining connection slots", "no more connections allowed")
#: Conflicts with another writer: the transaction can be run again. A duplicate key comes from a
#: writer that took no lock; the next attempt uses other ids.
_CONFLICTS = ("40001", "40P01", "23505")
_BUSY = "55P03"
#: The server or a proxy in front of it has closed the connection.
_LOST = ("57P", "08")

#: The message and the hint for an SQLSTATE, by its beginning.
_MEANINGS = {
    "28": ("the server {place} refused the user or the password", "check the URL, or ~/.pgpass"),
    "3D000": ("there is no database {place}", "create it with createdb"),
    "25006": ("the store {place} cannot be written to", "the server or the user is read-only"),
    "42501": ("the user may not do this in the store {place}", "ask the owner of the database"),
    "23514": (
        "a time or a number is out of range",
        "check the time of the message",
    ),
    "53100": ("the disk of the server is full", "make room, then run the command again"),
    "53300": ("the server {place} has too many connections", "try again later, or use a pool"),
    "57014": (
        "the server {place} ended a statement that took too long",
        "raise its statement_timeout, or that of the user or the database",
    ),
    "25P03": (
        "the server {place} ended a transaction that was idle for too long",
        "raise its idle_in_transaction_session_timeout, or that of the user or the database",
    ),
    "25P04": (
        "the server {place} ended a transaction that took too long",
        "raise its transaction_timeout, or that of the user or the database",
    ),
    "57P": ("the server {place} was stopped or is starting", "run the command again"),
    "08": ("lost the connection to the server {place}", "run the command again"),
    "XX001": ("the store {place} is corrupt", "restore it from a backup"),
    "42P01": ("the store {place} has lost a table", "restore it from a backup"),
}


@dataclass(frozen=True, slots=True)
class FloatArray:
    """Numbers to send as a binary ``real[]``, which is many times faster than text."""

    numbers: "NDArray[np.float32]"


class _FloatArrayDumper(Dumper):
    format = pq.Format.BINARY
    oid = _REALS

    def dump(self, obj: FloatArray) -> bytes:
        import numpy as np

        # One dimension, no nulls, the type of the elements, their number, the first index; then
        # each number after its length.
        elements = np.empty(len(obj.numbers), [("length", ">i4"), ("number", ">f4")])
        elements["length"], elements["number"] = 4, obj.numbers
        return struct.pack(">5i", 1, 0, _REAL, len(elements), 1) + elements.tobytes()


class Connection:
    """See :class:`reservoir_cli.storage.portable_sql.Connection`.

    :param server: psycopg's connection.
    :param ids: generates the ids of this writer.
    """

    ordered_join = "JOIN"
    instr = "strpos"
    message_key = "partition, message_id"
    key_of_message = "m.partition, m.id"
    vector_tables: tuple[str, ...] = ("embeddings",)

    def __init__(self, server: "psycopg.Connection[Any]", ids: "IdSource") -> None:
        self.server = server
        self.ids = ids
        server.adapters.register_dumper(FloatArray, _FloatArrayDumper)

    def execute(
        self, sql: str, values: Any = (), /, *, binary: bool = False
    ) -> "psycopg.Cursor[Any]":
        """Run a statement with ``?`` or ``%s`` for each value."""
        return self.server.execute(_translate(sql), values or None, binary=binary)

    def rows(self, sql: str, values: Sequence[Any] = (), /) -> list[Any]:
        """Return all rows of a query."""
        return self.execute(sql, values).fetchall()

    def number(self, sql: str, values: Sequence[Any] = (), /) -> int:
        """Return the single number of a query's result, 0 for null or no row."""
        row = self.execute(sql, values).fetchone()
        return int(row[0] or 0) if row else 0

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run a statement for each row."""
        with self.server.cursor() as cursor:
            cursor.executemany(_translate(sql), rows)

    def stream(self, sql: str, values: Sequence[Any], /) -> Iterator[Any]:
        """Yield the rows of a query, a few thousand at a time."""
        with self.server.cursor(f"reservoir_{next(_names)}") as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(_translate(sql), values)
            yield from cursor

    def numbers(self, column: str, rest: str, values: Sequence[Any], /) -> Sequence[int]:
        """Return an integer column without nulls."""
        ids: Sequence[int] = self.arrays({"ids": (column, "i8")}, rest, values)["ids"].tolist()
        return ids

    def arrays(
        self,
        columns: Mapping[str, tuple[str, str]],
        rest: str,
        values: Sequence[Any],
        before: str = "",
    ) -> "dict[str, NDArray[Any]]":
        """Return columns of numbers as arrays of one length, far faster than rows.

        The server joins all numbers to one binary value.

        :param columns: by name, an expression that is never null, and its numpy type (``i8``).
        :param rest: the SQL after ``SELECT columns``.
        :param values: the values of the whole statement, in order.
        :param before: the SQL before ``SELECT``.
        """
        import numpy as np

        packed = " || ".join(_SEND[form].format(sql) for sql, form in columns.values())
        sql = f"{before} SELECT string_agg({packed}, ''::bytea) {rest}"
        row = self.execute(sql, values, binary=True).fetchone()
        form = np.dtype([(name, f">{form}") for name, (_, form) in columns.items()])
        joined = np.frombuffer((row and row[0]) or b"", form)
        # Contiguous arrays in this machine's byte order.
        return {name: joined[name].astype(form[name].newbyteorder("=")) for name in columns}

    def with_vectors(self, sql: str, values: Sequence[Any], /) -> Iterator[Any]:
        """Yield rows whose last column is a vector."""
        import numpy as np

        for *row, vector in self.execute(sql, values, binary=True):
            # The header has two numbers of 16 bits.
            yield *row, np.frombuffer(vector, ">f4", offset=4).astype(np.float32)

    def insert(
        self, table: str, columns: str, rows: Iterable[Sequence[Any]], *, ignore: bool = False
    ) -> None:
        """Insert rows in one statement."""
        names = columns.split(", ")
        arrays = list(map(list, zip(*rows, strict=True))) or [[] for _ in names]
        types = _TYPES.get(table, {})
        typed = ", ".join(f"?::{types.get(name, 'text')}[]" for name in names)
        conflict = "ON CONFLICT DO NOTHING" if ignore else ""
        self.execute(
            f"INSERT INTO {table} ({columns}) SELECT * FROM unnest({typed}) {conflict}", arrays
        )

    def in_list(self, column: str, values: Sequence[Any]) -> Condition:
        """Return the condition that a column has one of these values."""
        cast = "::bigint[]" if values and isinstance(values[0], int) else ""
        return f"{column} = ANY(?{cast})", [list(values)]

    def in_partition(self, alias: str, partition: str | None) -> Condition:
        """Return the condition that restricts a table to a partition, if one is given."""
        return ("true", []) if partition is None else (f"{alias}.partition = ?", [partition])

    def of_message(self, alias: str, messages: str = "m") -> str:
        """Return the condition that joins a derived table to the messages."""
        return f"{alias}.partition = {messages}.partition AND {alias}.message_id = {messages}.id"

    def index_hint(self, _index: str | None) -> str:
        """Return nothing: the server's planner has statistics and needs no hint."""
        return ""

    def null_safe(self, column: str) -> str:
        """Return the condition that a column equals a value, null being equal to null."""
        return f"{column} IS NOT DISTINCT FROM ?"

    def octets(self, column: str) -> str:
        """Return the expression for the length of a text column in bytes."""
        return f"octet_length({column})"

    def lock(self, partitions: Iterable[str] | None, /) -> None:
        """Take the write locks of these partitions until the transaction ends."""
        try:
            if partitions is None:
                locks.lock_everything(self)
            else:
                locks.lock_partitions(self, partitions)
        except psycopg.errors.QueryCanceled:  # by the server's statement_timeout
            raise _locked() from None

    def new_ids(self, partition: str, table: str = "messages") -> Iterator[int]:
        """Yield ids for new rows of a partition; call it inside a write transaction."""
        return self.ids.take(self, partition, table)


def _translate(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


class ConflictError(StoreLockedError):
    """The transaction conflicted with another writer's, was rolled back, and can be run again."""


class ConnectionLostError(StoreError):
    """The connection was lost; the transaction is rolled back and can be run again."""


class UncertainCommitError(StoreError):
    """The connection was lost during a commit, so that the write may be stored or not."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"lost the connection to the server {place} while it stored a write, "
            "which may be stored or not",
            hint="check whether it was stored (reservoir view), and run the command again if not",
        )


def place_of(url: str) -> str:
    """Return the URL of a store without its password and parameters.

    :raises StoreError: it is not a valid URL of a server.
    """
    try:
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        # Not libpq's message, which quotes the URL.
        raise StoreError(
            "the URL of the store is not valid",
            hint="it has the form postgresql://USER@HOST:PORT/DATABASE",
        ) from None
    if any("@" in host[1:] for host in str(parts.get("host") or "").split(",")):
        # For libpq the password ends at the first @, so the rest of it would be printed.
        raise StoreError(
            "the URL of the store is not valid: it has more than one @",
            hint="write an @ of the password as %40",
        )
    user = f"{quote(str(parts['user']))}@" if parts.get("user") else ""
    database = f"/{quote(str(parts['dbname']))}" if parts.get("dbname") else ""
    return f"postgresql://{user}{_hosts(parts)}{database}"


def _hosts(parts: Mapping[str, Any]) -> str:
    """Return the servers of a URL, each with its port; a single port applies to all."""
    hosts = quote(str(parts.get("host") or ""), safe="/,.:[]").split(",")
    ports = str(parts.get("port") or "").split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    return ",".join(
        f"{host}:{port}" if port else host for host, port in zip(hosts, ports, strict=False)
    )


def connect(
    url: str, place: str, *, patience: float = 0, options: str = ""
) -> "psycopg.Connection[Any]":
    """Connect to a server, waiting for one that is just starting or has no connection left.

    :param patience: seconds to wait for a connection while all are in use.
    :param options: command-line options for the server, added to those of the URL.
    :raises StoreError: the server cannot be reached, or refuses the connection.
    """
    # Override the encoding of PGCLIENTENCODING, the URL and the database.
    parts = {**_DEFAULTS, **conninfo.conninfo_to_dict(url), "client_encoding": "UTF8"}
    if options:
        parts["options"] = f"{parts.get('options') or ''} {options}".strip()
    deadline = time.monotonic() + patience
    pauses = _pauses(_TRIES_OF_SEVERAL if "," in str(parts.get("host")) else _TRIES)
    while True:
        try:
            return psycopg.connect(
                conninfo.make_conninfo(**parts),
                autocommit=True,
                # Prepared statements do not work with every connection pool.
                prepare_threshold=None,
            )
        except psycopg.OperationalError as error:
            if _contains(error, _FULL):
                pause = min(_PAUSE_IF_FULL, deadline - time.monotonic())
            else:
                pause = next(pauses, 0) if _contains(error, _TEMPORARY) else 0
            if pause <= 0:
                raise _unreachable(error, place) from None
            time.sleep(pause)


def _pauses(tries: int) -> Iterator[float]:
    """Yield the seconds to wait between attempts to connect."""
    return (_PAUSE * 2**attempt for attempt in range(tries - 1))


def _contains(error: psycopg.OperationalError, signs: Iterable[str]) -> bool:
    text = str(error)
    return any(sign in text for sign in signs)


def _unreachable(error: psycopg.OperationalError, place: str) -> StoreError:
    """Return our error for a failed attempt to connect."""
    text = str(error)
    for sign, state in (
        *((sign, "53300") for sign in _FULL),
        ("password", "28"),
        ("authentication", "28"),
        ("pg_hba", "28"),
        ("role ", "28"),
        ("does not exist", "3D000"),
        ("starting up", "57P"),
        ("shutting down", "57P"),
        ("login has been failing", "57P"),
        ("session is read-only", "25006"),
    ):
        if sign in text:
            message, hint = _MEANINGS[state]
            return StoreError(message.format(place=place), hint=hint)
    for sign, reason in (
        ("refused", "nothing listens there"),
        ("timeout", "it does not answer"),
        ("resolve", "there is no such host"),
        ("translate", "there is no such host"),
        ("invalid port", "its port is not valid"),
        ("SSL", "TLS failed"),
        ("certificate", "TLS failed"),
        ("No such file", "nothing listens there"),
    ):
        if sign in text:
            return StoreError(
                f"cannot reach the server {place}: {reason}",
                hint="check the URL, and that the server runs",
            )
    return StoreError(f"cannot reach the server {place}", hint="check the URL of the store")


@contextmanager
def errors(place: str) -> Iterator[None]:
    """Translate the server's errors to ours, which never contain message text."""
    try:
        yield
    except psycopg.Error as error:
        # Without its cause, in which the server quotes the values of a row.
        raise _translate_error(error, place) from None


def _locked() -> StoreLockedError:
    return StoreLockedError(
        "the store is locked by another process", hint="try again when it has finished"
    )


def _translate_error(error: psycopg.Error, place: str) -> ReservoirError:
    lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    state = error.sqlstate or ("08" if lost else "")
    if state in _CONFLICTS:
        return ConflictError(
            "another process changed the same data at the same time", hint="run the command again"
        )
    if state == _BUSY:
        return _locked()
    for beginning, (message, hint) in _MEANINGS.items():
        if state.startswith(beginning):
            kind = ConnectionLostError if beginning in _LOST else StoreError
            return kind(message.format(place=place), hint=hint)
    name = f"{type(error).__name__} {state}".strip()
    return StoreError(f"the store {place} failed: {name}")
