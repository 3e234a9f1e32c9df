"""Keep a file of the running servers, so that other commands can reach and stop them."""

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from reservoir_cli.errors import ReservoirError
from reservoir_cli.settings import paths
from reservoir_cli.util.private_files import exclusive_lock, make_private_dir, write_private
from reservoir_cli.util.read_files import read_regular, suggest_fix

#: Seconds that a server may take to answer, and to stop.
_ANSWER_TIMEOUT, _STOP_TIMEOUT = 10.0, 60.0
_POLL = 0.05


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server's entry in the file.

    :param base_url: the base URL for programs, with the token.
    :param page: the URL of the page.
    """

    base_url: str
    page: str
    pid: int

    def request_code(self) -> str | None:
        """Return a one-time code that opens the page; ``None`` if the server does not answer."""
        from urllib.request import ProxyHandler, Request, build_opener  # loads OpenSSL

        request = Request(f"{self.base_url.removesuffix('/v1')}/ui/codes", method="POST")
        try:
            # Ignore configured proxies: the token must not leave this machine.
            with build_opener(ProxyHandler({})).open(request, timeout=_ANSWER_TIMEOUT) as answer:
                return str(answer.read(200).decode("ascii"))
        except (OSError, ValueError):
            return None

    def stop(self) -> bool:
        """Stop the server, wait until it has ended, and return whether it did.

        Call this only if it has just answered: otherwise its PID may belong to another process.
        """
        with suppress(OSError):
            os.kill(self.pid, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_TIMEOUT
        while os.name == "posix" and self in read_servers():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL)
        forget(self.pid)  # on Windows a killed server cannot remove its own entry
        return True


def announce(base_url: str, page: str) -> None:
    """Add this process to the file, if that can be written."""
    with suppress(OSError), exclusive_lock(paths.server_file().parent):
        _write([*read_servers(), RunningServer(base_url, page, os.getpid())])


def require_writable() -> None:
    """Check that a new server can add itself to the file: otherwise nobody would find it.

    :raises ReservoirError: the file cannot be written.
    """
    file = paths.server_file()
    try:
        make_private_dir(file.parent)
        with exclusive_lock(file.parent):
            _write_all(read_servers())
    except OSError as error:
        message = f"cannot write {file}: {error.strerror}"
        raise ReservoirError(message, hint=suggest_fix(error, file)) from None


def read_servers() -> list[RunningServer]:
    """Return the servers in the file; killed servers are still among them."""
    try:
        entries = json.loads(read_regular(paths.server_file()))
    except (OSError, ValueError):
        return []
    servers = map(_parse_entry, entries) if isinstance(entries, list) else ()
    return [server for server in servers if server]


def is_at(port: int) -> bool:
    """Return whether a running server of this home uses a port."""
    return any(_port(server) == port and server.request_code() for server in read_servers())


def _port(server: RunningServer) -> int | None:
    with suppress(ValueError):
        return urlsplit(server.base_url).port
    return None


def _parse_entry(entry: Any) -> RunningServer | None:
    """Return the server of an entry, or ``None`` if the entry is invalid."""
    try:
        server = RunningServer(str(entry["base_url"]), str(entry["page"]), int(entry["pid"]))
    except (TypeError, KeyError, ValueError):
        return None
    return server if server.base_url.startswith("http://") and server.pid > 1 else None


def forget(pid: int) -> None:
    """Remove a server from the file: this process, or one that no longer answers."""
    with suppress(OSError), exclusive_lock(paths.server_file().parent):
        _write([server for server in read_servers() if server.pid != pid])


def _write(servers: list[RunningServer]) -> None:
    if servers:
        _write_all(servers)
    else:
        paths.server_file().unlink(missing_ok=True)


def _write_all(servers: list[RunningServer]) -> None:
    text = json.dumps([asdict(server) for server in servers])
    write_private(paths.server_file(), text + "\n")
