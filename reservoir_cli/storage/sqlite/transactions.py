"""The connection to a store's file, and its transactions.

Writers take the lock immediately (``BEGIN IMMEDIATE``): a transaction that reads first and takes
the lock later fails if another process has written in between.
"""

import sqlite3
import threading
from abc import ABC
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from reservoir_cli.errors import StoreError
from reservoir_cli.settings.paths import file_identity
from reservoir_cli.storage import properties, transactions
from reservoir_cli.storage.sqlite import store_file
from reservoir_cli.storage.sqlite.care import erase_deleted_text
from reservoir_cli.storage.sqlite.connection import Connection, errors
from reservoir_cli.storage.sqlite.store_file import (
    check_and_migrate,
    known_version,
    open_file,
    path_of,
    refuse_hard_link,
)


class Transactions(transactions.Transactions, ABC):
    """A connection to the file of a store."""

    _connection: Connection
    _writes = 0  #: How often a write transaction has begun or ended.

    def __init__(self, location: str, *, create: bool, patience: float) -> None:
        path = path_of(location)
        self.location = str(path)
        self.receiving = False
        self._patience = patience
        self._checked_schema = -1
        self._lock = threading.RLock()
        with errors(self.location):
            self._connection, self.read_only = open_file(path, create, patience)
            self._file = path.absolute()
            self._identity = file_identity(str(self._file))
            self.missing = not create and self._identity is None
            try:
                check_and_migrate(self._connection, self.location, self.read_only, patience)
                # Reads still work; a write raises an error that names the code.
                self.read_only = (
                    self.read_only or store_file.find_code(self._connection) is not None
                )
            except BaseException:
                self._connection.close()
                raise

    def _require_same_file(self) -> None:
        """Refuse to write to a file that was deleted or replaced: the write would be lost."""
        if self._identity and file_identity(str(self._file)) != self._identity:
            raise StoreError(
                f"the store {self.location} was removed or replaced while it was in use",
                hint="nothing more was stored; run the command again",
            )
        if self._identity:
            refuse_hard_link(self._file)

    def close(self) -> None:
        """Close the file after the transactions of other threads, and finish a deletion."""
        with self._lock:
            with suppress(sqlite3.Error):
                if not self.read_only and properties.get(self._connection, properties.UNFINISHED):
                    erase_deleted_text.finish(self._connection, wait=0)
            self._connection.close()

    @contextmanager
    def write(self, wait: float | None = None, *, durable: bool = True) -> Iterator[None]:
        patience = self._patience if wait is None else wait
        with self._reserve(patience) as left, errors(self.location):
            if self._connection.in_transaction:
                self._require_write_transaction()
                yield
                return
            self._require_writable()
            with self._pragma("synchronous", "FULL" if durable else "NORMAL", "FULL"):
                with self._pragma("busy_timeout", int(left * 1000), int(self._patience * 1000)):
                    self._connection.execute("BEGIN IMMEDIATE")
                with self._transaction(writes=True):
                    self._require_same_file()
                    known_version(self._connection)
                    schema = self._connection.execute("PRAGMA schema_version").fetchone()[0]
                    if schema != self._checked_schema:
                        store_file.refuse_code(self._connection, self.location)
                        self._checked_schema = schema
                    self._refuse_unfinished()
                    yield
                    if self.missing:  # an empty store in memory
                        raise StoreError(
                            f"there is no store at {self.location}",
                            hint="reservoir ingest creates it",
                        )
            self._require_same_file()

    @contextmanager
    def _pragma(self, name: str, value: str | int, usual: str | int) -> Iterator[None]:
        if value == usual:
            yield
            return
        self._connection.execute(f"PRAGMA {name} = {value}").fetchall()
        try:
            yield
        finally:
            self._connection.execute(f"PRAGMA {name} = {usual}").fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._lock, errors(self.location):
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN")
            with self._transaction(writes=False):
                known_version(self._connection)
                yield

    @contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[None]:
        self._writing = writes
        self._writes += writes
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        finally:
            self._writing = False
            self._writes += writes

    def _refuse_unfinished(self) -> None:
        if self.receiving:
            return
        mark = None
        with suppress(sqlite3.DatabaseError):  # a damaged file must stay writable for repair
            mark = properties.get(self._connection, properties.UNFINISHED_COPY)
        properties.refuse_unfinished(mark, self.location)

    def _require_writable(self) -> None:
        self._refuse_unfinished()
        if self.read_only:
            store_file.refuse_code(self._connection, self.location)
            raise StoreError(
                f"the store {self.location} cannot be written to",
                hint="check the permissions of the file and its folder",
            )

    @contextmanager
    def _outside_transaction(self) -> Iterator[None]:
        with self._lock, errors(self.location):
            self._require_writable()
            yield
