"""The process of the server: its socket, its signals and its end."""

import ctypes
import errno
import logging
import os
import socket
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

import uvicorn
from starlette.applications import Starlette

from reservoir_cli.errors import ReservoirError
from reservoir_cli.server import running_servers, token
from reservoir_cli.server.app import build_app
from reservoir_cli.server.background_work import Traffic
from reservoir_cli.server.limits import MOST_CONNECTIONS
from reservoir_cli.server.security import names_of
from reservoir_cli.server.state import ServerState
from reservoir_cli.server.store_threads import HASTE, Opener, StoreThread
from reservoir_cli.settings import upstreams
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.reload import LiveConfig

#: Seconds that answers in progress have left when the server is asked to end.
_LAST_ANSWERS = 10
#: Of glibc's malloc.h: how many heaps there may be.
_ARENA_MAX = -8
#: What --host can be.
_HOSTS = "--host takes an address of this machine, such as 127.0.0.1"
#: Seconds that a thread computes in Python while others wait to; usually ten times as many. A
#: question goes from thread to thread, and would wait so long each time.
_SWITCH = 0.0005


class Server(uvicorn.Server):
    """A server that says when it is ready."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
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
    log: Callable[[str], None],
) -> None:
    """Serve until a signal ends the process.

    :param port: 0 for any that is free.
    :param ready: called when requests are answered.
    :param log: prints one line.
    :raises ReservoirError: the port is taken, or the store cannot be opened.
    """
    upstreams.resolve(config.upstreams, typed_upstreams)
    _share_memory()
    sys.setswitchinterval(_SWITCH)
    listener = listen(host, port)
    state = new_state(
        config,
        open_reservoir,
        origin=f"http://{_shown(host)}:{listener.getsockname()[1]}",
        typed_upstreams=typed_upstreams,
        open_proxy=open_proxy,
        hosts=names_of(host, allowed_hosts),
        log=log,
    )
    try:
        state.writer.submit(lambda _: None).result()
        # A signal ends the loop; it is raised again at the end.
        build_server(build_app(state), lambda: ready(state)).run(sockets=[listener])
    finally:
        running_servers.withdraw()
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
    """Return the state of a server that begins."""
    settings = LiveConfig(
        config, log, lambda known: upstreams.resolve(known.upstreams, typed_upstreams)
    )
    traffic = Traffic()

    def new_thread(name: str, patience: float = 30.0, **others: StoreThread) -> StoreThread:
        return StoreThread(open_reservoir, settings, name, patience, traffic, **others)

    writer = new_thread("writes")
    return ServerState(
        settings=settings,
        open_reservoir=open_reservoir,
        token=token.load_token(),
        reader=new_thread("questions", HASTE, recorder=writer),
        writer=writer,
        embedder=new_thread("embedding"),
        traffic=traffic,
        typed_upstreams=typed_upstreams,
        log=log,
        **others,
    )


def close(state: ServerState) -> None:
    """Finish what is to be stored, and close the store."""
    state.reader.close()
    state.writer.close()
    state.embedder.close()


def build_server(app: Starlette, on_ready: Callable[[], None]) -> Server:
    """Return a server that writes no log of its own, which could quote what was sent."""
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
            ws="none",
            lifespan="on",
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=_LAST_ANSWERS,
        ),
        on_ready,
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address.

    :raises ReservoirError: it is taken, or not this machine's.
    """
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address[:2], family=family)
    except socket.gaierror as error:
        problem = error.strerror or "no such host"
        raise ReservoirError(f"cannot listen at {host}:{port}: {problem}", hint=_HOSTS) from None
    except UnicodeError:
        raise ReservoirError(f"{host} is no name of a host", hint=_HOSTS) from None
    except OSError as error:
        hint = "another server runs there; --port N takes another port"
        problem = os.strerror(error.errno) if error.errno else str(error)
        if error.errno != errno.EADDRINUSE:
            hint = _HOSTS if error.errno == errno.EADDRNOTAVAIL else "--port N takes another port"
        raise ReservoirError(f"cannot listen at {host}:{port}: {problem}", hint=hint) from None
    # Connections inherit it. Else an answer's first bytes wait 40 ms behind its head: asyncio does
    # not know these sockets as TCP's.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _share_memory() -> None:
    """Let all threads take memory from the main thread's heap, where the C library can do that.

    In heaps of their own the arrays of every question are given back and asked for again.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def _shown(host: str) -> str:
    """Return an address as a URL for this machine has it."""
    if host in ("0.0.0.0", "::", ""):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def announce(state: ServerState) -> None:
    """Write down where the server is."""
    with suppress(OSError):
        running_servers.announce(state.base_url, state.page)
