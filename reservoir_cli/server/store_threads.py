"""Threads that keep a store open: the event loop never waits for the store."""

import asyncio
import gc
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from reservoir_cli.embedding import Embedder
from reservoir_cli.errors import ReservoirError, StoreError
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server.background_work import Go, Traffic
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
    :param traffic: that of the server; what is run by :meth:`run` and :meth:`submit` is part of it.
    :param recorder: stores the records of recalls, so that the next question does not wait for it.
    """

    def __init__(
        self,
        open_reservoir: Opener,
        settings: LiveConfig,
        name: str,
        patience: float = 30.0,
        traffic: Traffic | None = None,
        recorder: "StoreThread | None" = None,
    ) -> None:
        self._open_reservoir, self._settings, self._patience = open_reservoir, settings, patience
        self._traffic, self._recorder = traffic or Traffic(), recorder
        #: Records of recalls, of another thread, that are to be stored.
        self._records: deque[Mapping[str, Any]] = deque()
        self._pool = ThreadPoolExecutor(1, name)
        self._reservoir: Reservoir | None = None
        self._identity: tuple[int, int] | None = None
        #: The model that :meth:`warm` has loaded, for other threads.
        self.model: Embedder | None = None

    async def run(self, function: Callable[[Reservoir], T]) -> T:
        """Return what a function returns for the open store.

        If the caller is cancelled before the function's turn, it is never begun.
        """
        return await asyncio.wrap_future(self.submit(function))

    def submit(self, function: Callable[[Reservoir], T]) -> Future[T]:
        """Run a function for the open store when the thread comes to it."""
        return self._submit(self._call, function)

    def submit_in_pause(
        self, function: Callable[[Reservoir], T], since: float | None = None
    ) -> Future[T]:
        """Run a function that nobody waits for when no question is being answered.

        :param since: when the work came, in seconds of the monotonic clock; ``None`` for now.
        """
        came = time.monotonic() if since is None else since
        return self._pool.submit(self._call_in_pause, function, came)

    def submit_if_idle(self, function: Callable[[Reservoir], object]) -> None:
        """Run a function if no question is being answered; else forget it."""
        if self._traffic.is_idle():
            with suppress(RuntimeError):  # the server ends
                self._pool.submit(self._call, function)

    def _submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        self._traffic.begin(self)
        future = self._pool.submit(function, *arguments)
        future.add_done_callback(lambda _: self._traffic.end(self))
        return future

    def _call_in_pause(self, function: Callable[[Reservoir], T], since: float) -> T:
        if self._traffic.wait(self, since) is Go.URGENT:
            return self._call(function)
        with self._traffic.turn:
            return self._call(function)

    def _call(self, function: Callable[[Reservoir], T]) -> T:
        try:
            return function(self._opened())
        except StoreError:
            self._release()  # the next call connects again
            raise
        finally:
            if self._recorder and self._reservoir and self._reservoir.runs.has_put_off:
                self._record(self._recorder, self._reservoir.runs.take_recalls())

    def _record(self, recorder: "StoreThread", records: Sequence[Mapping[str, Any]]) -> None:
        recorder._records.extend(records)
        with suppress(RuntimeError):  # the server ends
            recorder.submit_in_pause(recorder._add_records)

    def _add_records(self, reservoir: Reservoir) -> None:
        """Store the records that wait; the first of several calls finds all of them."""
        records = [self._records.popleft() for _ in range(len(self._records))]
        reservoir.runs.add_recalls(records)

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
        """Close the store, and free the memory of its model, so that it can be opened again."""
        if self._reservoir:
            self._close_store()
            gc.unfreeze()
            gc.collect()  # its parts refer to each other

    def _close_store(self) -> None:
        reservoir, self._reservoir, self.model = self._reservoir, None, None
        if reservoir:
            with suppress(ReservoirError):
                reservoir.close()

    def warm(self) -> None:
        """Open the store and load the model, so that the first question does not wait for them."""

        def load(reservoir: Reservoir) -> None:
            reservoir.serve()
            reservoir.runs.put_off_recalls()
            if reservoir.indexer.load_engine():
                self.model = reservoir.indexer.embedder()
            reservoir.context("", budget=1_000)  # imports what builds one
            # What stays need not be looked through each time that garbage is collected: 50 ms.
            gc.collect()
            gc.freeze()

        self.submit(load)

    def close(self) -> None:
        """Finish what is waiting, and close the store."""
        with suppress(TimeoutError, RuntimeError):
            self._submit(self._close_store).result(_LAST_WORK)
        self._pool.shutdown(wait=False, cancel_futures=True)
