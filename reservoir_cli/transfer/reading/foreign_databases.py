"""Read the SQLite databases of other tools, opened read-only.

A small hostile file could take hours to read, so the work is limited by its size.
"""

import hashlib
import json
import shutil
import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeVar

from reservoir_cli.errors import ReservoirError
from reservoir_cli.transfer.reading.checkpoints import restoring
from reservoir_cli.transfer.reading.decompressed_file import File, LockedError, Unreadable
from reservoir_cli.transfer.reading.foreign_values import text
from reservoir_cli.transfer.reading.importer import Checkpoint, Importer, Record, Skipped
from reservoir_cli.util.read_files import LARGEST

#: Errors of a damaged database: its messages may contain bytes that are not text, and a column may
#: have lost its name.
_DAMAGED = (sqlite3.Error, UnicodeError, KeyError)
#: Columns with a longer default are refused: it is stored once, but read in every older row.
_LONGEST_DEFAULT = 1_000
#: The limit of work: steps of SQLite's virtual machine plus bytes read, constant and per byte.
STEPS, STEPS_A_BYTE = 100_000_000, 200
_STEPS_A_QUERY, _TICK = 1_000, 10_000
#: Beginnings of the names of errors of a database that another program has locked, and how long
#: to wait for it, in seconds.
_LOCKED, _PATIENCE = ("SQLITE_BUSY", "SQLITE_LOCKED"), 2.0
_LARGEST_COPY = 4 << 30  # the largest database that is copied to take an unfinished change back
#: The longest value that SQLite reads, even if only its size is asked for.
_LONGEST_VALUE = 4 * LARGEST
_ZSTD = b"\x28\xb5\x2f\xfd"  # how data compressed with zstd begin
#: The number of digests stored per file; conversations are divided into as many groups.
_GROUPS = 1_024

Row = dict[str, Any]
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class DatabaseConversation:
    """A conversation in a database, by its id, and a function that yields its messages.

    :param key: its id, a text; it is skipped without one.
    :param version: values that change with any of its rows: times, counts, lengths.
    """

    key: Any
    version: tuple[Any, ...]
    read: Callable[[], Iterator[Record | Skipped]]


class WorkLimitExceeded(Exception):
    """Reading exceeds the limit of work for the size of the file."""


class ToolDatabase:
    """A database of another tool, with a limit of work; tables and columns may be missing."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, columns: Mapping[str, str]
    ) -> None:
        self.connection = connection
        files = (path, path.with_name(f"{path.name}-wal"))
        size = sum(file.stat().st_size for file in files if file.exists())
        self.steps_left = STEPS + STEPS_A_BYTE * size
        connection.set_progress_handler(self._tick, _TICK)
        self.tables = _tables(connection)
        self._names = {table: names.split() for table, names in columns.items()}
        self._columns: dict[str, str] = {}

    def _tick(self) -> bool:
        self.steps_left -= _TICK
        return self.steps_left < 0

    def has_all_of(self, sets: Iterable[frozenset[str]]) -> bool:
        """Return whether the database has all tables and columns of one of some sets."""
        names = _with_columns(self.connection, self.tables)
        return any(required <= names for required in sets)

    def spend(self, steps: int) -> None:
        """Count work that SQLite's progress handler does not; raise WorkLimitExceeded."""
        self.steps_left -= steps
        if self.steps_left < 0:
            raise WorkLimitExceeded

    def refuse_computed(self, reason: str, hint: str | None = None) -> None:
        """Raise ReservoirError for tables whose rows are computed while they are read.

        They have generated columns or a long default, or are virtual.
        """
        for table in self._names.keys() & self.tables:
            columns = self.connection.execute(f"PRAGMA table_xinfo([{table}])").fetchall()
            [sql] = self.connection.execute(
                "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", [table]
            ).fetchone()
            if str(sql).upper().startswith("CREATE VIRTUAL") or any(
                column["hidden"] or len(column["dflt_value"] or "") > _LONGEST_DEFAULT
                for column in columns
            ):
                raise ReservoirError(f"{reason}: the table {table} is computed", hint=hint)
            names = {str(column["name"]) for column in columns}
            listed = [f"[{column}]" for column in self._names[table] if column in names]
            self._columns[table] = ", ".join(listed) or "NULL"

    def has(self, table: str, column: str) -> bool:
        """Return whether a table has a column that is read."""
        return f"[{column}]" in self._columns.get(table, "").split(", ")

    def rows(self, table: str, key: str, value: Any, order: str) -> list[Row]:
        """Return the rows with a value in ``key``; a ValueError if one is too large to read."""
        if table not in self.tables:
            return []
        # Brackets, because SQLite takes an unknown name in double quotes for a text.
        self.spend(_STEPS_A_QUERY)
        cursor = self.connection.execute(
            f"SELECT {self._columns[table]} FROM [{table}] WHERE [{key}] = ? ORDER BY [{order}]",
            (value,),
        )
        try:
            return [self.count_row(dict(row)) for row in cursor]
        except (sqlite3.DataError, OverflowError):
            raise ValueError(f"larger than {LARGEST >> 20} MB") from None

    def one(self, table: str, key: str, value: Any) -> Row:
        """Return the first row whose column ``key`` has a value; empty if there is none."""
        return next(iter(self.rows(table, key, value, key)), {})

    def count_by_session(self, table: str, columns: Mapping[str, str]) -> dict[Any, list[Any]]:
        """Return the number of rows by session, and sums of numbers or lengths of texts.

        :param columns: ``sum`` or ``length`` by column; missing columns are ignored.
        """
        if table not in self.tables:
            return {}
        listed = self.connection.execute(f"PRAGMA table_info([{table}])")
        present = {str(row["name"]) for row in listed}
        sums = [
            f"sum([{name}])" if measure == "sum" else f"sum({size_in_bytes(f'[{name}]')})"
            for name, measure in columns.items()
            if name in present
        ]
        cursor = self.connection.execute(
            f"SELECT {', '.join(['session_id', 'count(*)', *sums])} FROM [{table}] "
            "GROUP BY session_id"
        )
        return {row[0]: list(row[1:]) for row in cursor}

    def count_row(self, row: Row) -> Row:
        """Count the bytes of a row as work, and return it; an OverflowError if too large."""
        sizes = [len(value) for value in row.values() if isinstance(value, str | bytes)]
        self.spend(sum(sizes))
        if max(sizes, default=0) > LARGEST:
            raise OverflowError
        return row


