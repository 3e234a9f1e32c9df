"""Run the server process: open its socket, serve until a signal, and shut down."""

import asyncio
import ctypes
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from subprocess import Popen
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from reservoir_cli.agents.warm_store import Opener
from reservoir_cli.errors import ReservoirError
from reservoir_cli.server import limits, running_servers, security
from reservoir_cli.server.app import build_app
from reservoir_cli.server.background_work import Traffic
from reservoir_cli.server.security import host_names
from reservoir_cli.server.state import ServerState, StoreThread
from reservoir_cli.server.sync_in_pauses import SyncTimer
from reservoir_cli.settings import upstreams
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.reload import LiveConfig
from reservoir_cli.util.timeouts import LOCKED_STORE, LOCKED_STORE_OF_REQUEST

_ARENA_MAX = -8  # M_ARENA_MAX of glibc's malloc.h: limits the number of heaps
_HOST_HINT = "--host takes an address of this machine, such as 127.0.0.1"
#: Seconds a thread runs before Python switches to another; a tenth of the default. A question is
#: handed from thread to thread, and may wait that long each time.
_SWITCH_INTERVAL = 0.0005


class Server(uvicorn.Server):
    """A server that calls back when it is ready."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()


def serve(
    config: Config,
    open_reservoir: Opener,
    *,
    host: str,
    port: int,
    typed_upstreams: Mapping[str, str],
    open_proxy: bool,
    allowed_hosts: Collection[str],
    ready: Callable[[ServerState], None],
    start_sync: Callable[[], Popen[bytes]],
    log: Callable[[str], None],
) -> None:
    """Serve until a signal ends the process; ReservoirError if port or store is not usable.

    :param ready: called once the server accepts requests.
    :param start_sync: starts a sync of the sources in another process.
    """
    upstreams.resolve(config.upstreams, typed_upstreams)
    _stop_on_hangup()
    _share_memory()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    listener = listen(host, port)
    state = new_state(
        config,
        open_reservoir,
        origin=f"http://{_url_host(host)}:{listener.getsockname()[1]}",
        typed_upstreams=typed_upstreams,
        open_proxy=open_proxy,
        hosts=host_names(host, allowed_hosts),
        log=log,
    )
    timer = SyncTimer(state, start_sync)

    def begin() -> None:
        ready(state)
        timer.start()

    try:
        state.writer.submit(lambda _: None).result()
        # On a signal, uvicorn ends its loop and then raises the signal again.
        build_server(build_app(state), begin).run(sockets=[listener])
    finally:
        timer.stop()
        running_servers.forget(os.getpid())
        close(state)
        listener.close()


def new_state(
    config: Config,
    open_reservoir: Opener,
    *,
    typed_upstreams: Mapping[str, str],
    log: Callable[[str], None],
    **others: Any,
) -> ServerState:
    """Return the state of a new server, with its threads started."""
    settings = LiveConfig(
        config, log, lambda current: upstreams.resolve(current.upstreams, typed_upstreams)
    )
    traffic = Traffic()

    def new_thread(name: str, patience: float = LOCKED_STORE, **others: StoreThread) -> StoreThread:
        return StoreThread(open_reservoir, settings, name, patience, traffic, **others)

    writer = new_thread("writes")
    return ServerState(
        settings=settings,
        open_reservoir=open_reservoir,
        token=security.load_token(),
        reader=new_thread("questions", LOCKED_STORE_OF_REQUEST, recorder=writer),
        writer=writer,
        embedder=new_thread("embedding"),
        traffic=traffic,
        typed_upstreams=typed_upstreams,
        log=log,
        **others,
    )


def close(state: ServerState) -> None:
    """Finish the queued writes, and close the store."""
    state.reader.close()
    state.writer.close()
    state.embedder.close()


def build_server(app: Starlette, on_ready: Callable[[], None]) -> Server:
    """Return a server whose libraries write no logs, since these could quote requests."""
    for name in ("uvicorn", "uvicorn.error", "httpx2", "httpcore2"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    return Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            http=TimedProtocol,
            ws="none",
            lifespan="on",
            limit_concurrency=limits.MAX_CONNECTIONS,
            timeout_graceful_shutdown=limits.LAST_ANSWERS,
        ),
        on_ready,
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, or raise ReservoirError if the address is in use or not ours."""
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address[:2], family=family)
    except socket.gaierror as error:
        problem = error.strerror or "no such host"
        message = f"cannot listen at {host}:{port}: {problem}"
        raise ReservoirError(message, hint=_HOST_HINT) from None
    except UnicodeError:
        raise ReservoirError(f"{host} is not a valid host name", hint=_HOST_HINT) from None
    except OSError as error:
        hint = "--port N selects another port"
        # Windows has texts for errors of sockets only here, where Python adds the address.
        problem = (error.strerror or str(error)).partition(" (while ")[0]
        if error.errno == errno.EADDRNOTAVAIL:
            hint = _HOST_HINT
        elif error.errno == errno.EADDRINUSE and running_servers.is_at(port):
            hint = f"Reservoir's server is running there: reservoir serve --stop stops it; {hint}"
        elif error.errno == errno.EADDRINUSE:
            hint = f"another program is using it; {hint}"
        raise ReservoirError(f"cannot listen at {host}:{port}: {problem}", hint=hint) from None
    # Inherited by connections. Without it, the start of an answer's body arrives 40 ms after its
    # headers, because asyncio does not recognise these sockets as TCP.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _stop_on_hangup() -> None:
    """Stop as on SIGTERM if the terminal is closed, unless ``nohup`` started the server."""
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def _share_memory() -> None:
    """Use one heap for all threads if the C library can; else arrays are allocated repeatedly."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def _url_host(host: str) -> str:
    if host in ("0.0.0.0", ""):
        return "127.0.0.1"
    if host == "::":
        return "[::1]"  # it accepts no connections to addresses of version 4
    return f"[{host}]" if ":" in host else host


class TimedProtocol(H11Protocol):
    """HTTP connections that are closed if the head of a request does not arrive."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Read a piece of a request; wait for the next one unless its head is complete."""
        self._stop_timer()
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(limits.HEAD_TIMEOUT, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
