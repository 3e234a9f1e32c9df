"""Open a store's file, migrate its schema, and run its transactions.

Writers take the lock immediately (``BEGIN IMMEDIATE``): a transaction that reads first and takes
the lock later fails if another process has written in between.
"""

import os
import sqlite3
import threading
import time
from abc import ABC
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reservoir_cli.errors import StoreError
from reservoir_cli.settings.paths import file_identity
from reservoir_cli.storage import properties, transactions, unfinished_copy
from reservoir_cli.storage.sqlite import merge_and_vacuum, store_file
from reservoir_cli.storage.sqlite.connection import (
    PRAGMAS,
    Connection,
    connect,
    errors,
    is_busy,
    refuse_old_sqlite,
)
from reservoir_cli.storage.sqlite.store_file import (
    create_file,
    exists,
    path_of,
    refuse_emptied,
    refuse_hard_link,
    refuse_special_files,
    uri_of,
)

#: The number of migrations in ``schema.py``.
SCHEMA_VERSION = 10
#: The application id in the file's header: "Rsvr".
APPLICATION_ID = 0x52737672


class Transactions(transactions.Transactions, ABC):
    """A connection to the file of a store.

    :param patience: seconds to wait while other processes write.
    """

    _connection: Connection

    def __init__(self, location: str, *, create: bool, patience: float) -> None:
        path = path_of(location)
        self.location = str(path)
        self.read_only = self.receiving = False
        self._patience = patience
        self._checked_schema = -1
        self._lock = threading.RLock()
        with errors(self.location):
            self._connection = self._open(path, create)
            self._file = path.absolute()
            self._identity = file_identity(str(self._file))
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _open(self, path: Path, create: bool) -> Connection:
        refuse_old_sqlite()
        if str(path) == ":memory:" or not exists(path):
            if not create or str(path) == ":memory:":
                return connect("file::memory:", self._patience)
            refuse_emptied(path)
            create_file(path)
        refuse_special_files(path)
        refuse_emptied(path)
        refuse_hard_link(path)
        # SQLite keeps files beside the store, so the folder must be writable too.
        if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
            return connect(f"{uri_of(path)}?mode=rw", self._patience)
        self.read_only = True
        connection = connect(f"{uri_of(path)}?mode=ro", self._patience)
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            # SQLite cannot read a WAL file in a read-only folder. Nobody can write to it there, so
            # it can be opened as immutable.
            connection.close()
            connection = connect(f"{uri_of(path)}?immutable=1", self._patience)
        return connection

    def _prepare(self) -> None:
        version = self._known_version()
        for pragma, value in PRAGMAS.items():
            self._set(pragma, value)
        self._refuse_others()
        if version < SCHEMA_VERSION:
            if self.read_only:
                raise StoreError(
                    f"the store has an older schema ({version}) and cannot be written to",
                    hint="make it writable once, so that it can be migrated",
                )
            self._migrate()
        # Reads still work; a write raises an error that names the code.
        self.read_only = self.read_only or store_file.find_code(self._connection) is not None

    def _known_version(self) -> int:
        """Return the schema version; call it in each transaction, as a newer program may change it.

        :raises StoreError: it is newer than this program.
        """
        version: int = self._connection.execute("PRAGMA user_version").fetchone()[0]
        transactions.refuse_newer(version, SCHEMA_VERSION)
        return version

    def _require_same_file(self) -> None:
        """Refuse to write to a file that was deleted or replaced: the write would be lost."""
        if self._identity and file_identity(str(self._file)) != self._identity:
            raise StoreError(
                f"the store {self.location} was removed or replaced while it was in use",
                hint="nothing more was stored; run the command again",
            )
        if self._identity:
            refuse_hard_link(self._file)

    def _refuse_code(self) -> None:
        """Refuse to write if foreign code in the file's schema would run."""
        if code := store_file.find_code(self._connection):
            raise StoreError(
                f"the store {self.location} has {code}, and is not written to",
                hint="drop it if it is yours; else reservoir doctor --salvage FILE makes a store "
                "without it",
            )

    def _refuse_new_code(self) -> None:
        """Refuse code again if the schema has changed since the last check."""
        version = self._connection.execute("PRAGMA schema_version").fetchone()[0]
        if version != self._checked_schema:
            self._refuse_code()
            self._checked_schema = version

    def _refuse_others(self) -> None:
        """Refuse the database of another program; an empty one is accepted."""
        mark = self._connection.execute("PRAGMA application_id").fetchone()[0]
        tables = self._connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        # Read again: another process may have set up the file between the two statements.
        if tables and mark != APPLICATION_ID:
            mark = self._connection.execute("PRAGMA application_id").fetchone()[0]
        if (tables or mark) and mark != APPLICATION_ID:
            raise StoreError(
                f"{self.location} is another program's database",
                hint="give --db the path of a Reservoir store or of a new file",
            )

    def _migrate(self) -> None:
        from reservoir_cli.storage.sqlite.schema import migrate

        migrate(self._connection, SCHEMA_VERSION, APPLICATION_ID, self._refuse_code)
        # This pragma ignores the busy timeout, so retry it until it succeeds.
        deadline = time.monotonic() + self._patience
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def close(self) -> None:
        """Close the file, and finish a deletion that a reader has blocked until now."""
        with suppress(sqlite3.Error):
            if not self.read_only:
                merge_and_vacuum.finish(self._connection, wait=0)
        self._connection.close()

    # Transactions

    @contextmanager
    def write(self, wait: float | None = None, *, durable: bool = True) -> Iterator[None]:
        """See :class:`~reservoir_cli.storage.transactions.Transactions`."""
        with self._lock, errors(self.location):
            if self._connection.in_transaction:
                yield
                return
            self._require_writable()
            patience = self._patience if wait is None else wait
            with self._pragma("synchronous", "FULL" if durable else "NORMAL", "FULL"):
                with self._pragma("busy_timeout", int(patience * 1000), int(self._patience * 1000)):
                    self._connection.execute("BEGIN IMMEDIATE")
                with self._transaction():
                    self._require_same_file()
                    self._known_version()
                    self._refuse_new_code()
                    self._refuse_unfinished()
                    yield
            self._require_same_file()

    @contextmanager
    def _pragma(self, name: str, value: str | int, usual: str | int) -> Iterator[None]:
        """Change a pragma inside the block, if the value differs from the usual one."""
        if value != usual:
            self._set(name, value)
        try:
            yield
        finally:
            if value != usual:
                self._set(name, usual)

    def _set(self, pragma: str, value: str | int) -> None:
        self._connection.execute(f"PRAGMA {pragma} = {value}").fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See :class:`~reservoir_cli.storage.transactions.Transactions`."""
        with self._lock, errors(self.location):
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN")
            with self._transaction():
                self._known_version()
                yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Commit the transaction that was begun, or roll it back after an error."""
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _refuse_unfinished(self) -> None:
        if self.receiving:
            return
        mark = None
        with suppress(sqlite3.DatabaseError):  # a damaged file must stay writable for repair
            mark = properties.get(self._connection, unfinished_copy.UNFINISHED_COPY)
        unfinished_copy.refuse(mark, self.location)

    def _require_writable(self) -> None:
        self._refuse_unfinished()
        if self.read_only:
            self._refuse_code()
            raise StoreError(
                f"the store {self.location} cannot be written to",
                hint="check the permissions of the file and its folder",
            )

    @contextmanager
    def _outside_transaction(self) -> Iterator[None]:
        """Lock the connection for statements that must run outside of transactions."""
        with self._lock, errors(self.location):
            self._require_writable()
            yield
