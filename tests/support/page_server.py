"""A running server with the page, in this process, and a client that has a session."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2
import uvicorn
from starlette.applications import Starlette

from reservoir_cli.embedding import Embedder
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server.app import build_app
from reservoir_cli.server.run import Server, listen
from reservoir_cli.server.security import names_of
from reservoir_cli.server.state import ServerState
from reservoir_cli.server.stores import StoreThread
from reservoir_cli.settings import config

TOKEN = "a-token-for-tests-only"


@dataclass(frozen=True, slots=True)
class PageServer:
    """A server that answers."""

    origin: str
    app: Starlette
    log: list[str]

    @property
    def violations(self) -> int:
        """How often a browser reported that the policy stopped something."""
        return self.app.state.page.violations

    def code(self) -> str:
        """Return a one-time code, as ``reservoir open`` gets it."""
        return httpx2.post(f"{self.origin}/k/{TOKEN}/ui/codes").raise_for_status().text

    @contextmanager
    def client(self) -> Iterator[httpx2.Client]:
        """Return a client with a session."""
        with httpx2.Client(base_url=self.origin, follow_redirects=True) as client:
            client.post("/ui/enter", data={"code": self.code()}).raise_for_status()
            yield client


def csrf_of(html: str) -> str:
    """Return the token that the forms of a page carry."""
    return re.findall(r'name="csrf" value="([^"]+)"', html)[-1]


@contextmanager
def serving(location: str, embedder: Embedder | None = None) -> Iterator[PageServer]:
    """Serve the page of a store at a free port."""

    def open_reservoir(
        *, create: bool, patience: float | None = None, notify: Callable[[str], None]
    ) -> Reservoir:
        return Reservoir.open(
            location,
            create=create,
            patience=30.0 if patience is None else patience,
            notify=notify,
            embedder=embedder,
            offline=True,
            ready_only=True,
        )

    listener, log, ready = listen("127.0.0.1", 0), [], threading.Event()
    state = ServerState(
        config=config.load(None),
        origin=f"http://127.0.0.1:{listener.getsockname()[1]}",
        token=TOKEN,
        open_reservoir=open_reservoir,
        reader=StoreThread(open_reservoir, "questions"),
        writer=StoreThread(open_reservoir, "writes"),
        hosts=names_of("127.0.0.1", ()),
        log=log.append,
    )
    app = build_app(state)
    server = Server(uvicorn.Config(app, log_config=None, access_log=False, ws="none"), ready.set)
    thread = threading.Thread(target=server.run, args=([listener],), name="server")
    thread.start()
    try:
        assert ready.wait(30), "the server does not answer"
        yield PageServer(state.origin, app, log)
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
        state.reader.close()
        state.writer.close()
