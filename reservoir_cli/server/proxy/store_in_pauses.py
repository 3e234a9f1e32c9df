"""Store what passed the proxy in a pause between questions, and embed it."""

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
    """An exchange that is to be stored, when it ended, and that by the monotonic clock."""

    exchange: Exchange
    now: datetime
    since: float


class ExchangeQueue:
    """Exchanges that are to be stored: all that wait are stored, then embedded, together.

    :param on_embedded: called in another thread.
    """

    def __init__(self, state: ServerState, on_embedded: Callable[[], None]) -> None:
        self._writer, self._embedder, self._log = state.writer, state.embedder, state.log
        self._reader, self._on_embedded = state.reader, on_embedded
        self._waiting: deque[_Waiting] = deque()

    def add(self, exchange: Exchange) -> None:
        """Store an exchange that has just ended as soon as there is time."""
        self._waiting.append(_Waiting(exchange, datetime.now(UTC), time.monotonic()))
        self._writer.submit_in_pause(self._store_waiting)

    def _store_waiting(self, reservoir: Reservoir) -> None:
        """Store what waits; the first of several calls finds all of it."""
        added, oldest = Counter[Scope](), time.monotonic()
        try:
            for waiting, count in self._stored(reservoir):
                added[waiting.exchange.scope] += count
                oldest = min(oldest, waiting.since)
        finally:
            for scope, count in (+added).items():
                self._embed(scope, count, oldest)

    def _stored(self, reservoir: Reservoir) -> Iterator[tuple[_Waiting, int]]:
        """Store what waits, and yield each exchange with how many of its messages were added.

        Several are stored in one transaction: after each one questions would compute again what
        they keep. If that fails, they are stored one by one.
        """
        together, counts = list(self._waiting), list[int]()
        if len(together) > 1:
            with suppress(Exception):
                counts = _store_together(reservoir, together)
        for count in counts:
            yield self._waiting.popleft(), count
        while self._waiting:
            waiting = self._waiting.popleft()
            yield waiting, self._store(reservoir, waiting)

    def _store(self, reservoir: Reservoir, waiting: _Waiting) -> int:
        """Store an exchange; return how many messages were added.

        The text of a foreign error might quote it.

        :raises StoreError: it could not be stored, nor can others over this connection.
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

        with suppress(RuntimeError):  # the server ends
            self._embedder.submit_in_pause(embed, since)


def _store_together(reservoir: Reservoir, together: Sequence[_Waiting]) -> list[int]:
    """Store exchanges, or none of them; return how many messages each added."""
    with reservoir.store.write():
        return [reservoir.exchanges.store(each.exchange, each.now) for each in together]
