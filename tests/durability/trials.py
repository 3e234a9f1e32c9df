"""What every trial of durability stands on: real processes, a kill at a random instant, a verdict.

The short trials of ``tests/durability`` and the long ones of ``soak.py`` use the same functions.
"""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reservoir_cli.storage.factory import open_store

if os.name == "posix":
    import forked

#: Long enough for a slow machine; a process that hangs is still ended.
PATIENCE = 300
RESERVOIR = (sys.executable, "-m", "reservoir_cli")


@dataclass
class Tally:
    """What a kind of trial came to.

    :param trials: how often it was tried.
    :param hit: how often the fault struck: the process was killed before its end, or it failed.
    :param lost: messages that were acknowledged and are gone.
    :param wrong: what else is not as it should be, each with the seed that brings it back.
    :param size: bytes that were at stake: of acknowledged messages, or of the file.
    :param note: what else a reader of the figures has to know.
    """

    what: str
    trials: int = 0
    hit: int = 0
    lost: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0
    size: int = 0
    note: str = ""

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the time of a block."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - began

    def hold(self, condition: object, what: str) -> None:
        """Note what is wrong, unless a condition holds."""
        if not condition:
            self.wrong.append(what)

    @property
    def clean(self) -> bool:
        """Whether nothing was lost and nothing is wrong."""
        return not (self.lost or self.wrong)


@dataclass(frozen=True)
class Done:
    """What a process left behind; ``code`` is negative where a signal ended it."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> bool:
        """Whether a failure says in one line what is wrong, and in one what to do, if anything."""
        lines = [line for line in self.err.splitlines() if not line.startswith(("note:", "warn"))]
        first = lines[0] if lines else ""
        rest = all(line.startswith("hint: ") for line in lines[1:])
        return first.startswith("error: ") and rest and "unexpected" not in first


def _may_fork(arguments: Sequence[str], env: Mapping[str, str]) -> bool:
    """Return whether a command needs no Python of its own; the time of a hook begins with it."""
    return os.name == "posix" and "PYTHONPATH" not in env and "hook" not in arguments


class Home:
    """A person with a home of their own.

    :param models: a folder of compiled models to share; without it there is no embedding model.
    """

    def __init__(self, folder: Path, models: Path | None = None, **env: str) -> None:
        self.folder = folder
        self.db = folder / "reservoir.db"
        self.config = folder / "reservoir.toml"
        self.env = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "RESERVOIR_HOME": str(folder),
            "RESERVOIR_MODEL_CACHE": str(folder / "cache" / "models"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "HF_HUB_OFFLINE": "1",
            **{key: os.environ[key] for key in ("PYTHONPATH", "SYSTEMROOT") if key in os.environ},
            **env,
        }
        folder.mkdir(parents=True, exist_ok=True)
        if models is None:
            self.env.setdefault("RESERVOIR_EMBEDDING_MODEL", "nobody/absent-model")
        else:
            (folder / "cache").mkdir(exist_ok=True)
            with suppress(FileExistsError):
                (folder / "cache" / "models").symlink_to(models)

    def start(self, *arguments: str, prefix: Sequence[str] = (), **more: Any) -> Any:
        """Start a command without waiting for it; its streams are pipes."""
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = {**self.env, **more.pop("env", {})}
        command = [*prefix, *RESERVOIR, *arguments]
        return subprocess.Popen(command, env=env, cwd=self.folder, **{**streams, **more})

    def __call__(self, *arguments: str, stdin: str = "", **more: Any) -> Done:
        """Run a command to its end, in a forked process where nothing speaks against it."""
        if not more and _may_fork(arguments, self.env):
            code, stdout, stderr = forked.run_bytes(
                *arguments, stdin=stdin.encode(), env=self.env, folder=self.folder
            )
            return Done(code, stdout.decode(), stderr.decode())
        process = self.start(*arguments, **more)
        out, err = process.communicate(stdin.encode(), PATIENCE)
        return Done(process.returncode, out.decode(), err.decode())

    def must(self, *arguments: str, stdin: str = "", **more: Any) -> Done:
        """Run a command that has to succeed.

        :raises RuntimeError: it did not.
        """
        done = self(*arguments, stdin=stdin, **more)
        if done.code:
            raise RuntimeError(f"{arguments} ended with {done}")
        return done

    def seconds(self, *arguments: str, stdin: str = "") -> float:
        """How long a command takes that has to succeed."""
        began = time.perf_counter()
        self.must(*arguments, stdin=stdin)
        return time.perf_counter() - began

    def killed(
        self, chance: random.Random, seconds: float, *arguments: str, stdin: str = ""
    ) -> Done:
        """Run a command and kill it at a random instant, half the time in its last third.

        :param seconds: how long it takes; now and then it gets to its end.
        """
        first = 0.0 if chance.random() < 0.5 else 2 / 3
        instant = seconds * chance.uniform(first, 1.15)
        began = time.perf_counter()
        process = self.start(*arguments)
        with suppress(BrokenPipeError):
            process.stdin.write(stdin.encode())
            process.stdin.close()
        process.stdin = None
        time.sleep(max(0.0, instant - (time.perf_counter() - began)))
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate(timeout=PATIENCE)
        return Done(process.returncode, out.decode(), err.decode())

    def killed_at_its_answer(self, *arguments: str, stdin: str = "") -> Done:
        """Run a command and kill it at the instant at which it prints a line."""
        process = self.start(*arguments)
        process.stdin.write(stdin.encode())
        process.stdin.close()
        process.stdin = None
        line = process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate(timeout=PATIENCE)
        return Done(process.returncode, (line + out).decode(), err.decode())

    def rows(self, what: str = "id, content", where: str = "1") -> list[tuple[Any, ...]]:
        """Rows of ``messages`` as they lie in the file."""
        with closing(sqlite3.connect(self.db, timeout=PATIENCE)) as connection:
            return connection.execute(
                f"SELECT {what} FROM messages WHERE {where} ORDER BY id"
            ).fetchall()

    def files(self) -> bytes:
        """Every byte of the store's files."""
        beside = (self.db.with_name(self.db.name + each) for each in ("", "-wal", "-journal"))
        return b"".join(each.read_bytes() for each in beside if each.exists())


