"""Forward a request to a model, and relay its answer byte for byte and unbuffered."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

import anyio
import httpx2
from starlette.types import Receive, Send

from reservoir_cli.server.proxy.forwarded_headers import Headers, to_client

#: Seconds to connect to a model. Reading has no limit: a model may think for long.
_TIMEOUT = httpx2.Timeout(None, connect=10.0)
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=30.0)
#: Statuses that a server may send as its answer; h11 reads those up to 999.
_STATUSES = range(200, 600)


class Watcher(Protocol):
    """Read a copy of an answer while it is relayed."""

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Read the status and headers of the answer."""

    def feed(self, chunk: bytes) -> None:
        """Read a chunk of its body."""


class UpstreamError(Exception):
    """A model cannot be reached, or its connection failed before the end of its answer."""


def new_client() -> httpx2.AsyncClient:
    """Return an HTTP client that follows no redirects."""
    return httpx2.AsyncClient(
        timeout=_TIMEOUT,
        limits=_LIMITS,
        follow_redirects=False,
        # Models on this machine are never reached through the environment's HTTP proxy.
        mounts=dict.fromkeys(("all://127.0.0.1", "all://localhost", "all://[::1]")),
    )


@asynccontextmanager
async def open_answer(
    client: httpx2.AsyncClient, method: str, url: str, headers: Headers, body: bytes
) -> AsyncIterator[httpx2.Response]:
    """Send a request, and yield the answer with its body still unread.

    :raises UpstreamError: the model cannot be reached, or its answer is not valid HTTP.
    """
    try:
        request = httpx2.Request(method, url, headers=headers, content=body)
        if not body and method in ("GET", "HEAD"):
            request.headers.pop("content-length", None)
        response = await client.send(request, stream=True)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise UpstreamError(type(error).__name__) from None
    try:
        if response.status_code not in _STATUSES:
            raise UpstreamError(f"status {response.status_code}")
        yield response
    finally:
        with anyio.CancelScope(shield=True):
            await response.aclose()


async def relay(
    response: httpx2.Response, extra: Headers, send: Send, watcher: Watcher | None
) -> None:
    """Send an answer to the client as it arrives.

    :param extra: headers to add.
    :raises UpstreamError: the answer was interrupted; interrupt the client's answer, too.
    """
    headers = [*to_client(response.headers.raw), *extra]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    if watcher:
        watcher.start(response.status_code, response.headers)
    try:
        async for chunk in response.aiter_raw():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if watcher:
                watcher.feed(chunk)
    except httpx2.HTTPError as error:
        raise UpstreamError(type(error).__name__) from None
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
