"""Store the proxy's exchanges while no question is being answered, and embed them."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from reservoir_cli.errors import ReservoirError, StoreError, StoreLockedError
from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server import limits
from reservoir_cli.server.state import ServerState
from reservoir_cli.transfer.proxied.exchange import Exchange


class _Waiting(NamedTuple):
    exchange: Exchange
    now: datetime
    since: float


class ExchangeQueue:
    """Exchanges, stored and embedded in batches; they stay here while the store is locked.

    :param before: is called before exchanges are stored, as these may change texts.
    """

    def __init__(
        self,
        state: ServerState,
        before: Callable[[Reservoir], None],
        on_embedded: Callable[[], None],
    ) -> None:
        self._writer, self._embedder, self._log = state.writer, state.embedder, state.log
        self._reader, self._before, self._on_embedded = state.reader, before, on_embedded
        self._waiting: deque[_Waiting] = deque()
        self._retry: threading.Timer | None = None
        self._call: Future[None] | None = None
        self._problem, self._closing = "", False

    def add(self, exchange: Exchange) -> None:
        """Queue an exchange that has just ended."""
        self._waiting.append(_Waiting(exchange, datetime.now(UTC), time.monotonic()))
        self._submit()

    def close(self) -> None:
        """Try for the last time to store what is still queued."""
        self._closing = True
        if self._retry:
            self._retry.cancel()
        if self._waiting:
            self._writer.submit(self._store_queued).add_done_callback(self._retry_failed)

    def _store_queued(self, reservoir: Reservoir) -> None:
        self._before(reservoir)
        added, oldest = Counter[Scope](), time.monotonic()
        try:
            for waiting, count in self._store_each(reservoir):
                added[waiting.exchange.scope] += count
                oldest = min(oldest, waiting.since)
        finally:
            for scope, count in (+added).items():
                self._embed(scope, count, oldest)

    def _store_each(self, reservoir: Reservoir) -> Iterator[tuple[_Waiting, int]]:
        """Store the queued exchanges, and yield each with the number of messages added.

        All are stored in one transaction, which invalidates caches once; if it fails, one by one.

        :raises StoreError: an exchange could not be stored; it is queued again.
        """
        batch, counts = list(self._waiting), list[int]()
        if len(batch) > 1:
            try:
                counts = self._store_batch(reservoir, batch)
            except StoreLockedError:
                raise  # one by one, each would wait for the lock
            except Exception:
                counts = []
        for count in counts:
            yield self._waiting.popleft(), count
        while self._waiting:
            waiting = self._waiting.popleft()
            try:
                count = self._store(reservoir, waiting)
            except StoreError:
                self._waiting.append(waiting)
                raise
            yield waiting, count

    def _store_batch(self, reservoir: Reservoir, batch: Sequence[_Waiting]) -> list[int]:
        """Store exchanges in one transaction, which gives way to questions for a while."""
        due, counts = time.monotonic() + limits.MAX_HOLD, list[int]()
        with reservoir.store.write():
            for waiting in batch:
                self._writer.give_way(due)
                counts.append(reservoir.exchanges.store(waiting.exchange, waiting.now))
        return counts

    def _store(self, reservoir: Reservoir, waiting: _Waiting) -> int:
        try:
            return reservoir.exchanges.store(waiting.exchange, waiting.now)
        except StoreError:
            raise
        except Exception as error:
            self._log(f"an exchange could not be stored: {_reason(error)}")
            return 0

    def _submit(self) -> None:
        with suppress(RuntimeError):  # the server is stopping
            call = self._writer.submit_batch_in_pause(self._store_queued)
            if call is not self._call:  # a failure is handled once, however many exchanges wait
                self._call = call
                call.add_done_callback(self._retry_failed)

    def _retry_failed(self, stored: Future[None]) -> None:
        error = None if stored.cancelled() else stored.exception()
        if error is None or not self._waiting:
            self._problem = ""
            return
        lost = max(len(self._waiting) - (0 if self._closing else limits.MAX_WAITING), 0)
        for oldest in sorted(self._waiting, key=lambda waiting: waiting.since)[:lost]:
            self._waiting.remove(oldest)
        counts = f"exchanges that wait for the store: {len(self._waiting)}, lost: {lost}"
        if counts != self._problem:
            self._log(f"{counts}; {_reason(error)}")
        self._problem = counts
        if self._retry is None and not self._closing:
            self._retry = threading.Timer(limits.RETRY_DELAY, self._try_again)
            self._retry.daemon = True
            self._retry.start()

    def _try_again(self) -> None:
        self._retry = None
        self._submit()

    def _embed(self, scope: Scope, count: int, since: float) -> None:
        def embed(reservoir: Reservoir) -> None:
            if model := self._reader.model:
                reservoir.indexer.share(model)
            reservoir.indexer.embed_if_possible(scope, newest=count)
            self._on_embedded()

        with suppress(RuntimeError):  # the server is stopping
            self._embedder.submit_in_pause(embed, since + limits.MAX_LONG_DELAY)


def _reason(error: BaseException) -> str:
    """Describe an error: our own by its message, others by type, as they might quote messages."""
    return error.message if isinstance(error, ReservoirError) else type(error).__name__
