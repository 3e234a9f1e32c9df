"""The command line in a process that costs a fifth of a new one: forked from one that loaded it.

The child runs ``main()`` from its first line to its exit, on streams, an environment and a folder
of its own, so that what it answers is what a new process would answer. What Python reads before
``main()`` is its parent's: PYTHON… variables and the encoding of the locale.
"""

import atexit
import json
import os
import pty
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import tty
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import measuring
from fork_server import PATIENCE, READY
from terminals import read_to_end, ready

#: What cli.md promises; a signal is never sent here.
CODES = frozenset(range(7))
#: A pipe takes so many bytes before anybody reads it.
_PIPE = 4096
_busy = threading.Lock()


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    arguments: tuple[str, ...]
    code: int
    out: bytes
    err: str

    @property
    def document(self) -> Any:
        """Its output as strict JSON: no NaN, no Infinity."""
        return json.loads(self.out.decode(), parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


@cache
def _server(_process: int) -> socket.socket:
    """Start the parent of all commands of this process; it ends when this process does."""
    ours, its = socket.socketpair()
    with its:
        server = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("fork_server.py"), str(its.fileno())],
            pass_fds=[its.fileno()],
            stdin=subprocess.DEVNULL,
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "LC_ALL": "C.UTF-8",
                **measuring.variables(),
            },
            start_new_session=True,
        )
    atexit.register(_end, server, ours)
    assert _receive(ours) == READY
    return ours


def _end(server: "subprocess.Popen[bytes]", ours: socket.socket) -> None:
    ours.close()
    server.wait(PATIENCE)


def _receive(server: socket.socket) -> int:
    parts = b""
    while len(parts) < 4:
        part = server.recv(4 - len(parts))
        assert part, "the fork server has ended"
        parts += part
    return int(struct.unpack("i", parts)[0])


class Command:
    """A command that runs."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._status: int | None = None

    def ended(self) -> bool:
        """Return whether it has ended."""
        return self._status is not None or ready(self._server.fileno(), 0)

    def wait(self) -> int:
        """Wait for its end; return its exit code."""
        if self._status is None:
            self._status = _receive(self._server)
        return os.waitstatus_to_exitcode(self._status)


@contextmanager
def start(
    *arguments: str,
    streams: tuple[int, int, int],
    env: Mapping[str, str],
    folder: Path,
    umask: int = -1,
) -> Iterator[Command]:
    """Start a command once the last one has ended, and wait for its end on leaving.

    :param streams: its stdin, stdout and stderr.
    """
    request = {"arguments": arguments, "env": dict(env), "folder": str(folder), "umask": umask}
    data = json.dumps(request).encode()
    with _busy:
        server = _server(os.getpid())
        socket.send_fds(server, [struct.pack("I", len(data))], streams)
        server.sendall(data)
        command = Command(server)
        try:
            yield command
        finally:
            command.wait()


def run_bytes(
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str],
    folder: Path,
    umask: int = -1,
) -> tuple[int, bytes, bytes]:
    """Run a command to its end; return its exit code, and what it wrote to stdout and stderr."""
    with ExitStack() as stack:
        out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        given = stack.enter_context(_readable(stdin))
        streams = (given.fileno(), out.fileno(), err.fileno())
        with start(*arguments, streams=streams, env=env, folder=folder, umask=umask) as command:
            code = command.wait()
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read()


def _readable(data: bytes) -> Any:
    """Return a pipe with the data, or a file where they are too large to wait in a pipe."""
    if len(data) > _PIPE:
        file = tempfile.TemporaryFile()
        file.write(data)
        file.seek(0)
        return file
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    return open(reading, "rb")


def run(*arguments: str, stdin: bytes = b"", env: Mapping[str, str], folder: Path) -> Answer:
    """Run a command to its end.

    :param env: the whole environment.
    :param folder: where it runs.
    """
    code, out, err = run_bytes(*arguments, stdin=stdin, env=env, folder=folder)
    return Answer(arguments, code, out, err.decode("utf-8", "replace"))


def hold(answer: Answer) -> None:
    """Hold an answer to what is promised of every command, whatever it was given."""
    told = (answer.arguments, answer.code, answer.out[:300], answer.err[:2000])
    assert answer.code in CODES, told
    assert "Traceback" not in answer.err, told
    assert "error: unexpected " not in answer.err, told
    lines = answer.err.split("\n")
    errors = [each for each in lines if each.startswith("error: ")]
    assert len(errors) == (answer.code not in (0, 6)) or _doctor_or_no(answer), told
    for each in answer.err:
        assert each == "\n" or each == "\t" or not _commands_a_terminal(each), told
    words = answer.arguments
    words = words[: words.index("--")] if "--" in words else words
    if "--json" in words and answer.out:
        assert answer.document["schema_version"] == 1, told
    if "--jsonl" in words and answer.code == 0:
        for line in answer.out.decode().split("\n"):
            assert not line or isinstance(json.loads(line, parse_constant=_no_constant), dict), told
    if answer.code in (1, 2, 3, 4, 5) and "--json" not in words and answer.code != 1:
        assert not answer.out or answer.code == 4, told


def _doctor_or_no(answer: Answer) -> bool:
    """What ends with 1 and without an error: faults that were found, and a no."""
    return answer.code == 1 and (
        "doctor" in answer.arguments or "nothing was changed" in answer.err
    )


def _commands_a_terminal(character: str) -> bool:
    number = ord(character)
    return (
        number < 0x20
        or 0x7F <= number < 0xA0
        or character in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )


def on_terminal(
    *arguments: str, env: Mapping[str, str], folder: Path, typed: bytes = b""
) -> tuple[int, str]:
    """Run a command on a terminal of its own.

    :param typed: what a person types.
    :returns: its exit code, and every byte that the terminal got.
    """
    master, slave = pty.openpty()
    tty.setraw(slave)
    os.write(master, typed)
    with start(*arguments, streams=(slave, slave, slave), env=env, folder=folder) as command:
        shown = read_to_end(master, slave, command.ended)
    return command.wait(), shown.decode()


def commands_in(text: str) -> set[str]:
    """What in a text a terminal would obey, or show in another order."""
    return {each for each in text if each not in "\n\t" and _commands_a_terminal(each)}
