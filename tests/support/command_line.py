"""Run ``reservoir`` as a user does: real processes in a temporary home, perhaps on a terminal."""

import atexit
import fcntl
import json
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import termios
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import forked
from forked import program_folder
from terminals import has_ended, pressing_ctrl_c, read_to_end, read_up_to

from reservoir_cli.messages import Scope, StoredMessage
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.storage.open_store import open_store

RESERVOIR = Path(sys.executable).with_name("reservoir")
SAMPLES = Path(__file__).parents[2] / "samples"
#: Long enough for a slow machine; a process that hangs is still ended.
PATIENCE = 300
#: Variables that Python reads before ``main()`` runs.
_BEFORE_MAIN = {"PYTHONPATH", "PYTHONIOENCODING", "LANG", "LC_ALL", "LC_CTYPE"}

#: Homes in which rows were stored, by these rows and the environment, and the largest that is kept.
_stored: dict[str, Path] = {}
_LARGEST = 1_000_000


@cache
def _stored_homes() -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _empty_home() -> Path:
    """Return a home with an empty store to copy, a third of the work of creating one."""
    home = _stored_homes() / "empty"
    home.mkdir(mode=0o700)
    open_store(str(home / "reservoir.db")).close()
    return home


@dataclass(frozen=True)
class Result:
    """The exit code and the output of a process, decoded strictly."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


class Cli:
    """Run ``reservoir`` with a temporary home, by default without an embedding model.

    ``env`` is the whole environment of its processes.
    """

    def __init__(self, home: Path, *, model: bool = False) -> None:
        self.home = home
        self.db = home / "reservoir.db"
        self.env = {
            "PATH": f"{RESERVOIR.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "RESERVOIR_HOME": str(home),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "TERM": "xterm-256color",
            "HF_HUB_OFFLINE": "1",
            "RESERVOIR_PLUGINS": "off",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # of another working tree
        }
        if not model:
            self.env["RESERVOIR_EMBEDDING_MODEL"] = "nobody/absent-model"

    def __call__(
        self,
        *arguments: str,
        stdin: str | bytes = b"",
        code: int | None = 0,
        env: Mapping[str, str] | None = None,
        command: tuple[str, ...] = (),
    ) -> Result:
        """Run a command to its end and check its exit code.

        :param code: the expected exit code; ``None`` for any.
        :param command: the program to start; by default a process is forked.
        """
        data = stdin.encode() if isinstance(stdin, str) else stdin
        full = {**self.env, **(env or {})}
        if command or _BEFORE_MAIN & (env or {}).keys():
            words = [*(command or (str(RESERVOIR),)), *arguments]
            output = self._spawn(words, data, full)
        else:
            output = forked.run_bytes(*arguments, stdin=data, env=full, folder=self.home.parent)
        result = Result(output[0], output[1].decode(), output[2].decode())
        assert code in (result.code, None), f"{arguments} ended with {result}"
        return result

    def _spawn(
        self, words: list[str], stdin: bytes, env: Mapping[str, str]
    ) -> tuple[int, bytes, bytes]:
        result = subprocess.run(
            words,
            input=stdin,
            capture_output=True,
            env=env,
            cwd=self.home.parent,
            timeout=PATIENCE,
            check=False,
        )
        return result.returncode, result.stdout, result.stderr

    def shell(self, script: str, *, forked: bool = True) -> Result:
        """Run a line in bash.

        :param forked: whether its commands are forked, which they cannot be with closed streams.
        """
        folder = f"{program_folder(os.getpid())}:" if forked else ""
        return self("-c", script, command=("bash",), env={"PATH": f"{folder}{self.env['PATH']}"})

    def start(self, *arguments: str, **streams: Any) -> "subprocess.Popen[bytes]":
        """Start a command without waiting for it."""
        return subprocess.Popen(
            [RESERVOIR, *arguments], env=self.env, cwd=self.home.parent, **streams
        )

    def say(self, text: str, *options: str) -> int:
        """Store a message without an embedding, perhaps in a new store; return its id."""
        if not self.home.exists():
            shutil.copytree(_empty_home(), self.home)
        return int(self("ingest", "--no-embed", *options, stdin=text).out)

    def store(self, *rows: Mapping[str, Any]) -> None:
        """Store many messages by one process: rows of which only ``content`` is required.

        An empty home gets a copy of the home in which the same rows were stored before.
        """
        self.home.mkdir(parents=True, exist_ok=True)
        file, is_empty = self.home / "rows.jsonl", not any(self.home.iterdir())
        full = [
            {
                "partition": "default",
                "instance": "default",
                "role": "user",
                "created_at": f"2026-05-09T14:{number // 60 % 60:02}:{number % 60:02}+00:00",
                "source": "test",
                "source_id": f"{number}",
                **row,
            }
            for number, row in enumerate(rows)
        ]
        text = "".join(json.dumps(row) + "\n" for row in full)
        key = f"{sorted(self.env.items())}".replace(str(self.home), "") + text
        if is_empty and key in _stored:
            shutil.copytree(_stored[key], self.home, dirs_exist_ok=True)
            return
        file.write_text(text, encoding="utf-8")
        self("ingest", "--no-embed", str(file))
        if is_empty and len(text) < _LARGEST:
            _stored[key] = shutil.copytree(self.home, _stored_homes() / str(len(_stored)))

    def messages(self) -> list[StoredMessage]:
        """Return all messages, which this process reads in a tenth of the time of a command."""
        with Reservoir.open(self.db, offline=True) as reservoir:
            return reservoir.view(Scope(None), 0)

    def rows(self, *options: str) -> list[dict[str, Any]]:
        """Return the rows of all messages that ``view`` shows."""
        return self("view", "0", *options, "--json").document["messages"]

    def on_terminal(
        self,
        *arguments: str,
        streams: tuple[str, ...] = ("stdout",),
        env: Mapping[str, str] | None = None,
    ) -> Result:
        """Run a command with some streams on a terminal and the others in files.

        The text of the terminal is in ``out`` if stdout is one of the streams, else in ``err``.
        """
        master, slave = pty.openpty()
        tty.setraw(slave)  # keeps line ends as they were written
        with tempfile.TemporaryFile() as file, open(os.devnull) as null:
            with forked.start(
                *arguments,
                streams=(
                    slave if "stdin" in streams else null.fileno(),
                    slave if "stdout" in streams else file.fileno(),
                    slave if "stderr" in streams else file.fileno(),
                ),
                env={**self.env, **(env or {})},
                folder=self.home.parent,
            ) as command:
                shown = read_to_end(master, slave, command.ended).decode()
            code = command.wait()
            file.seek(0)
            other = file.read().decode()
        if "stdout" in streams:
            return Result(code, shown, other)
        return Result(code, other, shown)

    def talk(
        self,
        *arguments: str,
        answers: Sequence[tuple[str, str]],
        env: Mapping[str, str] | None = None,
    ) -> Result:
        """Run a command on its own terminal, and answer its questions.

        :param answers: pairs of a text to wait for and the answer to type; ``\x03`` is Ctrl-C and
            ``\x04`` is Ctrl-D. Ctrl-C is repeated until the command ends.
        :returns: ``out`` has everything that the terminal showed, with the typed answers.
        """
        master, slave = pty.openpty()
        shown = b""
        with self._on_own_terminal(*arguments, terminal=slave, env=env or {}) as (ended, wait):
            for awaited, typed in answers:
                shown += read_up_to(master, awaited, ended, PATIENCE)
                os.write(master, typed.encode())
                if typed == "\x03":
                    ended = pressing_ctrl_c(master, ended)
            shown += read_to_end(master, slave, ended)
        return Result(wait(), shown.decode().replace("\r\n", "\n"), "")

    @contextmanager
    def _on_own_terminal(
        self, *arguments: str, terminal: int, env: Mapping[str, str]
    ) -> Iterator[tuple[Callable[[], bool], Callable[[], int]]]:
        """Start a command; yield functions that say whether it ended, and wait for its code."""
        streams, full = (terminal, terminal, terminal), {**self.env, "NO_COLOR": "1", **env}
        if not _BEFORE_MAIN & env.keys():
            folder = self.home.parent
            with forked.start(
                *arguments, streams=streams, env=full, folder=folder, own_terminal=True
            ) as command:
                yield command.ended, command.wait
            return
        process = subprocess.Popen(
            [RESERVOIR, *arguments],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=full,
            cwd=self.home.parent,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        try:
            yield has_ended(process), lambda: process.wait(PATIENCE)
        finally:
            process.kill()
            process.wait(PATIENCE)
