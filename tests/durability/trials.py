"""The base of all durability trials: real processes, kills at random instants, and tallies.

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

from reservoir_cli.storage.open_store import open_store

if os.name == "posix":
    import forked
    from forked_session import ForkedProcess

#: Long enough for a slow machine; a process that hangs is still ended.
PATIENCE = 300
RESERVOIR = (sys.executable, "-m", "reservoir_cli")


@dataclass
class Tally:
    """The results of a kind of trial.

    :param trials: the number of trials.
    :param hit: how often the fault had an effect: the process was killed before its end, or failed.
    :param lost: acknowledged messages that are missing.
    :param wrong: other faults, each with the seed that reproduces it.
    :param size: bytes of the acknowledged messages, or of the file.
    :param note: a remark on the figures.
    """

    name: str
    trials: int = 0
    hit: int = 0
    lost: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0
    size: int = 0
    note: str = ""

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the duration of a block."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - started

    def hold(self, condition: object, fault: str) -> None:
        """Record a fault unless a condition holds."""
        if not condition:
            self.wrong.append(fault)

    @property
    def clean(self) -> bool:
        """Return whether nothing was lost and nothing is wrong."""
        return not (self.lost or self.wrong)


@dataclass(frozen=True)
class Result:
    """The output and exit code of a process; the code is negative if a signal ended it."""

    code: int
    out: str
    err: str

    @property
    def is_one_line_error(self) -> bool:
        """Return whether the output is a one-line error with at most one hint."""
        lines = [line for line in self.err.splitlines() if not line.startswith(("note:", "warn"))]
        first = lines[0] if lines else ""
        rest = all(line.startswith("hint: ") for line in lines[1:])
        return first.startswith("error: ") and rest and "unexpected" not in first


def _may_fork(env: Mapping[str, str]) -> bool:
    """Return whether a command can be forked."""
    paths = [variables.get("PYTHONPATH", "") for variables in (env, os.environ)]
    return os.name == "posix" and paths[0] == paths[1]


class Home:
    """A temporary home in which commands run.

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
            "RESERVOIR_PLUGINS": "off",
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

    def start(self, *arguments: str, stdin: str = "") -> Any:
        """Start a command with all of its input, in a forked process if possible."""
        if _may_fork(self.env):
            process: Any = ForkedProcess(*arguments, env=self.env, folder=self.folder)
        else:
            process = self.spawn(*arguments)
        with suppress(BrokenPipeError):
            process.stdin.write(stdin.encode())
            process.stdin.close()
        return process

    def spawn(self, *arguments: str, prefix: Sequence[str] = (), **more: Any) -> Any:
        """Start a command in a new process without waiting for it; its streams are pipes."""
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = {**self.env, **more.pop("env", {})}
        if "preexec_fn" in more:
            # Python keeps what it could write of a module's bytecode: no process could load it.
            env["PYTHONDONTWRITEBYTECODE"] = "1"
        command = [*prefix, *RESERVOIR, *arguments]
        return subprocess.Popen(command, env=env, cwd=self.folder, **{**streams, **more})

    def __call__(self, *arguments: str, stdin: str = "", **more: Any) -> Result:
        """Run a command to its end, in a forked process if possible."""
        if not more and _may_fork(self.env):
            code, stdout, stderr = forked.run_bytes(
                *arguments, stdin=stdin.encode(), env=self.env, folder=self.folder
            )
            return Result(code, stdout.decode(), stderr.decode())
        process = self.spawn(*arguments, **more)
        out, err = process.communicate(stdin.encode(), PATIENCE)
        return Result(process.returncode, out.decode(), err.decode())

    def must(self, *arguments: str, stdin: str = "", **more: Any) -> Result:
        """Run a command that must succeed.

        :raises RuntimeError: it failed.
        """
        result = self(*arguments, stdin=stdin, **more)
        if result.code:
            raise RuntimeError(f"{arguments} ended with {result}")
        return result

    def seconds(self, *arguments: str, stdin: str = "") -> float:
        """Return the duration of a command that must succeed."""
        started = time.perf_counter()
        self.must(*arguments, stdin=stdin)
        return time.perf_counter() - started

    def killed(
        self, rng: random.Random, seconds: float, *arguments: str, stdin: str = ""
    ) -> Result:
        """Run a command and kill it at a random instant, half the time in its last third.

        :param seconds: the duration of the command; sometimes it finishes before the kill.
        """
        first = 0.0 if rng.random() < 0.5 else 2 / 3
        instant = seconds * rng.uniform(first, 1.15)
        started = time.perf_counter()
        process = self.start(*arguments, stdin=stdin)
        time.sleep(max(0.0, instant - (time.perf_counter() - started)))
        process.send_signal(signal.SIGKILL)
        return ended(process)

    def killed_at_its_answer(self, *arguments: str, stdin: str = "") -> Result:
        """Run a command and kill it as soon as it prints a line."""
        process = self.start(*arguments, stdin=stdin)
        line = process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        return ended(process, line)

    def rows(self, columns: str = "id, content", condition: str = "1") -> list[tuple[Any, ...]]:
        """Return rows of the table ``messages``."""
        with closing(sqlite3.connect(self.db, timeout=PATIENCE)) as connection:
            return connection.execute(
                f"SELECT {columns} FROM messages WHERE {condition} ORDER BY id"
            ).fetchall()

    def files(self) -> bytes:
        """Return the bytes of all files of the store."""
        beside = (self.db.with_name(self.db.name + suffix) for suffix in ("", "-wal", "-journal"))
        return b"".join(file.read_bytes() for file in beside if file.exists())