def read_database(
    file: File, columns: Mapping[str, str], read: Callable[[ToolDatabase], Iterator[Item]]
) -> Iterator[Item | Skipped]:
    """Read the columns of another tool's database, or raise ReservoirError.

    :raises Unreadable: the rest is damaged, or reading it takes too long.
    """
    if file.path is None:
        yield Skipped("the file", "a database in a zip or from stdin: give its path")
        return
    with _open_read_only(file.path) as connection:
        database = None
        if _lacks_log(connection, file.path):
            yield Skipped("its write-ahead log", "SQLite reads it only in a writable folder")
        try:
            database = ToolDatabase(connection, file.path, columns)
            yield from read(database)
        except (*_DAMAGED, WorkLimitExceeded) as error:
            if database and database.steps_left < 0:
                raise Unreadable("reading it takes too long for a file of its size") from None
            name = getattr(error, "sqlite_errorname", type(error).__name__)
            raise Unreadable(f"the database cannot be read: {name}") from None


class DatabaseImporter(Importer):
    """The base class of importers that read databases by conversation; ``columns`` by table."""

    columns: ClassVar[Mapping[str, str]]

    @abstractmethod
    def conversations(self, database: ToolDatabase, name: str) -> Iterator[DatabaseConversation]:
        """Yield all conversations; raise ReservoirError if the database is another program's."""

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield the messages by conversation; ReservoirError for another program's database."""
        return read_database(file, self.columns, partial(self.read_all, file.name))

    def read_all(self, name: str, database: ToolDatabase) -> Iterator[Record | Skipped]:
        """Yield the messages of an open database."""
        for number, conversation in enumerate(self.conversations(database, name), 1):
            yield from _read_or_skip(number, conversation)

    def resume(self, file: File, start: Checkpoint) -> Iterator[Record | Skipped | Checkpoint]:
        """Yield the messages of new or changed conversations; raises errors as :meth:`read`."""

        def read(database: ToolDatabase) -> Iterator[Record | Skipped | Checkpoint]:
            with restoring():
                earlier = dict((start.state or {}).get("read", {}))
            conversations = list(self.conversations(database, file.name))
            digests = _digests(conversations)
            for number, conversation in enumerate(conversations, 1):
                group = _group(conversation)
                is_new = digests[group] != earlier.get(group)
                for item in _read_or_skip(number, conversation) if is_new else ():
                    yield item
                    yield Checkpoint(state=start.state)
            yield Checkpoint(state={"read": digests}, last=True)

        return read_database(file, self.columns, read)


def _read_or_skip(number: int, conversation: DatabaseConversation) -> Iterator[Record | Skipped]:
    if text(conversation.key) is None:
        return iter([Skipped(f"conversation {number}", "no id")])
    return Skipped.if_invalid(f"conversation {conversation.key}", conversation.read())


def size_in_bytes(column: str) -> str:
    """Return the SQL expression for a column's size in bytes, without reading it if possible."""
    has_octet_length = sqlite3.sqlite_version_info >= (3, 43)
    return f"octet_length({column})" if has_octet_length else f"length(CAST({column} AS BLOB))"


