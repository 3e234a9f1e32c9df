"""Limits on the size and the pauses of a request, and on the number of connections."""

import asyncio
from typing import Any

import anyio
from starlette.types import Receive
from uvicorn.protocols.http.h11_impl import H11Protocol

#: The largest body of a request in bytes: long histories with pictures are a few MB.
MAX_BODY = 32 << 20
#: The most connections that are open at the same time.
MAX_CONNECTIONS = 512
#: Seconds to wait for the next piece of a request's head, and of its body.
HEAD_TIMEOUT = READ_TIMEOUT = 60.0
#: Seconds in which the rest of a body that is too large is read, and not kept.
_DISCARD_TIMEOUT = 10.0


class RefusedBody(Exception):
    """The body of a request is not accepted.

    :cvar status: of the answer.
    """

    status = 400


class BodyTooLarge(RefusedBody):
    """The body of a request exceeds the limit."""

    status = 413


class BodyTooSlow(RefusedBody):
    """The rest of a request does not arrive."""

    status = 408


class ClientGone(Exception):
    """The client disconnected before sending its whole request."""


async def read_body(receive: Receive, most: int = MAX_BODY) -> bytes:
    """Return the body of a request.

    :raises BodyTooLarge: it is larger than ``most`` bytes.
    :raises BodyTooSlow: the client sent nothing for a minute.
    :raises ClientGone: it did not arrive completely.
    """
    body, more = bytearray(), True
    while more:
        chunk, more = await _next_chunk(receive)
        body += chunk
        if len(body) > most:
            await _discard_rest(receive, more)
            raise BodyTooLarge(f"the request is larger than {most >> 20} MB")
    return bytes(body)


async def _next_chunk(receive: Receive) -> tuple[bytes, bool]:
    """Return the next chunk of a body, and whether more follow."""
    try:
        with anyio.fail_after(READ_TIMEOUT):
            message = await receive()
    except TimeoutError:
        seconds = round(READ_TIMEOUT)
        raise BodyTooSlow(f"nothing of the request arrived for {seconds} seconds") from None
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message.get("body", b""), message.get("more_body", False)


async def _discard_rest(receive: Receive, more: bool) -> None:
    """Read a body to its end: a client that is still sending does not see an answer."""
    with anyio.move_on_after(_DISCARD_TIMEOUT):
        while more:
            _, more = await _next_chunk(receive)


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
        self._timer = self.loop.call_later(HEAD_TIMEOUT, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
