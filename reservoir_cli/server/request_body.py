"""Read the body of a request within the limits of size and time."""

import anyio
from starlette.types import Receive

from reservoir_cli.server import limits


class RefusedBody(Exception):
    """The body of a request is not accepted."""

    status = 400


class BodyTooLarge(RefusedBody):
    """The body of a request exceeds the limit."""

    status = 413


class BodyTooSlow(RefusedBody):
    """The rest of a request does not arrive."""

    status = 408


class ClientGone(Exception):
    """The client disconnected before sending its whole request."""


async def read_body(receive: Receive, most: int = limits.MAX_BODY) -> bytes:
    """Return a body; raise BodyTooLarge, BodyTooSlow, or ClientGone if it is incomplete."""
    body, more = bytearray(), True
    while more:
        chunk, more = await _next_chunk(receive)
        body += chunk
        if len(body) > most:
            await _discard_rest(receive, more)
            raise BodyTooLarge(f"the request is larger than {most >> 20} MB")
    return bytes(body)


async def _next_chunk(receive: Receive) -> tuple[bytes, bool]:
    try:
        with anyio.fail_after(limits.READ_TIMEOUT):
            message = await receive()
    except TimeoutError:
        seconds = round(limits.READ_TIMEOUT)
        raise BodyTooSlow(f"nothing of the request arrived for {seconds} seconds") from None
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message.get("body", b""), message.get("more_body", False)


async def _discard_rest(receive: Receive, more: bool) -> None:
    """Read a body to its end: a client that is still sending does not see an answer."""
    with anyio.move_on_after(limits.DISCARD_TIMEOUT):
        while more:
            _, more = await _next_chunk(receive)
