"""Reaching the server, and saying what went wrong without quoting anything that is secret.

psycopg is loaded here, and only for a store that is named by the URL of a server.
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
#: How many rows are read at a time where there may be very many.
_AT_ONCE = 2_000
#: How the server writes a number as bytes, by its type for numpy.
_SEND = {
    "i8": "int8send(({})::int8)",
    "i4": "int4send(({})::int4)",
    "i2": "int2send(({})::int2)",
    "f4": "float4send(({})::float4)",
}
#: The types of columns that are no text, by their table.
_FORMS = {
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

#: The types ``real`` and ``real[]`` by the server's numbers.
_REAL, _REALS = 700, 1021

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Tries to connect while the server starts or restarts, and the seconds before the second one.
_TRIES, _PAUSE = 5, 0.1
#: Tries if the URL names several servers: until one of them takes over, about 12 seconds.
_TRIES_OF_SEVERAL = 8
#: Parts of every URL unless it says otherwise: seconds that a try to connect may take, and after
#: which a server that vanished without a word is given up.
_USUAL: dict[str, Any] = {
    "connect_timeout": 10,
    "application_name": "reservoir",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,  # milliseconds
}
#: What libpq and pgbouncer say if another try may succeed.
_PASSING = (
    "refused",
    "starting up",
    "shutting down",
    "recovery",
    "session is read-only",
    "closed the connection",
    "reset by peer",
    "login has been failing",
)
#: The server ends a transaction so that another can go on; it can be run again.
#: A key that is there already came from a writer whom no lock kept away: of ids others are taken.
_CONFLICTS = ("40001", "40P01", "23505")
_BUSY = ("55P03", "57014")
#: The server or something before it ended the connection.
_LOST = ("57P", "08")

#: What the state of an error means, by how it begins: a message and a hint.
_MEANINGS = {
    "28": ("the server {place} refused the user or the password", "check the URL, or ~/.pgpass"),
    "3D000": ("there is no database {place}", "createdb makes one"),
    "25006": ("the store {place} cannot be written to", "the server or the user is read-only"),
    "42501": ("the user may not do this in the store {place}", "ask the owner of the database"),
    "23514": (
        "a time or a number is outside of what a store holds",
        "check the time of the message",
    ),
    "53100": ("the disk of the server is full", "make room, then run the command again"),
    "53300": ("the server {place} has too many connections", "try again, or use a pool"),
    "57P": ("the server {place} was stopped or starts just now", "run the command again"),
    "08": ("lost the connection to the server {place}", "run the command again"),
    "XX001": ("the store {place} is corrupt", "restore it from a backup"),
    "42P01": ("the store {place} has lost a table", "restore it from a backup"),
}


@dataclass(frozen=True, slots=True)
class FloatArray:
    """Numbers that are sent as ``real[]`` in binary: many times faster than as text."""

    numbers: "NDArray[np.float32]"


class _FloatArrayDumper(Dumper):
    format = pq.Format.BINARY
    oid = _REALS

    def dump(self, obj: FloatArray) -> bytes:
        import numpy as np

        # One dimension, no nulls, the type of an element, their number, the first index; and
        # each number behind its length.
        elements = np.empty(len(obj.numbers), [("length", ">i4"), ("number", ">f4")])
        elements["length"], elements["number"] = 4, obj.numbers
        return struct.pack(">5i", 1, 0, _REAL, len(elements), 1) + elements.tobytes()


class Connection:
    """See :class:`reservoir_cli.storage.portable_sql.Connection`.

    :param server: the connection that psycopg gives.
    :param ids: makes the ids of this writer.
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
        return self.server.execute(_translated(sql), values or None, binary=binary)

    def rows(self, sql: str, values: Sequence[Any] = (), /) -> list[Any]:
        """Return all rows of a query."""
        return self.execute(sql, values).fetchall()

    def number(self, sql: str, values: Sequence[Any] = (), /) -> int:
        """Return the one number that a query gives, 0 for none."""
        row = self.execute(sql, values).fetchone()
        return int(row[0] or 0) if row else 0

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run a statement for each row."""
        with self.server.cursor() as cursor:
            cursor.executemany(_translated(sql), rows)

    def stream(self, sql: str, values: Sequence[Any], /) -> Iterator[Any]:
        """Yield the rows of a query, a few thousand at a time."""
        with self.server.cursor(f"reservoir_{next(_names)}") as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(_translated(sql), values)
            yield from cursor

    def numbers(self, column: str, rest: str, values: Sequence[Any], /) -> Sequence[int]:
        """Return a column of integers that are not null."""
        ids: Sequence[int] = self.arrays({"ids": (column, "i8")}, rest, values)["ids"].tolist()
        return ids

    def arrays(
        self,
        columns: Mapping[str, tuple[str, str]],
        rest: str,
        values: Sequence[Any],
        before: str = "",
    ) -> "dict[str, NDArray[Any]]":
        """Return columns of numbers as arrays of one length: far faster than rows of them.

        The server joins them to one long value.

        :param columns: by name the expression, never null, and its type for numpy, such as ``i8``.
        :param rest: what follows on SELECT and its columns.
        :param values: for all of the statement, in its order.
        :param before: what stands before SELECT.
        """
        import numpy as np

        packed = " || ".join(_SEND[form].format(each) for each, form in columns.values())
        sql = f"{before} SELECT string_agg({packed}, ''::bytea) {rest}"
        row = self.execute(sql, values, binary=True).fetchone()
        form = np.dtype([(name, f">{form}") for name, (_, form) in columns.items()])
        joined = np.frombuffer((row and row[0]) or b"", form)
        # Each for itself, in the byte order of this machine.
        return {name: joined[name].astype(form[name].newbyteorder("=")) for name in columns}

    def with_vectors(self, sql: str, values: Sequence[Any], /) -> Iterator[Any]:
        """Yield rows whose last column is a vector."""
        import numpy as np

        for *row, vector in self.execute(sql, values, binary=True):
            # Two numbers of head, then its parts.
            yield *row, np.frombuffer(vector, ">f4", offset=4).astype(np.float32)

    def insert(
        self, table: str, columns: str, rows: Iterable[Sequence[Any]], *, ignore: bool = False
    ) -> None:
        """Insert rows, in one statement."""
        names = columns.split(", ")
        arrays = list(map(list, zip(*rows, strict=True))) or [[] for _ in names]
        types = _FORMS.get(table, {})
        forms = ", ".join(f"?::{types.get(name, 'text')}[]" for name in names)
        conflict = "ON CONFLICT DO NOTHING" if ignore else ""
        self.execute(
            f"INSERT INTO {table} ({columns}) SELECT * FROM unnest({forms}) {conflict}", arrays
        )

    def in_list(self, column: str, values: Sequence[Any]) -> Condition:
        """Return the condition that a column has one of some values."""
        form = "::bigint[]" if values and isinstance(values[0], int) else ""
        return f"{column} = ANY(?{form})", [list(values)]

    def in_partition(self, alias: str, partition: str | None) -> Condition:
        """Return the condition that keeps a table inside a partition, if one is named."""
        return ("true", []) if partition is None else (f"{alias}.partition = ?", [partition])

    def of_message(self, alias: str, messages: str = "m") -> str:
        """Return the condition that joins a derived table to one of messages."""
        return f"{alias}.partition = {messages}.partition AND {alias}.message_id = {messages}.id"

    def index_hint(self, _index: str | None) -> str:
        """Return nothing: the server's planner knows how many rows there are."""
        return ""

    def null_safe(self, column: str) -> str:
        """Return a comparison by which null equals null."""
        return f"{column} IS NOT DISTINCT FROM ?"

    def octets(self, column: str) -> str:
        """Return the expression for the bytes of a text column."""
        return f"octet_length({column})"

    def lock(self, partitions: Iterable[str] | None, /) -> None:
        """Take the write locks of these partitions until the transaction ends."""
        if partitions is None:
            locks.everything(self)
        else:
            locks.partitions(self, partitions)

    def new_ids(self, partition: str, table: str = "messages") -> Iterator[int]:
        """Yield ids for rows of a partition; call it inside a write transaction."""
        return self.ids.take(self, partition, table)


