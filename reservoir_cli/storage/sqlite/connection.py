"""Connect to an SQLite file: pragmas, errors, and the dialect of portable statements."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count
from typing import Any

from reservoir_cli.errors import ReservoirError, StoreCorruptError, StoreError, StoreLockedError
from reservoir_cli.storage.portable_sql import Condition, placeholders
from reservoir_cli.storage.transactions import closed_error

#: The oldest SQLite that has all we use. The newest of that are the limit of 32,766 bound values
#: (3.32), ``trusted_schema`` (3.31), aggregates with ``FILTER`` (3.30) and FTS5's
#: ``remove_diacritics 2`` (3.27).
_OLDEST = (3, 32)
_MOST_VALUES = 5_000  #: The most values bound in one statement; SQLite's limit is 32,766.
_PERMISSIONS = "check the permissions of the file and its folder"
#: The error and the hint for each of SQLite's primary result codes.
_FAULTS = {
    sqlite3.SQLITE_NOTADB: (
        "{location} is not a database",
        "give --db the path of a Reservoir store; if it was one, restore it from a backup",
    ),
    sqlite3.SQLITE_CORRUPT: ("the store {location} is corrupt", StoreCorruptError.WAY_OUT),
    sqlite3.SQLITE_READONLY: ("the store {location} cannot be written to", _PERMISSIONS),
    sqlite3.SQLITE_CANTOPEN: ("cannot open the store {location}", _PERMISSIONS),
    sqlite3.SQLITE_FULL: (
        "the disk is full: the store {location} has no room",
        "make room, then run the command again",
    ),
    sqlite3.SQLITE_IOERR: (
        "the disk failed under the store {location}: {name}",
        "check the disk, the room on it and your quota, then run the command again",
    ),
}

#: Set on every connection before the store is used.
PRAGMAS = {
    "secure_delete": "ON",
    "synchronous": "FULL",
    # By default, words are sorted and looked up in a temporary file.
    "temp_store": "MEMORY",
    # Never run code in the schema: the file may come from anywhere.
    "trusted_schema": "OFF",
}


@contextmanager
def errors(location: str) -> Iterator[None]:
    """Translate SQLite's errors to ours, which never contain message text."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translate(error, location) from error


def _translate(error: sqlite3.Error, location: str) -> ReservoirError:
    if is_busy(error):
        return StoreLockedError(
            "the store is locked by another process", hint="try again when it has finished"
        )
    if "closed database" in str(error):  # Python's own error has no code
        return closed_error(location)
    code = primary_code(error)
    if isinstance(error, sqlite3.OperationalError) and not hasattr(error, "sqlite_errorcode"):
        code = sqlite3.SQLITE_CORRUPT  # raised by Python: a text is not valid UTF-8
    # Not the error's own text, which may quote a query or a message.
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if code in _FAULTS:
        corrupt = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
        kind = StoreCorruptError if corrupt else StoreError
        return kind(*(part.format(location=location, name=name) for part in _FAULTS[code]))
    return StoreError(f"the store {location} failed: {name}", hint="reservoir doctor")


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether an error means that another process holds a lock."""
    return primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's result code without what extends it; 0 for an error of Python's."""
    return int(getattr(error, "sqlite_errorcode", 0) & 0xFF)


def refuse_old_sqlite() -> None:
    """Refuse a version of SQLite that would fail later, with a syntax error."""
    if sqlite3.sqlite_version_info < _OLDEST:
        needed = ".".join(map(str, _OLDEST))
        raise StoreError(
            f"this Python has SQLite {sqlite3.sqlite_version}; Reservoir needs {needed} or later",
            hint="install Reservoir with a Python that has a newer SQLite, such as uv's",
        )


def connect(uri: str, patience: float) -> "Connection":
    """Connect to a file."""
    return sqlite3.connect(
        uri,
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=False,
        factory=Connection,
    )


class Connection(sqlite3.Connection):
    """See :class:`reservoir_cli.storage.portable_sql.Connection`."""

    ordered_join = "CROSS JOIN"
    instr = "instr"
    vectors, vectors_embedded, vectors_key, vectors_at_once = "blocks", "SUM(embedded)", "id", 16

    def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:
        try:
            return super().execute(sql, values)
        except UnicodeDecodeError as error:
            # Of a damaged schema: SQLite's message has a name that Python cannot decode.
            corrupt = sqlite3.DatabaseError("malformed database schema")
            corrupt.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            corrupt.sqlite_errorname = "SQLITE_CORRUPT"
            raise corrupt from error

    def stream(self, sql: str, values: Sequence[Any], /) -> Iterator[Any]:
        return self.execute(sql, values)

    def numbers(self, column: str, rest: str, values: Sequence[Any], /) -> list[int]:
        return [row[0] for row in self.execute(f"SELECT {column} {rest}", values)]

    def insert(
        self, table: str, columns: str, rows: Iterable[Sequence[Any]], *, ignore: bool = False
    ) -> None:
        names = columns.split(", ")
        # Not INSERT OR IGNORE, which would also skip rows that break another constraint.
        conflict = "ON CONFLICT DO NOTHING" if ignore else ""
        self.executemany(
            f"INSERT INTO {table} ({columns}) VALUES ({placeholders(names)}) {conflict}", rows
        )

    def together(self) -> AbstractContextManager[object]:
        return nullcontext()

    def delete(
        self, table: str, partition: str, condition: str = "true", values: Sequence[Any] = (), /
    ) -> None:
        # Without the hint SQLite would scan the partition.
        hint = self.index_hint(None) if table == "messages" else ""
        self.execute(
            f"DELETE FROM {table} {hint} WHERE partition = ? AND {condition}", [partition, *values]
        )

    def in_list(self, column: str, values: Sequence[Any]) -> Condition:
        """Return the condition that a column has one of these values.

        The last value is repeated up to a power of two, so that there are few different statements:
        a connection keeps the last 128 of them, and those with many values are large.
        """
        if len(values) <= _MOST_VALUES:
            size = 1 << (len(values) - 1).bit_length() if values else 0
            padded = [*values, *list(values[-1:]) * (size - len(values))]
            return f"{column} IN ({placeholders(padded)})", padded
        return f"{column} IN (SELECT value FROM json_each(?))", [json.dumps(list(values))]

    def index_hint(self, index: str | None) -> str:
        return f"INDEXED BY {index}" if index else "NOT INDEXED"

    def null_safe(self, column: str) -> str:
        return f"{column} IS ?"

    def octets(self, column: str) -> str:
        return f"LENGTH(CAST({column} AS BLOB))"

    def lock(self, _partitions: Iterable[str] | None, /) -> None:
        """Do nothing: every write transaction locks the whole file."""

    def new_ids(self, _partition: str, table: str = "messages") -> Iterator[int]:
        last_used = "SELECT seq FROM sqlite_sequence WHERE name = 'messages'"
        row = self.execute(
            last_used if table == "messages" else f"SELECT MAX(id) FROM {table}"
        ).fetchone()
        return count((row[0] or 0 if row else 0) + 1)
