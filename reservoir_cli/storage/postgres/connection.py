"""Connect to the server, and run statements that serve both databases."""

import itertools
import json
import logging
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from reservoir_cli.errors import StoreError
from reservoir_cli.storage.portable_sql import Condition, batches, placeholders
from reservoir_cli.storage.postgres import locks
from reservoir_cli.storage.postgres.ids import IdSource
from reservoir_cli.storage.postgres.server_errors import FULL, locked_error, unreachable_error
from reservoir_cli.storage.postgres.tables import REPLICATED, SCHEMA
from reservoir_cli.storage.schema import TABLES
from reservoir_cli.util import timeouts
from reservoir_cli.util.installation import install_hint

try:
    import psycopg
    from psycopg import conninfo, pq
    from psycopg.adapt import Dumper
except ImportError as missing:  # pragma: no cover - the tests install it
    raise StoreError(
        "a store on a server needs the extra postgres", hint=install_hint("postgres")
    ) from missing

# Without a handler, psycopg would print its warnings beside our errors for the same.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_names = itertools.count()
_AT_ONCE = 2_000  #: The batch size for reading many rows.
#: The expressions that convert a number to bytes, by its type in numpy.
_SEND = {
    "i8": "int8send(({})::int8)",
    "i4": "int4send(({})::int4)",
    "i2": "int2send(({})::int2)",
    "f4": "float4send(({})::float4)",
}
_MOST_VALUES = 65_535  #: The number of values that one statement can have.
_REAL, _REALS = 700, 1021  #: The OIDs of the types ``real`` and ``real[]``.

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    :param last: the last statement and its values.
    :param locked: the partitions that the open transaction has locked.
    :param may_delete: whether the user may delete rows; a member calls a function of the owner.
    """

    ordered_join = "JOIN"
    instr = "strpos"
    vectors, vectors_embedded = "embeddings", "COUNT(*) FILTER (WHERE passage = 0)"
    vectors_key, vectors_at_once = "partition, message_id", 2_000

    def __init__(self, server: "psycopg.Connection[Any]", ids: "IdSource") -> None:
        self.server = server
        self.ids = ids
        self.may_delete = True
        self.last: tuple[bytes, Any] = (b"", None)
        self.locked: set[str] = set()
        server.adapters.register_dumper(FloatArray, _FloatArrayDumper)

    def execute(
        self, sql: str, values: Any = (), /, *, binary: bool = False
    ) -> "psycopg.Cursor[Any]":
        """Run a statement with ``?`` or ``%s`` for each value."""
        self.last = _translate(sql), values or None
        return self.server.execute(*self.last, binary=binary)

    def rows(self, sql: str, values: Sequence[Any] = (), /) -> list[Any]:
        """Return all rows of a query."""
        return self.execute(sql, values).fetchall()

    def number(self, sql: str, values: Sequence[Any] = (), /) -> int:
        """Return the single number of a query's result, 0 for null or no row."""
        row = self.execute(sql, values).fetchone()
        return int(row[0] or 0) if row else 0

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        values = list(rows)
        if values:
            self.last = _translate(sql), values[0]
            with self.server.cursor() as cursor:
                cursor.executemany(self.last[0], values)

    def stream(self, sql: str, values: Sequence[Any], /) -> Iterator[Any]:
        """Yield the rows of a query, a few thousand at a time."""
        with self.server.cursor(f"reservoir_{next(_names)}") as cursor:
            cursor.itersize = _AT_ONCE
            # With the values in the text, from which a cluster finds the machine of a partition.
            text = psycopg.ClientCursor(self.server).mogrify(_translate(sql), values)
            self.last = text.encode(), None
            cursor.execute(self.last[0])
            yield from cursor

    def numbers(self, column: str, rest: str, values: Sequence[Any], /) -> Sequence[int]:
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
        """Insert rows in as few statements as possible.

        Not from a query: a cluster would use COPY, which row security refuses.
        """
        rows = list(rows)
        if table in REPLICATED and not self.may_delete:
            self._add_shared(table, rows)
            return
        names = columns.split(", ")
        row = f"({placeholders(names)})"
        conflict = "ON CONFLICT DO NOTHING" if ignore else ""
        for batch in batches(rows, _MOST_VALUES // len(names)):
            values = ", ".join([row] * len(batch))
            self.execute(
                f"INSERT INTO {table} ({columns}) VALUES {values} {conflict}",
                list(chain.from_iterable(batch)),
            )

    def _add_shared(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows to a table that all members share, as the owner: a property or tombstones."""
        for key, *value in rows if table == "properties" else []:
            self.execute(f"SELECT {SCHEMA}.add_shared(?, ?, ?)", [table, [key], *value])
        if marks := [mark.hex() for mark, *_ in rows if table == "tombstones"]:
            self.execute(f"SELECT {SCHEMA}.add_shared(?, ?, NULL)", [table, marks])

    def together(self) -> AbstractContextManager[object]:
        return self.server.pipeline()

    def delete(
        self, table: str, partition: str, condition: str = "true", values: Sequence[Any] = (), /
    ) -> None:
        rows = f"FROM {table} WHERE partition = ? AND {condition}", [partition, *values]
        if self.may_delete:
            self.execute(f"DELETE {rows[0]}", rows[1])
            return
        key = TABLES[table].key.removeprefix("partition, ")
        if keys := self.rows(f"SELECT {key} {rows[0]}", rows[1]):
            arguments = [partition, table, json.dumps(keys)]
            self.execute(f"SELECT {SCHEMA}.delete_rows(?, ?, ?::json)", arguments)

    def in_list(self, column: str, values: Sequence[Any]) -> Condition:
        cast = "::bigint[]" if values and isinstance(values[0], int) else ""
        return f"{column} = ANY(?{cast})", [list(values)]

    def index_hint(self, _index: str | None) -> str:
        """Return nothing: the server's planner has statistics and needs no hint."""
        return ""

    def null_safe(self, column: str) -> str:
        return f"{column} IS NOT DISTINCT FROM ?"

    def octets(self, column: str) -> str:
        return f"octet_length({column})"

    def lock(self, partitions: Iterable[str] | None, /) -> None:
        try:
            if partitions is None:
                locks.lock_everything(self)
            else:
                new = set(partitions) - self.locked
                locks.lock_partitions(self, new)
                self.locked |= new
        except psycopg.errors.QueryCanceled:  # by the server's statement_timeout
            raise locked_error() from None

    def new_ids(self, partition: str, table: str = "messages") -> Iterator[int]:
        return self.ids.take(self, partition, table)


def _translate(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def location_of(url: str) -> str:
    """Return the URL of a store without its password and parameters."""
    try:
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        # Not libpq's message, which quotes the URL.
        raise StoreError(
            "the URL of the store is not valid",
            hint="it has the form postgresql://USER@HOST:PORT/DATABASE",
        ) from None
    except UnicodeDecodeError:
        # Not its text either, which contains the password.
        raise StoreError(
            "the URL of the store is not valid: an escape such as %FC is not UTF-8",
            hint="write a letter outside of ASCII as its UTF-8 bytes, ü as %C3%BC",
        ) from None
    if any("@" in host[1:] for host in str(parts.get("host") or "").split(",")):
        # For libpq the password ends at the first @, so the rest of it would be printed.
        raise StoreError(
            "the URL of the store is not valid: it has more than one @",
            hint="write an @ of the password as %40",
        )
    if "@" in url.partition("://")[2].partition("/")[2].partition("?")[0]:
        # For libpq the first slash ends the host, so the password would be sent to a name server.
        raise StoreError(
            "the URL of the store is not valid: it has a / before the @",
            hint="write a / of the password as %2F, and an @ of the database's name as %40",
        )
    user = f"{quote(str(parts['user']))}@" if parts.get("user") else ""
    database = f"/{quote(str(parts['dbname']))}" if parts.get("dbname") else ""
    return f"postgresql://{user}{_hosts(parts)}{database}"


def _hosts(parts: Mapping[str, Any]) -> str:
    hosts = quote(str(parts.get("host") or ""), safe="/,.:[]").split(",")
    ports = str(parts.get("port") or "").split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    return ",".join(
        f"{host}:{port}" if port else host for host, port in zip(hosts, ports, strict=False)
    )


def connect(
    url: str, location: str, *, patience: float, options: str = ""
) -> "psycopg.Connection[Any]":
    """Connect to a server, waiting for one that is just starting or has no connection left."""
    # Override the encoding of PGCLIENTENCODING, the URL and the database.
    parts = {**_DEFAULTS, **conninfo.conninfo_to_dict(url), "client_encoding": "UTF8"}
    if options:
        parts["options"] = f"{parts.get('options') or ''} {options}".strip()
    deadline = time.monotonic() + patience
    several = "," in str(parts.get("host"))
    tries = timeouts.TRIES_OF_SEVERAL if several else timeouts.TRIES_OF_ONE
    pauses = (timeouts.RESTART * 2**attempt for attempt in range(tries - 1))
    while True:
        try:
            return psycopg.connect(
                conninfo.make_conninfo(**parts),
                autocommit=True,
                # Prepared statements do not work with every connection pool.
                prepare_threshold=None,
            )
        except psycopg.OperationalError as error:
            if _contains(error, FULL):
                pause = timeouts.NO_CONNECTION_LEFT
            else:
                pause = next(pauses, 0) if _contains(error, _TEMPORARY) else 0
            remaining = deadline - time.monotonic()
            if pause <= 0 or remaining <= 0:
                raise unreachable_error(error, location) from None
            time.sleep(min(pause, remaining))


def _contains(error: psycopg.OperationalError, signs: Iterable[str]) -> bool:
    text = str(error)
    return any(sign in text for sign in signs)
