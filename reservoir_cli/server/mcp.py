"""Serve the tools of ``reservoir mcp`` over HTTP on the server's port."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from reservoir_cli.agents.mcp.server import Worker, build_server
from reservoir_cli.agents.mcp.tools import Answers, offered_tools
from reservoir_cli.server.request_body import ClientGone, RefusedBody, read_body
from reservoir_cli.server.security import ANY
from reservoir_cli.server.state import ServerState


class McpEndpoint:
    """Answer requests of MCP clients."""

    def __init__(self, state: ServerState) -> None:
        self._worker = Worker(Answers(state.open_reservoir))

        async def scope_of(
            _context: ServerRequestContext[Any, Any],
        ) -> tuple[str, tuple[Path, ...]]:
            return str(state.config.lookup("partition")[0]), ()

        config = state.config
        offered = offered_tools(config.mcp_partitions, corrects=config.mcp_correct)
        server = build_server(offered, self._worker, scope_of)
        self._manager = StreamableHTTPSessionManager(
            server, stateless=True, security_settings=_security(state)
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Accept requests until the block ends."""
        async with self._manager.run():
            yield
        self._worker.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await read_body(scope, receive)
        except RefusedBody as error:
            await PlainTextResponse(f"{error}\n", error.status)(scope, receive, send)
        except ClientGone:
            return
        else:
            await self._manager.handle_request(scope, _replay(body, receive), send)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a function that receives a body that was read, and then what follows it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


def _security(state: ServerState) -> TransportSecuritySettings:
    """Return the SDK's own checks; it cannot allow every address, so then they are off."""
    names = [f"[{name}]" if ":" in name else name for name in state.hosts if name != ANY]
    hosts = [*names, *(f"{name}:*" for name in names)]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=ANY not in state.hosts,
        allowed_hosts=hosts,
        allowed_origins=[f"http://{host}" for host in hosts],
    )
