"""A connection to the store on a server, with transactions that are retried after failures."""

import random
import threading
import time
from abc import ABC
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus

from reservoir_cli.errors import StoreError
from reservoir_cli.storage import properties, transactions
from reservoir_cli.storage.postgres import lock_holders, schema
from reservoir_cli.storage.postgres.connection import Connection, connect, location_of
from reservoir_cli.storage.postgres.ids import IdSource
from reservoir_cli.storage.postgres.inspect_server import inspect
from reservoir_cli.storage.postgres.row_security import guard_statements
from reservoir_cli.storage.postgres.server_errors import (
    ConflictError,
    ConnectionLostError,
    Holder,
    UncertainCommitError,
    errors,
    find_worker,
    locked_error,
)
from reservoir_cli.util import timeouts

_TRANSACTION_TIMEOUT = 170_000  #: The first version of PostgreSQL with ``transaction_timeout``.

#: Read the mark of a store that is an unfinished copy.
_READ_MARK = f"SELECT value FROM properties WHERE key = '{properties.UNFINISHED_COPY}'"

Result = TypeVar("Result")


def wait_for_locks(seconds: float) -> str:
    """Return the statement that limits how long a transaction waits for a lock."""
    return f"SET LOCAL lock_timeout = {max(1, round(1000 * seconds))}"