def _translated(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


class ConflictError(StoreLockedError):
    """Two writers stood in each other's way, and the server chose this one to begin again."""


class ConnectionLostError(StoreError):
    """The connection was lost; the transaction is rolled back and can be run again."""


class UncertainCommitError(StoreError):
    """The connection was lost during a commit; nobody knows whether it happened."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"lost the connection to the server {place} while it stored a write, "
            "which may be stored or not",
            hint="see whether it is there (reservoir view), and run the command again if not",
        )


def place_of(url: str) -> str:
    """Return the URL of a store without its password and parameters.

    :raises StoreError: it is no URL of a server.
    """
    try:
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        # Not what libpq says of it: that quotes the URL.
        raise StoreError(
            "the URL of the store is not valid",
            hint="it has the form postgresql://USER@HOST:PORT/DATABASE",
        ) from None
    if any("@" in host[1:] for host in str(parts.get("host") or "").split(",")):
        # libpq takes the first @ for the end of the password: its rest would be printed.
        raise StoreError(
            "the URL of the store is not valid: it has more than one @",
            hint="write an @ of the password as %40",
        )
    user = f"{quote(str(parts['user']))}@" if parts.get("user") else ""
    database = f"/{quote(str(parts['dbname']))}" if parts.get("dbname") else ""
    return f"postgresql://{user}{_hosts(parts)}{database}"


def _hosts(parts: Mapping[str, Any]) -> str:
    """Return the servers of a URL, each with its port: one port may be that of all."""
    hosts = quote(str(parts.get("host") or ""), safe="/,.:[]").split(",")
    ports = str(parts.get("port") or "").split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    return ",".join(
        f"{host}:{port}" if port else host for host, port in zip(hosts, ports, strict=False)
    )


def connect(url: str, place: str) -> "psycopg.Connection[Any]":
    """Connect; a server that starts just now is waited for.

    :raises StoreError: it cannot be reached, or refuses.
    """
    # Whatever PGCLIENTENCODING or the URL says, and in a database of any encoding.
    parts = {**_USUAL, **conninfo.conninfo_to_dict(url), "client_encoding": "UTF8"}
    tries = _TRIES_OF_SEVERAL if "," in str(parts.get("host")) else _TRIES
    for left in reversed(range(tries)):
        try:
            return psycopg.connect(
                conninfo.make_conninfo(**parts),
                autocommit=True,
                # Statements are not kept on the server, so that a pool may stand in between.
                prepare_threshold=None,
            )
        except psycopg.OperationalError as error:
            if not left or not _may_come(error):
                raise _unreachable(error, place) from None
            time.sleep(_PAUSE * 2 ** (tries - 1 - left))
    raise AssertionError("the last try returns or raises")


def _may_come(error: psycopg.OperationalError) -> bool:
    said = str(error)
    return any(sign in said for sign in _PASSING)


def _unreachable(error: psycopg.OperationalError, place: str) -> StoreError:
    said = str(error)
    for sign, state in (
        ("password", "28"),
        ("authentication", "28"),
        ("pg_hba", "28"),
        ("role ", "28"),
        ("does not exist", "3D000"),
        ("too many", "53300"),
        ("starting up", "57P"),
        ("shutting down", "57P"),
        ("login has been failing", "57P"),
        ("session is read-only", "25006"),
    ):
        if sign in said:
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
        if sign in said:
            return StoreError(
                f"cannot reach the server {place}: {reason}",
                hint="check the URL, and that the server runs",
            )
    return StoreError(f"cannot reach the server {place}", hint="check the URL of the store")


@contextmanager
def errors(place: str) -> Iterator[None]:
    """Turn what the server says into an error of ours; it never contains message text."""
    try:
        yield
    except psycopg.Error as error:
        # Without its cause: the server quotes the values of a row.
        raise meaning_of(error, place) from None


def meaning_of(error: psycopg.Error, place: str) -> ReservoirError:
    """Translate an error of the server."""
    lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    state = error.sqlstate or ("08" if lost else "")
    if state in _CONFLICTS:
        return ConflictError(
            "another process wrote the same at the same time", hint="run the command again"
        )
    if state in _BUSY:
        return StoreLockedError(
            "the store is locked by another process", hint="try again when it has finished"
        )
    for beginning, (message, hint) in _MEANINGS.items():
        if state.startswith(beginning):
            kind = ConnectionLostError if beginning in _LOST else StoreError
            return kind(message.format(place=place), hint=hint)
    name = f"{type(error).__name__} {state}".strip()
    return StoreError(f"the store {place} failed: {name}")