def faults(path: Path) -> list[str]:
    """What is wrong with a store: what SQLite says, and what ``doctor`` would say."""
    with closing(open_store(str(path), create=False)) as store:
        found = [each.detail for each in store.problems()]
    with closing(sqlite3.connect(path)) as connection:
        said = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('integrity-check')")
        broken = connection.execute("PRAGMA foreign_key_check").fetchall()
    return found + [each for each in said if each != "ok"] + [str(row) for row in broken]


def table(tallies: Sequence[Tally]) -> str:
    """Tallies as a Markdown table."""
    head = (
        "| what | trials | struck | lost | wrong | seconds | MB |",
        "|---|---|---|---|---|---|---|",
    )
    lines = (
        f"| {each.what} | {each.trials:,} | {each.hit:,} | {each.lost:,} | {len(each.wrong):,} "
        f"| {each.seconds:,.0f} | {each.size / 1e6:,.1f} |"
        for each in tallies
    )
    return "\n".join((*head, *lines))


def copied(source: Path, target: Path) -> None:
    """Put a copy of a closed store in place of another."""
    for ending in ("-wal", "-shm", "-journal"):
        target.with_name(target.name + ending).unlink(missing_ok=True)
    target.write_bytes(source.read_bytes())


def settle(path: Path) -> None:
    """Bring everything of a store into its one file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process with something more in it."""
    return {**os.environ, **extra}


def machine() -> str:
    """What a reader has to know of where this was measured."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    version = ".".join(map(str, sys.version_info[:3]))
    return f"{os.cpu_count()} cores, Python {version}, {sys.platform}{load}"
