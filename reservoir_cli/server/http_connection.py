"""A connection of a client, which is closed if the head of a request does not arrive."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from reservoir_cli.server import limits


class TimedProtocol(H11Protocol):
    """HTTP connections that are closed if the head of a request does not arrive."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Read a piece of a request; wait for the next one unless its head is complete."""
        self._stop_timer()
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(limits.HEAD_TIMEOUT, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
