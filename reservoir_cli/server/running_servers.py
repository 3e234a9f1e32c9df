"""Keep a file of the running servers, so that other commands can reach and stop them."""

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from reservoir_cli.errors import ReservoirError
from reservoir_cli.server.handshake import MAX_PROOF, NONCE_BYTES, ServerIdentity
from reservoir_cli.settings import paths
from reservoir_cli.util.private_files import exclusive_lock, make_private_dir, write_private
from reservoir_cli.util.programs import process_start_time
from reservoir_cli.util.read_files import read_regular, suggest_fix
from reservoir_cli.util.timeouts import SERVER_ANSWER, SERVER_STOP

_POLL = 0.05
_MAX_ANSWER = 4096 + MAX_PROOF  # the most bytes that are read of an answer: its head, and the proof
#: A base URL: the origin, the token and the version.
_TOKEN_PREFIX, _VERSION = "/k/", "/v1"


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server's entry in the file, with the base URL for programs, which has the token.

    :param started: when the process started, to tell it from a later one with its PID, or empty.
    """

    base_url: str
    pid: int
    started: str

    @property
    def page(self) -> str:
        """The URL of the page."""
        return f"{self._identity.origin}/ui/"

    @property
    def _identity(self) -> ServerIdentity:
        origin, _, rest = self.base_url.partition(_TOKEN_PREFIX)
        return ServerIdentity(rest.removesuffix(_VERSION), origin, self.pid, self.started)

    def is_alive(self) -> bool:
        """Return whether the process of this entry still runs."""
        return (process_start_time(self.pid) or "") == self.started

    def make_code(self) -> str | None:
        """Return a one-time code, if the server proves itself: another one may have its port."""
        import secrets

        nonce = secrets.token_urlsafe(NONCE_BYTES)
        if not self.is_alive():
            return None
        second = self._identity.check_proof(nonce, self._ask_for_proof(nonce))
        return None if second is None else self._identity.make_code(nonce, second)

    def _ask_for_proof(self, nonce: str) -> str:
        url = urlsplit(self._identity.origin)
        request = f"GET /ui/proof?nonce={nonce} HTTP/1.0\r\nHost: {url.netloc}\r\n\r\n"
        with suppress(OSError, ValueError):
            address = (url.hostname or "", url.port or 0)
            with socket.create_connection(address, SERVER_ANSWER) as connection:
                connection.sendall(request.encode("ascii"))
                answer = b"".join(_receive(connection))
                return answer.partition(b"\r\n\r\n")[2].decode("ascii")
        return ""

    def stop(self) -> bool:
        """Stop the server and wait; return whether it ended. First ask :meth:`can_be_stopped`."""
        with suppress(OSError):
            os.kill(self.pid, signal.SIGTERM)
        deadline = time.monotonic() + SERVER_STOP
        while self.is_alive() and (self.started or self in read_servers()):
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL)
        forget(self.pid)  # on Windows a killed server cannot remove its own entry
        return True

    def can_be_stopped(self) -> bool:
        """Return whether the process with this PID is the server, not a later one."""
        return self.is_alive() and (bool(self.started) or self.make_code() is not None)


def _receive(connection: socket.socket) -> Iterator[bytes]:
    deadline, size = time.monotonic() + SERVER_ANSWER, 0
    while size < _MAX_ANSWER and (seconds := deadline - time.monotonic()) > 0:
        connection.settimeout(seconds)
        piece = connection.recv(_MAX_ANSWER - size)
        if not piece:
            return
        size += len(piece)
        yield piece


def announce(base_url: str) -> None:
    """Add this process to the file, if that can be written."""
    pid = os.getpid()
    server = RunningServer(base_url, pid, process_start_time(pid) or "")
    with suppress(OSError), exclusive_lock(paths.server_file().parent):
        _write([*read_servers(), server])


def require_writable() -> None:
    """Raise ReservoirError if a new server could not add itself to the file."""
    file = paths.server_file()
    try:
        make_private_dir(file.parent)
        with exclusive_lock(file.parent):
            _write(read_servers())
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
    return any(_port(server) == port and server.make_code() for server in read_servers())


def _port(server: RunningServer) -> int | None:
    with suppress(ValueError):
        return urlsplit(server.base_url).port
    return None


def _parse_entry(entry: Any) -> RunningServer | None:
    try:
        server = RunningServer(str(entry["base_url"]), int(entry["pid"]), str(entry["started"]))
    except (TypeError, KeyError, ValueError):
        return None
    is_valid = server.base_url.startswith("http://") and _TOKEN_PREFIX in server.base_url
    return server if is_valid and server.pid > 1 else None


def forget(pid: int) -> None:
    """Remove a server from the file: this process, or one that no longer answers."""
    with suppress(OSError), exclusive_lock(paths.server_file().parent):
        if others := [server for server in read_servers() if server.pid != pid]:
            _write(others)
        else:
            paths.server_file().unlink(missing_ok=True)


def _write(servers: list[RunningServer]) -> None:
    text = json.dumps([asdict(server) for server in servers])
    write_private(paths.server_file(), text + "\n")
