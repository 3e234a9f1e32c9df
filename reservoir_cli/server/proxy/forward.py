"""Pass a request on to a model, and its answer back, byte for byte and unbuffered."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

import anyio
import httpx2
from starlette.types import Receive, Send

from reservoir_cli.server.proxy.headers import Headers, to_client

#: Seconds to reach a model. How long it thinks is its own affair.
_TIMEOUT = httpx2.Timeout(None, connect=10.0)
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=30.0)


class Watcher(Protocol):
    """Reads an answer along as it passes."""

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin with the head of the answer."""

    def feed(self, piece: bytes) -> None:
        """Read a piece of its body."""


class UpstreamError(Exception):
    """A model cannot be reached, or broke off before it answered."""


def new_client() -> httpx2.AsyncClient:
    """Return a client that changes nothing: it follows no redirects and adds no headers."""
    return httpx2.AsyncClient(
        timeout=_TIMEOUT,
        limits=_LIMITS,
        follow_redirects=False,
        # A proxy of the environment is for models elsewhere.
        mounts=dict.fromkeys(("all://127.0.0.1", "all://localhost", "all://[::1]")),
    )


@asynccontextmanager
async def opened(
    client: httpx2.AsyncClient, method: str, url: str, headers: Headers, body: bytes
) -> AsyncIterator[httpx2.Response]:
    """Yield the answer of a model before its first byte is read.

    :raises UpstreamError: there is none.
    """
    try:
        request = httpx2.Request(method, url, headers=headers, content=body)
        if not body and method in ("GET", "HEAD"):
            request.headers.pop("content-length", None)
        response = await client.send(request, stream=True)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise UpstreamError(type(error).__name__) from None
    try:
        yield response
    finally:
        with anyio.CancelScope(shield=True):
            await response.aclose()


async def relay(
    response: httpx2.Response, extra: Headers, send: Send, watcher: Watcher | None
) -> None:
    """Send an answer to the client as it comes in.

    :param extra: headers to add.
    :raises UpstreamError: it broke off; so must the answer to the client.
    """
    headers = [*to_client(response.headers.raw), *extra]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    if watcher:
        watcher.start(response.status_code, response.headers)
    try:
        async for piece in response.aiter_raw():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            if watcher:
                watcher.feed(piece)
    except httpx2.HTTPError as error:
        raise UpstreamError(type(error).__name__) from None
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def disconnected(receive: Receive) -> None:
    """Return when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