class Transactions(transactions.Transactions, ABC):
    """A connection to a server, with or without a store.

    :param url: of the store; libpq gets its parameters, such as those for TLS, unchanged.
    :param patience: seconds to wait while other processes write.
    """

    def __init__(self, url: str, *, patience: float) -> None:
        self.location = location_of(url)
        self._url = url
        self._patience = patience
        self._lock = threading.RLock()
        self._ids = IdSource()
        self.receiving = False
        self._depth, self._closed = 0, False
        self._connection: Connection = self._connect()

    def _connect(self) -> Connection:
        with errors(self.location):
            server = connect(self._url, self.location, patience=self._patience)
            connection = Connection(server, self._ids)
            try:
                connection.execute(f"BEGIN; {wait_for_locks(self._patience)}")
                self.server = inspect(connection)
                connection.execute("ROLLBACK")
                connection.may_delete = self.server.may_delete
            except BaseException:
                connection.server.close()
                raise
        self.read_only = not self.server.writable
        return connection

    @property
    def _settings(self) -> str:
        """The settings of every transaction; with a pool, each one may be in another session."""
        return f"SET LOCAL search_path = {self.server.path}"

    def close(self) -> None:
        """Close the connection."""
        self._closed = True
        with suppress(psycopg.Error):
            self._connection.server.close()

    def prepare(self) -> None:
        """Set up an empty database, or migrate an older store."""
        version = self.server.schema
        transactions.refuse_newer(version or 0, len(schema.MIGRATIONS))
        if not self.server.listed:
            raise StoreError(
                f"this user has no partition in the store {self.location}",
                hint="ask the store's owner to add the user to the table reservoir.members",
            )
        if version == len(schema.MIGRATIONS):
            return
        if self.read_only:
            raise self._unprepared_error("cannot be written to")
        with self._lock, errors(self.location):
            self._migrate()
            self.server = inspect(self._connection)
            self._connection.may_delete = self.server.may_delete

    def _migrate(self) -> None:
        settings = f"{self._settings}; {self._lifting}; {wait_for_locks(timeouts.CHANGE_OF_TABLES)}"
        guarding = guard_statements(self.server.path, is_cluster=self.server.is_cluster)
        try:
            try:
                schema.migrate(self._connection, settings, guarding)
            except psycopg.errors.UniqueViolation:  # another process has just created the schema
                schema.migrate(self._connection, settings, guarding)
        except psycopg.errors.InsufficientPrivilege:
            raise self._unprepared_error("the user may not change that") from None

    def _unprepared_error(self, reason: str) -> StoreError:
        state = "has an older schema" if self.server.schema else "is not set up"
        return StoreError(
            f"the store {self.location} {state} and {reason}",
            hint="ask its owner to run db migrate once",
        )

    @contextmanager
    def write(self, wait: float | None = None, *, durable: bool = True) -> Iterator[None]:
        with self._reserve(self._patience if wait is None else wait) as seconds:
            if self._depth:
                self._require_write_transaction()
                yield
                return
            self._require_writable()
            begin = f"BEGIN; {wait_for_locks(seconds)}"
            if not durable:
                begin += "; SET LOCAL synchronous_commit = off"
            with self._transaction(begin, writes=True):
                yield

    def _require_writable(self) -> None:
        if not self.read_only:
            return
        if not self.receiving:
            properties.refuse_unfinished(
                self.get_property(properties.UNFINISHED_COPY), self.location
            )
        raise StoreError(
            f"the store {self.location} cannot be written to",
            hint="the server or the user is read-only",
        )

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        begin = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {wait_for_locks(self._patience)}"
        with self._transaction(begin, writes=False):
            yield

    @property
    def _timeouts(self) -> tuple[str, ...]:
        """The timeouts that end a transaction; a write transaction sets ``lock_timeout`` itself."""
        newer = ("transaction_timeout",) if self.server.version >= _TRANSACTION_TIMEOUT else ()
        return ("statement_timeout", "idle_in_transaction_session_timeout", *newer)

    @property
    def _lifting(self) -> str:
        """The statements that lift the timeouts until the transaction ends."""
        return "; ".join(f"SET LOCAL {name} = 0" for name in self._timeouts)

    def lift_timeouts(self) -> None:
        self._connection.execute(self._lifting)

    def execute_alone(self, statement: str) -> None:
        """Run a long statement that no transaction may contain, without the server's timeouts."""
        with self._lock, errors(self.location):
            names = (*self._timeouts, "lock_timeout")
            are_set = " OR ".join(f"current_setting('{name}') <> '0'" for name in names)
            if not self._connection.number(f"SELECT ({are_set})::int"):
                self._connection.execute(statement)
                return
            with self._connect_without_timeouts() as server:
                server.execute(statement.encode())

    @contextmanager
    def _connect_without_timeouts(self) -> Iterator["psycopg.Connection[Any]"]:
        """Open a connection without timeouts, or use this one if a pool refuses such a setting."""
        options = " ".join(f"-c {name}=0" for name in (*self._timeouts, "lock_timeout"))
        try:
            server = connect(self._url, self.location, patience=self._patience, options=options)
        except StoreError:
            yield self._connection.server
            return
        with closing(server):
            yield server

    @contextmanager
    def _transaction(self, begin: str, *, writes: bool) -> Iterator[None]:
        with self._lock, errors(self.location):
            if self._depth:
                yield
                return
            try:
                self._begin(begin, writes=writes)
                self._depth, self._writing = 1, writes
                yield
                self._commit(writes=writes)
            except psycopg.errors.LockNotAvailable:
                waited = self._connection.last
                self._roll_back()
                raise locked_error(self._find_holders(begin, waited)) from None
            except BaseException:
                self._roll_back()
                raise
            finally:
                self._depth, self._writing = 0, False

    def _roll_back(self) -> None:
        server = self._connection.server
        with suppress(psycopg.Error):
            if server.info.transaction_status != TransactionStatus.IDLE:
                self._connection.execute("ROLLBACK")
        if server.info.pipeline_status != PipelineStatus.OFF:
            # A pool that lost the server between statements leaves it open for good.
            server.close()

    def _find_holders(self, begin: str, waited: tuple[bytes, Any]) -> list[Holder]:
        begin = f"{begin}; {self._settings}"
        with suppress(psycopg.Error, StoreError):  # the lock is what the error has to report
            with closing(connect(self._url, self.location, patience=0)) as watching:
                return lock_holders.find(self._connection.server, watching, begin, waited)
        return []

    def _begin(self, begin: str, *, writes: bool) -> None:
        """Begin a transaction, on a new connection if the last one was lost."""
        self._connection.locked.clear()
        if self._closed:
            raise transactions.closed_error(self.location)
        statement = f"{begin}; {self._settings}"
        if writes:  # in the same round trip
            statement += f"; {_READ_MARK}"
        try:
            cursor = self._connection.execute(statement)
        except psycopg.OperationalError:
            if not self._connection.server.closed:
                raise
            self._connection.server.close()
            self._connection = self._connect()
            cursor = self._connection.execute(statement)
        if writes and not self.receiving:
            while cursor.nextset():
                pass
            row = cursor.fetchone()
            properties.refuse_unfinished(row[0] if row else None, self.location)

    def _commit(self, *, writes: bool) -> None:
        """Commit the transaction."""
        try:
            self._connection.execute("COMMIT")
        except psycopg.OperationalError as error:
            worker = find_worker(error)
            if writes and (worker or self._connection.server.broken):
                raise UncertainCommitError(self.location, worker) from None
            raise

    def _run_read(self, work: Callable[[], Result]) -> Result:
        def read() -> Result:
            with self.snapshot():
                return work()

        return self._retry_if_lost(read)

    def _run_write(self, work: Callable[[], Result], wait: float | None = None) -> Result:
        """Call a function in a write transaction; retry it if the connection was lost inside.

        If it was lost during the commit, the write may be stored, and is not retried.
        """
        return self._retry_if_lost(lambda: self._write_with_retries(work, wait))

    def _retry_if_lost(self, work: Callable[[], Result]) -> Result:
        for pause in timeouts.LOST_CONNECTION:
            try:
                return work()
            except ConnectionLostError:
                if self._depth:  # the outer transaction is lost, too
                    raise
                time.sleep(pause)
        return work()

    def _write_with_retries(self, work: Callable[[], Result], wait: float | None) -> Result:
        """Call a function in a write transaction; retry it after a conflict with another one."""
        for tries_left in reversed(range(timeouts.TRIES_OF_CONFLICT)):
            try:
                with self.write(wait):
                    return work()
            except ConflictError:
                if self._depth or not tries_left:  # the outer transaction has to be retried
                    raise
                pause = timeouts.CONFLICT * 2 ** (timeouts.TRIES_OF_CONFLICT - tries_left)
                time.sleep(pause * random.random())
        raise AssertionError("the last try returns or raises")
