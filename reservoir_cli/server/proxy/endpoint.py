"""The proxy's one endpoint: from a request to the end of its answer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import httpx2
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from reservoir_cli.server.limits import BodyTooLarge, ClientGone, read_body
from reservoir_cli.server.proxy import forward
from reservoir_cli.server.proxy.headers import to_upstream
from reservoir_cli.server.proxy.paths import Target, parse_path
from reservoir_cli.server.proxy.protocols import error_body, protocol_of
from reservoir_cli.server.state import ServerState
from reservoir_cli.settings.upstreams import Upstream


class Proxy:
    """Passes requests on to models."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._client: httpx2.AsyncClient

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep connections to models as long as the block runs."""
        async with forward.new_client() as self._client:
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        target = parse_path(scope["reservoir_path"])
        if target is None:
            await Response("404: no such path\n", 404, media_type="text/plain")(
                scope, receive, send
            )
            return
        headers = Headers(scope=scope)
        protocol = protocol_of(target.path, headers)
        try:
            body = await read_body(receive)
        except ClientGone:
            return
        except BodyTooLarge as error:
            await _fail(protocol, 413, str(error))(scope, receive, send)
            return
        upstream = self._state.upstreams[protocol]
        await self._exchange(scope, receive, send, target, upstream, body)

    async def _exchange(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        target: Target,
        upstream: Upstream,
        body: bytes,
    ) -> None:
        """Pass a request on, and end it when the client is gone."""
        async with anyio.create_task_group() as tasks:

            async def watch_client() -> None:
                await forward.disconnected(receive)
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch_client)
            url = url_of(upstream, target.path, scope["query_string"])
            headers = to_upstream(scope["headers"])
            try:
                async with forward.opened(
                    self._client, scope["method"], url, headers, body
                ) as response:
                    await forward.relay(response, [], send, lambda _: None)
            except forward.UpstreamError as error:
                problem = f"the upstream {upstream.name} cannot be reached ({error})"
                await _fail(upstream.protocol, 502, problem)(scope, receive, send)
            tasks.cancel_scope.cancel()


def url_of(upstream: Upstream, path: str, query: bytes) -> str:
    """Return the URL of a request at an upstream, whose own URL may end in ``/v1``."""
    if upstream.url.endswith("/v1") and path.startswith("/v1/"):
        path = path.removeprefix("/v1")
    return f"{upstream.url}{path}{'?' if query else ''}{query.decode('ascii', 'replace')}"


def _fail(protocol: str, status: int, problem: str) -> Response:
    return Response(error_body(protocol, problem), status, media_type="application/json")
