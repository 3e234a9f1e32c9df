"""One line of the log for each request, without any text of it."""

import re
import time
from collections.abc import Callable
from datetime import datetime

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_TOKEN = re.compile(r"^/k/[^/]*")
_LONGEST_PATH = 100


class RequestLog:
    """Logs method, path, status, time, and what a route has left in ``scope["reservoir_log"]``."""

    def __init__(self, app: ASGIApp, log: Callable[[str], None]) -> None:
        self._app, self._log = app, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and log it when it has ended."""
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
            took = round((time.monotonic() - began) * 1000)
            now = datetime.now().astimezone().isoformat(timespec="seconds")
            words = [now, scope["method"], shown_path(scope), str(status or "-"), f"{took} ms"]
            self._log(" ".join([*words, *notes]))


def shown_path(scope: Scope) -> str:
    """Return the path of a request without token and query, and of one line."""
    path = _TOKEN.sub("", scope["raw_path"].decode("ascii", "replace"))
    printable = "".join(letter if letter.isprintable() else "?" for letter in path)
    return printable[:_LONGEST_PATH] or "/"