def ended(process: Any, line: bytes = b"") -> Result:
    """Wait for a started command; return its output, which a pipe must hold.

    :param line: what was read of it before.
    """
    process.wait(PATIENCE)
    with process.stdout, process.stderr:
        out, err = line + process.stdout.read(), process.stderr.read()
    return Result(process.returncode, out.decode(), err.decode())


def faults(path: Path) -> list[str]:
    """Return the faults of a store that SQLite and ``doctor`` find."""
    with closing(open_store(str(path), create=False)) as store:
        problems = [problem.detail for problem in store.problems()]
    with closing(sqlite3.connect(path)) as connection:
        lines = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('integrity-check')")
        broken = connection.execute("PRAGMA foreign_key_check").fetchall()
    return problems + [line for line in lines if line != "ok"] + [str(row) for row in broken]


def table(tallies: Sequence[Tally]) -> str:
    """Return tallies as a Markdown table."""
    head = (
        "| what | trials | struck | lost | wrong | seconds | MB |",
        "|---|---|---|---|---|---|---|",
    )
    lines = (
        f"| {tally.name} | {tally.trials:,} | {tally.hit:,} | {tally.lost:,} "
        f"| {len(tally.wrong):,} | {tally.seconds:,.0f} | {tally.size / 1e6:,.1f} |"
        for tally in tallies
    )
    return "\n".join((*head, *lines))


def copied(source: Path, target: Path) -> None:
    """Replace a store with a copy of a closed one."""
    for ending in ("-wal", "-shm", "-journal"):
        target.with_name(target.name + ending).unlink(missing_ok=True)
    target.write_bytes(source.read_bytes())


def settle(path: Path) -> None:
    """Move the write-ahead log of a store into its file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of this process with more variables."""
    return {**os.environ, **extra}


def machine() -> str:
    """Describe the machine on which this was measured."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    version = ".".join(map(str, sys.version_info[:3]))
    return f"{os.cpu_count()} cores, Python {version}, {sys.platform}{load}"


def ends(pid: int) -> bool:
    """Return whether a process ends, or becomes a zombie, within a minute."""
    for _ in range(600):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat")
            if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.1)
    return False
