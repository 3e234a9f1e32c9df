"""Threads that keep a store open: the event loop never waits for the store."""

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol, TypeVar

from reservoir_cli.errors import ReservoirError, StoreError
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.reload import LiveConfig
from reservoir_cli.settings.store_location import file_identity

T = TypeVar("T")

#: Seconds that the work of a thread has left when the server ends.
_LAST_WORK = 30.0
#: Patience of threads that a request waits for: what they write can be done without.
HASTE = 0.02


class Opener(Protocol):
    """Opens the store of the settings."""

    def __call__(
        self,
        *,
        create: bool,
        notify: Callable[[str], None],
        patience: float = 10.0,
        known: Config | None = None,
    ) -> Reservoir:
        """Open it.

        :param known: the settings, if they were read before.
        :param create: make it if there is none.
        :param notify: called with what a person should know.
        :param patience: seconds to wait while others write.
        """


class StoreThread:
    """Runs functions one after the other in a thread that has the store open.

    :param settings: hold for the open store, too, when they change.
    :param name: of the thread.
    :param patience: seconds that a write waits while others write; reads never do.
    """

    def __init__(
        self, open_reservoir: Opener, settings: LiveConfig, name: str, patience: float = 30.0
    ) -> None:
        self._open_reservoir, self._settings, self._patience = open_reservoir, settings, patience
        self._pool = ThreadPoolExecutor(1, name)
        self._reservoir: Reservoir | None = None
        self._identity: tuple[int, int] | None = None

    async def run(self, function: Callable[[Reservoir], T]) -> T:
        """Return what a function returns for the open store.

        If the caller is cancelled before the function's turn, it is never begun.
        """
        return await asyncio.wrap_future(self.submit(function))

    def submit(self, function: Callable[[Reservoir], T]) -> Future[T]:
        """Run a function for the open store when the thread comes to it."""
        return self._pool.submit(self._call, function)

    def _call(self, function: Callable[[Reservoir], T]) -> T:
        try:
            return function(self._opened())
        except StoreError:
            self._release()  # the next call connects again
            raise
        finally:
            if self._reservoir and self._reservoir.runs.has_put_off:
                with suppress(RuntimeError):  # the server ends, which writes them, too
                    self._pool.submit(self._write_recalls)

    def _write_recalls(self) -> None:
        if self._reservoir:
            self._reservoir.runs.write_recalls()

    def _opened(self) -> Reservoir:
        """Return the store with the settings of now; open it again if its file was replaced."""
        known = self._settings.current()
        if self._reservoir and file_identity(self._reservoir.location) != self._identity:
            self._release()
        if self._reservoir is None:
            self._reservoir = self._open_reservoir(
                create=True, notify=lambda _: None, patience=self._patience, known=known
            )
            self._identity = file_identity(self._reservoir.location)
        self._reservoir.use(known)
        return self._reservoir

    def _release(self) -> None:
        """Close the store, and free the memory of its model."""
        reservoir, self._reservoir = self._reservoir, None
        if reservoir:
            with suppress(ReservoirError):
                reservoir.close()
            del reservoir
            gc.collect()  # its parts refer to each other

    def warm(self) -> None:
        """Open the store and load the model, so that the first question does not wait for them."""

        def load(reservoir: Reservoir) -> None:
            reservoir.serve()
            reservoir.runs.put_off_recalls()
            reservoir.indexer.load_engine()
            reservoir.context("", budget=1_000)  # imports what builds one

        self.submit(load)

    def close(self) -> None:
        """Finish what is waiting, and close the store."""
        with suppress(TimeoutError, RuntimeError):
            self._pool.submit(self._release).result(_LAST_WORK)
        self._pool.shutdown(wait=False, cancel_futures=True)
