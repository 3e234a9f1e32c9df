"""Run a real proxy in a thread, in front of a provider that the test controls."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server_thread import PATIENCE, running
from starlette.types import ASGIApp

from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server import process
from reservoir_cli.server.app import build_app
from reservoir_cli.server.security import host_names
from reservoir_cli.server.state import ServerState
from reservoir_cli.settings import config

#: The status and the duration in the line that the log has for each request.
_OF_REQUEST = re.compile(r" (?:\d+|-) \d+ ms\b")


@dataclass
class Served:
    """A running server."""

    state: ServerState
    store: Path | str
    lines: list[str]

    @property
    def root(self) -> str:
        """Return the base URL without the API version."""
        return self.state.base_url.removesuffix("/v1")

    def settle(self, requests: int = 1) -> None:
        """Wait until this many requests have ended and are stored."""
        deadline = time.monotonic() + PATIENCE
        while sum(bool(_OF_REQUEST.search(line)) for line in list(self.lines)) < requests:
            assert time.monotonic() < deadline, "the requests do not end"
            time.sleep(0.005)
        self.state.writer.submit(lambda _: None).result(PATIENCE)


@contextmanager
def serving(
    store: Path | str,
    urls: Mapping[str, str] | None = None,
    wrap: Callable[[ASGIApp], ASGIApp] = lambda app: app,
    **settings: Any,
) -> Iterator[Served]:
    """Serve a store until the block ends.

    :param wrap: middleware between the clients and the server.
    """
    listener, lines = process.listen("127.0.0.1", 0), []  # type: ignore[var-annotated]
    known = config.load()

    def open_reservoir(*, create: bool, notify: Any, **options: Any) -> Reservoir:
        return Reservoir.open(store, create=create, ready_only=True, notify=notify, **options)

    options = {"hosts": host_names("127.0.0.1", ()), "log": lines.append, **settings}
    state = process.new_state(
        known,
        open_reservoir,
        origin=f"http://127.0.0.1:{listener.getsockname()[1]}",
        typed_upstreams=urls or {},
        **options,
    )
    ready = threading.Event()
    # As in a real server: its threads would otherwise create the store at the same time, and some
    # of them wait too briefly for each other.
    state.writer.submit(lambda _: None).result(PATIENCE)
    server = process.build_server(wrap(build_app(state)), ready.set)
    try:
        with running(server, listener, ready):
            yield Served(state, store, lines)
    finally:
        process.close(state)
        listener.close()
