"""The state that the parts of a running server share."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reservoir_cli.agents.kept_store import Opener
from reservoir_cli.server.background_work import Traffic
from reservoir_cli.server.handshake import ServerIdentity
from reservoir_cli.server.store_threads import StoreThread
from reservoir_cli.settings import upstreams
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.reload import LiveConfig
from reservoir_cli.settings.upstreams import Upstream
from reservoir_cli.util.process_start_time import process_start_time
from reservoir_cli.util.time_limits import LOCKED_STORE


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """A running server's state; ``app.state.server`` and ``request.app.state.server``.

    :param settings: read again when their file changes.
    :param open_reservoir: opens another connection to the store; prefer ``reader`` and ``writer``.
    :param reader: the thread that answers questions. It passes its own
        :class:`~reservoir_cli.reservoir.Reservoir` to the functions it runs.
    :param writer: the thread for everything that writes or takes long.
    :param embedder: the thread that embeds new messages, so that storing never waits for the model.
    :param traffic: the questions that these threads are answering; background work waits for them.
    :param typed_upstreams: upstream URLs by name, for this run only.
    :param open_proxy: whether the proxy's routes work without the token.
    """

    settings: LiveConfig
    origin: str
    token: str
    open_reservoir: Opener
    reader: StoreThread
    writer: StoreThread
    embedder: StoreThread
    traffic: Traffic = field(default_factory=Traffic)
    typed_upstreams: Mapping[str, str] = field(default_factory=dict)
    open_proxy: bool = False
    hosts: frozenset[str] = frozenset()
    log: Callable[[str], None] = lambda _: None

    def new_thread(self, name: str, patience: float = LOCKED_STORE) -> StoreThread:
        """Return another thread with its own connection to the store."""
        return StoreThread(self.open_reservoir, self.settings, name, patience, self.traffic)

    @property
    def config(self) -> Config:
        """The current settings."""
        return self.settings.current()

    @property
    def upstreams(self) -> Mapping[str, Upstream]:
        """The upstreams by name."""
        return upstreams.resolve(self.config.upstreams, self.typed_upstreams)

    @property
    def identity(self) -> ServerIdentity:
        """The identity that this process proves to programs."""
        pid = os.getpid()
        return ServerIdentity(self.token, self.origin, pid, process_start_time(pid) or "")

    @property
    def base_url(self) -> str:
        """The URL of the OpenAI protocol, ready to paste into a client's settings."""
        return f"{self.origin}/k/{self.token}/v1"

    @property
    def page(self) -> str:
        """The URL of the page."""
        return f"{self.origin}/ui/"
