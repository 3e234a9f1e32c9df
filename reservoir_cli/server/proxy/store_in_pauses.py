"""Store the proxy's exchanges while no question is being answered, and embed them."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from reservoir_cli.errors import ReservoirError, StoreError
from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server.state import ServerState
from reservoir_cli.transfer.store_exchange import Exchange


class _Waiting(NamedTuple):
    """A queued exchange, and when it ended by the wall clock and by the monotonic clock."""

    exchange: Exchange
    now: datetime
    since: float


class ExchangeQueue:
    """A queue of exchanges, which are stored and then embedded in batches.

    :param on_embedded: called in another thread after a batch was embedded.
    """

    def __init__(self, state: ServerState, on_embedded: Callable[[], None]) -> None:
        self._writer, self._embedder, self._log = state.writer, state.embedder, state.log
        self._reader, self._on_embedded = state.reader, on_embedded
        self._waiting: deque[_Waiting] = deque()

    def add(self, exchange: Exchange) -> None:
        """Queue an exchange that has just ended."""
        self._waiting.append(_Waiting(exchange, datetime.now(UTC), time.monotonic()))
        self._writer.submit_in_pause(self._store_queued)

    def _store_queued(self, reservoir: Reservoir) -> None:
        """Store all queued exchanges; if several calls are queued, the first one stores them."""
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

        A batch is stored in one transaction, since each transaction invalidates the caches of
        questions. If that fails, the exchanges are stored one by one.
        """
        batch, counts = list(self._waiting), list[int]()
        if len(batch) > 1:
            with suppress(Exception):
                counts = _store_batch(reservoir, batch)
        for count in counts:
            yield self._waiting.popleft(), count
        while self._waiting:
            waiting = self._waiting.popleft()
            yield waiting, self._store(reservoir, waiting)

    def _store(self, reservoir: Reservoir, waiting: _Waiting) -> int:
        """Store an exchange; return how many messages were added.

        Of other libraries' errors only the type is logged: their texts might quote messages.

        :raises StoreError: the connection is no longer usable.
        """
        try:
            return reservoir.exchanges.store(waiting.exchange, waiting.now)
        except Exception as error:
            why = error.message if isinstance(error, ReservoirError) else type(error).__name__
            self._log(f"an exchange could not be stored: {why}")
            if isinstance(error, StoreError):
                raise
            return 0

    def _embed(self, scope: Scope, count: int, since: float) -> None:
        def embed(reservoir: Reservoir) -> None:
            if model := self._reader.model:
                reservoir.indexer.share(model)
            reservoir.indexer.embed_added(scope, count)
            self._on_embedded()

        with suppress(RuntimeError):  # the server is stopping
            self._embedder.submit_in_pause(embed, since)


def _store_batch(reservoir: Reservoir, batch: Sequence[_Waiting]) -> list[int]:
    """Store exchanges in one transaction; return how many messages each added."""
    with reservoir.store.write():
        return [reservoir.exchanges.store(waiting.exchange, waiting.now) for waiting in batch]
