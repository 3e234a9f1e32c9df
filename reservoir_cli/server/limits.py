"""Limits on the size of a request and on the number of connections."""

import anyio
from starlette.types import Receive

#: The largest body of a request in bytes: long histories with pictures are a few MB.
MAX_BODY = 32 << 20
#: The most connections that are open at the same time.
MAX_CONNECTIONS = 512
#: Seconds to wait for the next chunk of a request.
READ_TIMEOUT = 60.0


class BodyTooLarge(Exception):
    """The body of a request exceeds the limit."""


class BodyTooSlow(Exception):
    """The rest of a request does not arrive."""


class ClientGone(Exception):
    """The client disconnected before sending its whole request."""


async def read_body(receive: Receive, most: int = MAX_BODY) -> bytes:
    """Return the body of a request.

    :raises BodyTooLarge: it is larger than ``most`` bytes.
    :raises BodyTooSlow: the client sent nothing for a minute.
    :raises ClientGone: it did not arrive completely.
    """
    body = bytearray()
    while True:
        try:
            with anyio.fail_after(READ_TIMEOUT):
                message = await receive()
        except TimeoutError:
            seconds = round(READ_TIMEOUT)
            raise BodyTooSlow(f"nothing of the request arrived for {seconds} seconds") from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        body += message.get("body", b"")
        if len(body) > most:
            raise BodyTooLarge(f"the request is larger than {most >> 20} MB")
        if not message.get("more_body", False):
            return bytes(body)
