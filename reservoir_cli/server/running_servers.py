"""The servers that run: each writes down where it is, and is found and ended by that."""

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from reservoir_cli.settings import paths
from reservoir_cli.util.private_files import exclusive_lock, write_private

#: Seconds that a server has to answer, and to end.
_ANSWER, _END = 10.0, 60.0
_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Running:
    """A server, as it wrote itself down.

    :param base_url: of programs, with the token.
    :param page: the URL of the page.
    """

    base_url: str
    page: str
    pid: int

    def code(self) -> str | None:
        """Return a code that opens the page once; ``None`` if the server does not answer."""
        from urllib.request import ProxyHandler, Request, build_opener  # they load OpenSSL

        request = Request(f"{self.base_url.removesuffix('/v1')}/ui/codes", method="POST")
        try:
            # The token is for this machine alone, whatever proxy is set.
            with build_opener(ProxyHandler({})).open(request, timeout=_ANSWER) as answer:
                return str(answer.read(200).decode("ascii"))
        except (OSError, ValueError):
            return None

    def stop(self) -> bool:
        """End the server, and wait until it has ended; return whether it did.

        It must have answered just now: its number may be another process's else.
        """
        with suppress(OSError):
            os.kill(self.pid, signal.SIGTERM)
        end = time.monotonic() + _END
        while os.name == "posix" and self in running():
            if time.monotonic() > end:
                return False
            time.sleep(_PAUSE)
        forget(self)  # on Windows it could not say that it ended
        return True


def announce(base_url: str, page: str) -> None:
    """Write down where this process serves.

    :raises OSError: the file cannot be written.
    """
    with exclusive_lock(paths.server_file().parent):
        _write([*running(), Running(base_url, page, os.getpid())])


def running() -> list[Running]:
    """Return the servers that did not say that they ended, killed ones among them."""
    try:
        written = json.loads(paths.server_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    found = [_parsed(entry) for entry in written] if isinstance(written, list) else []
    return [server for server in found if server]


def _parsed(entry: Any) -> Running | None:
    """Return a server that was written down, or ``None`` if the entry is none."""
    try:
        server = Running(str(entry["base_url"]), str(entry["page"]), int(entry["pid"]))
    except (TypeError, KeyError, ValueError):
        return None
    return server if server.base_url.startswith("http://") and server.pid > 1 else None


def withdraw() -> None:
    """Remove what this process announced."""
    with suppress(OSError):
        _remove(os.getpid())


def forget(server: Running) -> None:
    """Remove a server that does not answer any more."""
    with suppress(OSError):
        _remove(server.pid)


def _remove(pid: int) -> None:
    with exclusive_lock(paths.server_file().parent):
        _write([server for server in running() if server.pid != pid])


def _write(servers: list[Running]) -> None:
    if servers:
        text = json.dumps([asdict(server) for server in servers])
        write_private(paths.server_file(), text + "\n")
    else:
        paths.server_file().unlink(missing_ok=True)
