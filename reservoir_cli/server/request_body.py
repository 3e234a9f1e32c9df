"""Read the body of a request within the limits of size and time."""

import anyio
from starlette.datastructures import Headers
from starlette.types import Receive, Scope

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


async def read_body(scope: Scope, receive: Receive, most: int = limits.MAX_BODY) -> bytes:
    """Return a body; raise BodyTooLarge, BodyTooSlow, or ClientGone if it is incomplete.

    A body whose declared length is too large is refused before it arrives.
    """
    headers = Headers(scope=scope)
    too_large = BodyTooLarge(f"the request is larger than {most >> 20} MB")
    if int(headers.get("content-length", 0)) > most:
        await _discard_rest(receive, more="expect" not in headers)
        raise too_large
    body, more = bytearray(), True
    while more:
        chunk, more = await _next_chunk(receive)
        body += chunk
        if len(body) > most:
            await _discard_rest(receive, more)
            raise too_large
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
    """Read what still arrives of a body: a client that is sending does not see an answer."""
    with anyio.move_on_after(limits.DISCARD_TIMEOUT):
        while more:
            more = False
            with anyio.move_on_after(limits.DISCARD_PAUSE):
                _, more = await _next_chunk(receive)
