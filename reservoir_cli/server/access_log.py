"""Log one line per request, without any of its text."""

import re
import time
from collections.abc import Callable
from datetime import datetime

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reservoir_cli.server import limits

#: The place of the token in a path: a wrong one may be that of another server.
_TOKEN = re.compile(r"/k/[^/]*")


class RequestLog:
    """Log method, path without the token, status, duration, and ``scope["reservoir_log"]``."""

    def __init__(self, app: ASGIApp, log: Callable[[str], None], token: str) -> None:
        self._app, self._log, self._token = app, log, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and log it when it is complete."""
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
