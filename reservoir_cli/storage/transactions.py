"""A connection to a store: its transactions and its properties."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from reservoir_cli.errors import StoreError, StoreLockedError
from reservoir_cli.storage import properties
from reservoir_cli.storage.portable_sql import Connection

Result = TypeVar("Result")
_Parameters = ParamSpec("_Parameters")
_Store = TypeVar("_Store", bound="Transactions | TableAccess")
_Method = Callable[Concatenate[_Store, _Parameters], Result]
_Function = Callable[Concatenate[Connection, _Parameters], Result]


class Transactions(ABC):
    """A connection to a database and its transactions.

    :param location: a path, or a URL without its password.
    :param missing: whether there is no store: reads find nothing, and no write is committed.
    :param receiving: whether this program is copying into the store; all other writes are refused
        until the copy is finished.
    """

    location: str
    read_only: bool
    missing: bool = False
    receiving: bool
    _connection: Connection
    _lock: threading.RLock
    _writing = False  #: Whether the open transaction, if there is one, may write.

    @abstractmethod
    def close(self) -> None:
        """Close the file or connection."""

    def keep_warm(self) -> None:  # noqa: B027 - a server's database has a cache of its own
        """Prepare to answer many questions: keep ranking data in memory."""

    def start(self, work: Callable[[], Result]) -> Callable[[], Result]:
        """Call a function, in a thread if the store is warm; return one that waits for it."""
        result = work()
        return lambda: result

    @abstractmethod
    def write(
        self, wait: float | None = None, *, durable: bool = True
    ) -> AbstractContextManager[None]:
        """Open a write transaction; inner ones join it.

        :param wait: seconds to wait for other writers; ``None`` for the store's usual patience.
        :param durable: whether to wait for the disk. Without, a power cut may undo the write.
        :raises StoreLockedError: another writer held the lock for longer.
        """

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[None]:
        """Open a read transaction: every read inside sees the same state."""

    @abstractmethod
    def _require_writable(self) -> None:
        """Refuse to write to a store that is read-only, or an unfinished copy."""

    def _require_write_transaction(self) -> None:
        """Refuse to write in a snapshot, which has no lock and was not checked for writing."""
        if not self._writing:
            self._require_writable()
            raise StoreError(
                f"a snapshot of the store {self.location} cannot be written to",
                hint="end the snapshot before the write",
            )

    @contextmanager
    def _reserve(self, patience: float) -> Iterator[float]:
        """Keep other threads from the connection; yield the seconds that are left of a patience."""
        seconds = patience
        if not self._lock.acquire(blocking=False):
            deadline = time.monotonic() + patience
            if not self._lock.acquire(timeout=patience):
                raise StoreLockedError(
                    "the store is in use by another thread", hint="try again when it has finished"
                )
            seconds = max(0.0, deadline - time.monotonic())
        try:
            yield seconds
        finally:
            self._lock.release()

    def lift_timeouts(self) -> None:  # noqa: B027 - only a server has timeouts
        """Exempt this transaction from the server's timeouts, for long administrative work."""

    def _run_write(self, work: Callable[[], Result], wait: float | None = None) -> Result:
        with self.write(wait):
            return work()

    def _run_read(self, work: Callable[[], Result]) -> Result:
        with self.snapshot():
            return work()

    def get_property(self, key: str) -> str | None:
        """Return the value of a property; ``None`` if it is not set."""
        return self._run_read(lambda: properties.get(self._connection, key))

    def set_property(self, key: str, value: str | None) -> None:
        """Set a property of the store; ``None`` deletes it."""
        if value is None:
            self._run_write(lambda: properties.drop(self._connection, key))
        else:
            self._run_write(lambda: properties.put(self._connection, key, value))


class TableAccess:
    """The methods that read and write a table beside the messages of a store."""

    def __init__(self, store: Transactions) -> None:
        self._run_read, self._run_write = store._run_read, store._run_write
        self._store = store

    @property
    def _connection(self) -> Connection:
        return self._store._connection  # another one after the last was lost


def closed_error(location: str) -> StoreError:
    """Return the error for the use of a store after it was closed."""
    return StoreError(f"the store {location} is closed", hint="open it again")


def refuse_newer(schema: int, ours: int) -> None:
    """Refuse a store of a newer schema than this program knows."""
    if schema > ours:
        raise StoreError(
            f"the store was written by a newer reservoir (schema {schema}, this one knows {ours})",
            hint="upgrade reservoir-cli",
        )


def reading(method: _Method[_Store, _Parameters, Result]) -> _Method[_Store, _Parameters, Result]:
    """Run a method in a read transaction."""

    @wraps(method)
    def run(store: _Store, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Result:
        return store._run_read(lambda: method(store, *args, **kwargs))

    return run


def writing(method: _Method[_Store, _Parameters, Result]) -> _Method[_Store, _Parameters, Result]:
    """Run a method in a write transaction."""

    @wraps(method)
    def run(store: _Store, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Result:
        return store._run_write(lambda: method(store, *args, **kwargs))

    return run


def reads_with(function: _Function[_Parameters, Result]) -> _Method[_Store, _Parameters, Result]:
    """Make a method that passes the store's connection to a function, in a read transaction."""
    return reading(_make_method(function))


def writes_with(function: _Function[_Parameters, Result]) -> _Method[_Store, _Parameters, Result]:
    """Make a method that passes the store's connection to a function, in a write transaction."""
    return writing(_make_method(function))


def _make_method(function: _Function[_Parameters, Result]) -> _Method[_Store, _Parameters, Result]:
    @wraps(function)
    def run(store: _Store, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Result:
        return function(store._connection, *args, **kwargs)

    return run
