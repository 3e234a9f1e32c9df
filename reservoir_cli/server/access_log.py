"""Log one line per request, without any of its text."""

import re
import time
from collections.abc import Callable
from datetime import datetime

from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The token of a path, wherever it stands: a mistyped base URL has it in another place.
_TOKEN = re.compile(r"/k/[^/]*")
_MAX_PATH = 100


class RequestLog:
    """Log method, path, status, duration, and a route's notes in ``scope["reservoir_log"]``."""

    def __init__(self, app: ASGIApp, log: Callable[[str], None]) -> None:
        self._app, self._log = app, log

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
            words = [now, scope["method"], printable_path(scope), str(status or "-"), f"{ms} ms"]
            self._log(" ".join([*words, *notes]))


def printable_path(scope: Scope) -> str:
    """Return the path of a request on one line, without token and query."""
    path = _TOKEN.sub("", scope["raw_path"].decode("ascii", "replace"))
    printable = "".join(letter if letter.isprintable() else "?" for letter in path)
    return printable[:_MAX_PATH] or "/"
