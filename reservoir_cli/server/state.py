"""What the parts of a running server share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reservoir_cli.server.background_work import Traffic
from reservoir_cli.server.store_threads import Opener, StoreThread
from reservoir_cli.settings import upstreams
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.reload import LiveConfig
from reservoir_cli.settings.upstreams import Upstream


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """A running server; ``app.state.server``, and so ``request.app.state.server``.

    :param settings: read again when their file changes.
    :param origin: such as ``http://127.0.0.1:3017``, without a slash at the end.
    :param token: what programs have in the path.
    :param open_reservoir: opens the store once more; prefer ``reader`` and ``writer``.
    :param reader: the thread for questions. A function that is passed to its ``run`` gets a
        :class:`~reservoir_cli.reservoir.Reservoir` of that thread's own.
    :param writer: the thread for everything that writes or takes long.
    :param embedder: the thread that embeds what was stored: storing never waits for the model.
    :param traffic: what these threads are asked, which other work waits for.
    :param typed_upstreams: URLs of models by name, for this run only.
    :param open_proxy: the proxy's routes work without the token.
    :param hosts: names by which requests may call this machine; see :mod:`.security`.
    :param log: prints one line.
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

    def new_thread(self, name: str, patience: float = 30.0) -> StoreThread:
        """Return one more thread with the store open."""
        return StoreThread(self.open_reservoir, self.settings, name, patience, self.traffic)

    @property
    def config(self) -> Config:
        """The settings as they are now."""
        return self.settings.current()

    @property
    def upstreams(self) -> Mapping[str, Upstream]:
        """Where models are, by name."""
        return upstreams.resolve(self.config.upstreams, self.typed_upstreams)

    @property
    def base_url(self) -> str:
        """The URL of the OpenAI protocol, ready to paste into a client's settings."""
        return f"{self.origin}/k/{self.token}/v1"

    @property
    def page(self) -> str:
        """The URL of the page."""
        return f"{self.origin}/ui/"