def _digests(conversations: list[DatabaseConversation]) -> dict[str, str]:
    versions: dict[str, list[str]] = {}
    for conversation in conversations:
        version = json.dumps([conversation.key, conversation.version], default=str)
        versions.setdefault(_group(conversation), []).append(version)
    return {group: _hash("\n".join(sorted(lines)))[:16] for group, lines in versions.items()}


def _group(conversation: DatabaseConversation) -> str:
    return str(int(_hash(str(conversation.key))[:8], 16) % _GROUPS)


def _hash(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()


def tables_of(path: Path) -> frozenset[str]:
    """Return the tables, and columns as ``table.column``; raise ReservoirError if it is damaged."""
    try:
        with _open_read_only(path) as connection:
            return frozenset(_with_columns(connection, _tables(connection)))
    except _DAMAGED:
        raise _damaged(path) from None


def _damaged(path: Path) -> ReservoirError:
    return ReservoirError(
        f"{path} is a damaged database",
        hint="end the program that writes it, and try again; else restore the file from a backup",
    )


def may_contain(path: Path, words: bytes) -> bool:
    """Return whether a database contains some words; also true if compressed or unreadable."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL TABLE%'"
    try:
        with _open_read_only(path) as connection:
            names = [row["name"] for row in connection.execute(query)]
            if any("]" in name for name in names):  # it cannot be quoted in brackets
                return True
            database = ToolDatabase(connection, path, dict.fromkeys(names, ""))
            database.refuse_computed("not searched")
            connection.text_factory = bytes
            return any(
                isinstance(value, bytes) and (words in value or value.startswith(_ZSTD))
                for name in names
                for row in connection.execute(f"SELECT * FROM [{name}]")
                for value in database.count_row(dict(row)).values()
            )
    except (*_DAMAGED, WorkLimitExceeded, ReservoirError, OSError, OverflowError):
        return True


def _lacks_log(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether a database was opened without its write-ahead log, so rows are missing."""
    log = path.with_name(f"{path.name}-wal")
    if not log.exists() or not log.stat().st_size:
        return False
    [(mode,)] = connection.execute("PRAGMA journal_mode").fetchall()
    return str(mode) != "wal"


def _tables(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    )
    return {str(row["name"]) for row in rows}


def _with_columns(connection: sqlite3.Connection, tables: Iterable[str]) -> set[str]:
    names = set(tables)
    for table in tables:
        if "]" not in table:  # it cannot be quoted in brackets
            with suppress(sqlite3.Error):  # a virtual table of an unknown kind
                columns = connection.execute(f"PRAGMA table_info([{table}])")
                names |= {f"{table}.{column['name']}" for column in columns}
    return names


@contextmanager
def _open_read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database read-only; bytes that are not UTF-8 are replaced.

    Without a log or journal it is opened as immutable first, so that no files are created beside
    it; with a journal, of a program that was killed, a copy is read, which SQLite mends.

    :raises ReservoirError: it is damaged or locked, or a pipe is in place of its journal.
    """
    journal = path.with_name(f"{path.name}-journal")
    is_logged = path.with_name(f"{path.name}-wal").exists()
    if journal.exists() and not journal.is_file():
        raise ReservoirError(f"{journal} is not a regular file", hint="remove it")
    modes = ["mode=ro", "immutable=1"] if is_logged else ["immutable=1", "mode=ro"]
    with ExitStack() as opened:
        if journal.exists():
            modes = ["mode=ro"]
        connection = _first_that_opens(path, modes)
        if connection is None and journal.exists():
            folder = opened.enter_context(TemporaryDirectory(prefix="reservoir-"))
            connection = _first_that_opens(_copy_with_journal(path, journal, folder), ("mode=rw",))
        if connection is None:
            raise _damaged(path)
        yield opened.enter_context(closing(connection))


def _copy_with_journal(path: Path, journal: Path, folder: str) -> Path:
    if path.stat().st_size > _LARGEST_COPY:
        raise ReservoirError(
            f"{path} was left in the middle of a change",
            hint="start the program that writes it, which completes its log, and end it again",
        )
    copy = Path(folder, path.name)
    shutil.copyfile(path, copy)
    shutil.copyfile(journal, copy.with_name(journal.name))
    return copy


def _first_that_opens(path: Path, modes: Iterable[str]) -> sqlite3.Connection | None:
    for mode in modes:
        try:
            uri = f"{path.absolute().as_uri()}?{mode}"
            connection = sqlite3.connect(uri, timeout=_PATIENCE, uri=True)
        except sqlite3.Error:
            continue
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except _DAMAGED as error:
            connection.close()
            if getattr(error, "sqlite_errorname", "").startswith(_LOCKED):
                raise LockedError(
                    f"cannot read {path}: another program has locked it",
                    hint="try again when that program has finished, or end it",
                ) from None
            continue
        return _secure(connection)
    return None


def _secure(connection: sqlite3.Connection) -> sqlite3.Connection:
    # Without octet_length(), SQLite also reads the values whose size is asked for.
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.row_factory = sqlite3.Row
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return connection
