"""Forward a request to a model with its headers, and relay the answer byte for byte, unbuffered."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import anyio
import httpx2
from anyio.lowlevel import checkpoint
from starlette.types import Receive, Send

from reservoir_cli.server import limits
from reservoir_cli.server.proxy.tee_answer import Listener

_TIMEOUT = httpx2.Timeout(None, connect=limits.CONNECT_TIMEOUT)
_LIMITS = httpx2.Limits(
    max_connections=None,
    max_keepalive_connections=limits.IDLE_CONNECTIONS,
    keepalive_expiry=limits.IDLE_TIMEOUT,
)
#: Statuses that a server may send as its answer; h11 reads those up to 999.
_STATUSES = range(200, 600)
Headers = list[tuple[bytes, bytes]]
#: Headers of a single connection, which are never forwarded.
_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
#: Headers that the proxy sets itself: the length may change, and answers must not be compressed.
_OURS = frozenset((b"host", b"content-length", b"accept-encoding", b"expect"))
_PREFIX = b"x-reservoir-"


class UpstreamError(Exception):
    """A model cannot be reached, or breaks off: the end of a sentence that begins with it."""


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
    """Send a request and yield its answer, unread; UpstreamError if there is no valid one."""
    try:
        request = httpx2.Request(method, url, headers=headers, content=body)
        if not body and method in ("GET", "HEAD"):
            request.headers.pop("content-length", None)
        response = await client.send(request, stream=True)
    except httpx2.RemoteProtocolError:
        raise UpstreamError("sent no valid HTTP answer") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise UpstreamError(f"cannot be reached ({type(error).__name__})") from None
    try:
        if response.status_code not in _STATUSES:
            raise UpstreamError(f"answers with the status {response.status_code}")
        yield response
    finally:
        with anyio.CancelScope(shield=True):
            await response.aclose()


async def relay(
    response: httpx2.Response, extra: Headers, send: Send, listener: Listener | None
) -> None:
    """Send an answer to the client as it arrives; raise UpstreamError to interrupt both."""
    headers = [*to_client(response.headers.raw), *extra]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    if listener:
        listener.start(response.status_code, response.headers)
    try:
        number = 0
        async for chunk in response.aiter_raw():
            number += 1
            # Small chunks arrive many at once: let other requests run. Not behind the last one: the
            # client may continue the answer at once, and it has not been read to its end yet.
            if number % limits.CHUNKS_AT_A_TIME == 0:
                await checkpoint()
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if listener:
                await listener.feed(chunk)
    except httpx2.HTTPError as error:
        raise UpstreamError(f"ended its answer early ({type(error).__name__})") from None
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


def to_upstream(headers: Iterable[tuple[bytes, bytes]], *, decoded: bool = False) -> Headers:
    """Return the headers of a request that are sent to a model."""
    dropped = _OURS | {b"content-encoding"} if decoded else _OURS
    forwarded = [
        (name, value)
        for name, value in _end_to_end(headers)
        if name.lower() not in dropped and not name.lower().startswith(_PREFIX)
    ]
    return [*forwarded, (b"accept-encoding", b"identity")]


def to_client(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return an answer's headers without the length, which differs if it is sent in chunks."""
    headers = [(name.lower(), value) for name, value in headers]
    is_chunked = any(name == b"transfer-encoding" for name, _ in headers)
    unwanted = {b"content-length"} if is_chunked else set()
    return [pair for pair in _end_to_end(headers) if pair[0] not in unwanted]


def _end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    headers = list(headers)
    named = {
        token.strip().lower()
        for name, value in headers
        if name.lower() == b"connection"
        for token in value.split(b",")
    }
    return [pair for pair in headers if pair[0].lower() not in _HOP_BY_HOP | named]
