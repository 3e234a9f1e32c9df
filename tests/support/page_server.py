"""Run a server with its web page in this process, and clients that are signed in."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx2
import plain_http
import pytest
import uvicorn
from server_thread import PATIENCE, running
from starlette.applications import Starlette

from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Message
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server import running_servers
from reservoir_cli.server.app import build_app
from reservoir_cli.server.process import Server, close, listen
from reservoir_cli.server.running_servers import RunningServer
from reservoir_cli.server.security import host_names
from reservoir_cli.server.state import ServerState, StoreThread
from reservoir_cli.settings import config
from reservoir_cli.settings.reload import LiveConfig

TOKEN = "a-token-for-tests-only"
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
#: Hostile messages: text, what its HTML must not contain, and what it must contain.
HOSTILE = (
    ("<script>alert(1)</script>", "<script", "&lt;script&gt;"),
    ("<img src=x onerror=alert(1)>", "<img", "&lt;img"),
    ("[go](javascript:alert(1))", "href", "javascript:alert(1)"),
    ("[go](JaVaScRiPt&#58;alert(1))", 'href="j', "go"),
    ("![pixel](https://evil.example/x.png)", "<img", "pixel"),
    ("{{7*7}} {% raw %}", "49", "{{7*7}} {% raw %}"),
    ("<style>*{display:none}</style>", "<style", "&lt;style&gt;"),
    ('```"><script>alert(1)</script>\nx\n```', "<script", "x"),
    ("abc\u202egnp.exe", "\u202e", "[U+202E]"),
    ("bell\x07 escape\x1b[31m", "\x1b", "␇"),
    ('<a href="https://x" onclick="f()">y</a>', "<a", "onclick"),
    ("|a|\n|:-|\n|1|", "style=", "<td>1</td>"),
    ("# A heading", "<h1", "<h3>A heading</h3>"),
)


@dataclass(frozen=True, slots=True)
class PageServer:
    """A running server."""

    origin: str
    app: Starlette
    log: list[str]

    @property
    def violations(self) -> int:
        """Return how many policy violations browsers have reported."""
        return self.app.state.page.violations

    def code(self) -> str:
        """Return a one-time code, as ``reservoir open`` makes it."""
        server = self.app.state.server.identity
        known = RunningServer(f"{self.origin}/k/{TOKEN}/v1", server.pid, server.started)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(running_servers, "SERVER_ANSWER", PATIENCE)
            code = known.make_code()
        assert code, "the server does not prove that it knows the token"
        return code

    @contextmanager
    def client(self) -> Iterator[httpx2.Client]:
        """Return a client that is signed in."""
        with plain_http.client(base_url=self.origin, follow_redirects=True) as client:
            client.post("/ui/enter", data={"code": self.code()}).raise_for_status()
            yield client


def csrf_of(html: str) -> str:
    """Return the CSRF token in the forms of a page."""
    return re.findall(r'name="csrf" value="([^"]+)"', html)[-1]


@contextmanager
def serving(location: str, embedder: Embedder | None = None) -> Iterator[PageServer]:
    """Serve the page of a store on a free port."""

    def open_reservoir(
        *,
        create: bool,
        patience: float | None = None,
        notify: Callable[[str], None],
        known: config.Config | None = None,
    ) -> Reservoir:
        return Reservoir.open(
            location,
            known=known,
            create=create,
            patience=30.0 if patience is None else patience,
            notify=notify,
            embedder=embedder,
            offline=True,
            ready_only=True,
        )

    listener, log, ready = listen("127.0.0.1", 0), [], threading.Event()
    settings = LiveConfig(config.load(None), log.append)
    state = ServerState(
        settings=settings,
        origin=f"http://127.0.0.1:{listener.getsockname()[1]}",
        token=TOKEN,
        open_reservoir=open_reservoir,
        reader=StoreThread(open_reservoir, settings, "questions"),
        writer=StoreThread(open_reservoir, settings, "writes"),
        embedder=StoreThread(open_reservoir, settings, "embedding"),
        hosts=host_names("127.0.0.1", ()),
        log=log.append,
    )
    app = build_app(state)
    server = Server(uvicorn.Config(app, log_config=None, access_log=False, ws="none"), ready.set)
    try:
        with running(server, listener, ready):
            yield PageServer(state.origin, app, log)
    finally:
        close(state)
        listener.close()


def message(role: str, text: str, minute: int, conversation: str | None = None) -> Message:
    """Return a message some minutes after the start."""
    moment = START + timedelta(minutes=minute)
    return Message(role, text, moment, conversation_id=conversation)
