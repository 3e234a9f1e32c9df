"""Run a real pgbouncer in transaction mode in front of a server."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from postgres_server import free_port

#: Seconds that a loaded machine may take.
_PATIENCE = 300
#: How often a pool is started before its failure counts.
_ATTEMPTS = 3


def program() -> str | None:
    """Return the path of pgbouncer; ``None`` if it is not installed."""
    return shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")


class Pool:
    """A pgbouncer that gives each transaction one of a few connections to a server."""

    def __init__(self, server_port: int, size: int = 4) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="reservoir-pool-"))
        for _ in range(_ATTEMPTS):  # another program may take the port first
            self.port = free_port()
            self._process = self._start(server_port, size)
            if self._listens():
                return
            self._process.kill()
            self._process.wait()
        raise AssertionError("the pool does not answer")

    def _start(self, server_port: int, size: int) -> "subprocess.Popen[bytes]":
        command = [str(program())]
        users, settings = self._folder / "users", self._folder / "pool.ini"
        users.write_text('"postgres" ""\n', encoding="utf-8")
        settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={server_port}\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {users}\npool_mode = transaction\n"
            f"default_pool_size = {size}\nserver_login_retry = 1\n",
            encoding="utf-8",
        )
        command.append(str(settings))
        if os.geteuid() == 0:
            for path in (self._folder, users, settings):
                os.chown(path, 65534, 65534)
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, stdout=quiet, stderr=quiet)

    def url(self, direct: str) -> str:
        """Return the URL of a database of the server, through the pool."""
        head, _, database = direct.rpartition("/")
        return f"{head.rpartition(':')[0]}:{self.port}/{database}"

    def _listens(self) -> bool:
        """Wait until the pool accepts connections; return whether it does."""
        deadline = time.monotonic() + _PATIENCE
        while self._process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return True
            time.sleep(0.02)
        return False

    def stop(self) -> None:
        """End the pool."""
        self._process.terminate()
        self._process.wait(_PATIENCE)
        shutil.rmtree(self._folder, ignore_errors=True)
