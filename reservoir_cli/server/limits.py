"""Bounds on what one request may take."""

import anyio
from starlette.types import Receive

#: Bytes of a request's body: long histories with pictures are a few MB.
LARGEST_BODY = 32 << 20
#: Connections at once.
MOST_CONNECTIONS = 512
#: Seconds in which the next piece of a request must come.
PATIENCE = 60.0


class BodyTooLarge(Exception):
    """A request has more bytes than the server takes."""


class ClientGone(Exception):
    """The client went away before its request was whole."""


async def read_body(receive: Receive, most: int = LARGEST_BODY) -> bytes:
    """Return the body of a request.

    :raises BodyTooLarge: it is larger than ``most`` bytes.
    :raises ClientGone: it did not arrive whole.
    """
    body = bytearray()
    while True:
        try:
            with anyio.fail_after(PATIENCE):
                message = await receive()
        except TimeoutError:
            raise ClientGone from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        body += message.get("body", b"")
        if len(body) > most:
            raise BodyTooLarge(f"the request is larger than {most >> 20} MB")
        if not message.get("more_body", False):
            return bytes(body)
