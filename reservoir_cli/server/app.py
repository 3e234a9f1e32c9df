"""Route requests to the page, the MCP endpoint or the proxy.

    /ui/…              the page; it requires a session
    /favicon.ico       its icon
    /k/TOKEN/mcp       MCP over HTTP
    /k/TOKEN/…         the proxy; also without the token if the proxy is open

Everything else is 404, or 401 if only the token is missing.
"""

import re
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reservoir_cli.server import limits
from reservoir_cli.server.mcp import McpEndpoint
from reservoir_cli.server.proxy.endpoint import Proxy
from reservoir_cli.server.security import Guard
from reservoir_cli.server.state import ServerState
from reservoir_cli.server.web.access import missing
from reservoir_cli.server.web.handlers import icon, routes

_PREFIX = "/k/"
#: The place of the token in a path: a wrong one may be that of another server.
_TOKEN = re.compile(r"/k/[^/]*")


def build_app(state: ServerState) -> Starlette:
    """Return the server's application."""
    proxy, mcp = Proxy(state), McpEndpoint(state)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with proxy.running(), mcp.running():
            yield

    app = Starlette(
        routes=[
            Route("/ui", _redirect_to_page),
            Route("/favicon.ico", icon),
            Mount("/ui", routes=list(routes())),
            Mount("/", app=TokenGate(state, proxy, mcp)),
        ],
        middleware=[
            Middleware(RequestLog, log=state.log, token=state.token),
            Middleware(Guard, hosts=state.hosts),
        ],
        exception_handlers={HTTPException: missing},
        lifespan=lifespan,
    )
    app.state.server = state
    return app


async def _redirect_to_page(_request: Request) -> RedirectResponse:
    return RedirectResponse("/ui/")


class TokenGate:
    """Require the token at the start of the path, and strip it."""

    def __init__(self, state: ServerState, proxy: ASGIApp, mcp: ASGIApp) -> None:
        self._state, self._proxy, self._mcp = state, proxy, mcp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["raw_path"].decode("ascii", "replace")
        token, rest = split_token(path)
        if token is None and self._state.open_proxy:
            app = self._proxy
        elif token is None or not secrets.compare_digest(token, self._state.token):
            app = _unauthorized
        else:
            app = self._mcp if rest in ("/mcp", "/mcp/") else self._proxy
        await app(dict(scope, reservoir_path=rest), receive, send)


def split_token(path: str) -> tuple[str | None, str]:
    """Return the token in a path, if any, and the rest of the path."""
    if not path.startswith(_PREFIX):
        return None, path
    token, slash, rest = path.removeprefix(_PREFIX).partition("/")
    return token, slash + rest


async def _unauthorized(scope: Scope, receive: Receive, send: Send) -> None:
    problem = "the base URL has no token or a wrong one; reservoir serve prints the complete URL"
    error = {"type": "authentication_error", "code": "reservoir_token", "message": problem}
    await JSONResponse({"type": "error", "error": error}, 401)(scope, receive, send)


class RequestLog:
    """Log method, path without the token, status, duration, and ``scope["reservoir_log"]``."""

    def __init__(self, app: ASGIApp, log: Callable[[str], None], token: str) -> None:
        self._app, self._log, self._token = app, log, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0
        notes: list[str] = scope.setdefault("reservoir_log", [])

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            ms = round((time.monotonic() - began) * 1000)
            now = datetime.now().astimezone().isoformat(timespec="seconds")
            request = [now, scope["method"], printable_path(scope, self._token)]
            self._log(" ".join([*request, str(status or "-"), f"{ms} ms", *notes]))


def printable_path(scope: Scope, token: str) -> str:
    """Return a path on one line, without query and token, which a mistyped URL has anywhere."""
    path = _TOKEN.sub("", scope["raw_path"].decode("ascii", "replace")).replace(token, "…")
    printable = "".join(letter if letter.isprintable() else "?" for letter in path)
    return printable[: limits.MAX_LOGGED_PATH] or "/"
