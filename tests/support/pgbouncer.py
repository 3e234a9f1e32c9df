"""A real pgbouncer in transaction mode before a server."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path


def program() -> str | None:
    """Return the path of pgbouncer, if it is installed."""
    return shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")


class Pool:
    """A pgbouncer that gives each transaction one of a few connections to a server."""

    def __init__(self, server_port: int, size: int = 4) -> None:
        command = [str(program())]
        self._folder = Path(tempfile.mkdtemp(prefix="reservoir-pool-"))
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
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
        self._process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
        self._wait()

    def url(self, direct: str) -> str:
        """Return the URL of a database of the server, through the pool."""
        head, _, database = direct.rpartition("/")
        return f"{head.rpartition(':')[0]}:{self.port}/{database}"

    def _wait(self) -> None:
        for _ in range(1_000):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.02)
        raise AssertionError("the pool does not answer")

    def stop(self) -> None:
        """End the pool."""
        self._process.terminate()
        self._process.wait(30)
        shutil.rmtree(self._folder, ignore_errors=True)
