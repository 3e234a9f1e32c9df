"""Run commands in forked processes, which takes a fifth of the time of new ones.

The child runs ``main()`` with its own streams, environment and working directory, so it behaves
as a new process would, except for what Python reads before ``main()``: PYTHON… variables and the
encoding of the locale.
"""

import atexit
import json
import os
import pty
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import tty
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import measuring
from fork_server import PATIENCE, READY
from terminals import read_to_end, ready

#: Documented exit codes; no signal is ever sent to these commands.
CODES = frozenset(range(7))
#: Bytes that a pipe holds without a reader.
_PIPE = 4096
#: What a fork server also loads whose commands may overlap, or use the real model.
_OVERLAPPING = (
    *("reservoir_cli.agents.mcp", "reservoir_cli.server"),
    *("onnxruntime", "tokenizers", "short_sleeps"),
)
_busy = threading.Lock()


@dataclass(frozen=True)
class Answer:
    """The exit code and the output of a command."""

    arguments: tuple[str, ...]
    code: int
    out: bytes
    err: str

    @property
    def document(self) -> Any:
        """Parse the output as strict JSON, without NaN and Infinity."""
        return json.loads(self.out.decode(), parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


@cache
def _server(_process: int, *loaded: str) -> socket.socket:
    """Start a fork server of this process; it ends with this process.

    :param loaded: packages that it loads as well.
    """
    parent_end, child_end = socket.socketpair()
    with child_end:
        program = Path(__file__).with_name("fork_server.py")
        server = subprocess.Popen(
            [sys.executable, program, str(child_end.fileno()), *loaded],
            pass_fds=[child_end.fileno()],
            stdin=subprocess.DEVNULL,
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "LC_ALL": "C.UTF-8",
                "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # of another working tree
                **measuring.variables(),
            },
            start_new_session=True,
        )
    atexit.register(_end, server, parent_end)
    assert _receive(parent_end) == READY
    return parent_end


def _end(server: "subprocess.Popen[bytes]", connection: socket.socket) -> None:
    connection.close()
    server.wait(PATIENCE)


def _receive(server: socket.socket) -> int:
    parts = b""
    while len(parts) < 4:
        part = server.recv(4 - len(parts))
        assert part, "the fork server has ended"
        parts += part
    return int(struct.unpack("i", parts)[0])


class Command:
    """A running command."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._status: int | None = None

    def ended(self) -> bool:
        """Return whether the command has ended."""
        return self._status is not None or ready(self._server.fileno(), 0)

    def wait(self) -> int:
        """Wait until the command ends; return its exit code."""
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
    own_terminal: bool = False,
) -> Iterator[Command]:
    """Start a command when the previous one has ended; wait for it when the block ends.

    :param streams: file descriptors of stdin, stdout and stderr.
    :param own_terminal: whether stdin becomes its controlling terminal, which sends it Ctrl-C.
    """
    request = {
        **{"arguments": arguments, "env": dict(env), "folder": str(folder), "umask": umask},
        "own_terminal": own_terminal,
    }
    data = json.dumps(request).encode()
    with _busy:
        uses_more = bool({"serve", "mcp"} & {*arguments}) or "RESERVOIR_EMBEDDING_MODEL" not in env
        server = _server(os.getpid(), *(_OVERLAPPING if uses_more else ()))
        socket.send_fds(server, [struct.pack("I", len(data))], streams)
        server.sendall(data)
        command = Command(server)
        try:
            yield command
        finally:
            command.wait()


def start_kept(
    *arguments: str, streams: tuple[int, int, int, int], env: Mapping[str, str], folder: Path
) -> None:
    """Start a command that runs for long and return at once; others may run beside it.

    :param streams: file descriptors of stdin, stdout, stderr, and of a pipe that gets the process
        id of the command, and its status when it has ended.
    """
    request = {"arguments": arguments, "env": dict(env), "folder": str(folder), "umask": -1}
    data = json.dumps(request).encode()
    with _busy:
        server = _server(os.getpid(), *_OVERLAPPING)
        socket.send_fds(server, [struct.pack("I", len(data))], streams)
        server.sendall(data)


@cache
def program_folder(_process: int) -> Path:
    """Return a folder for PATH whose program ``reservoir`` forks commands; they may overlap."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source = Path(__file__).with_name("forking_program.py").read_text(encoding="utf-8")
    program = folder / "reservoir"
    program.write_text(f"#!{sys.executable} -IS\n{source}", encoding="utf-8")
    program.chmod(0o700)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    listener.listen(100)
    server = _server(os.getpid(), *_OVERLAPPING)
    threading.Thread(target=_pass_on, args=(listener, server), daemon=True).start()
    return folder


def _pass_on(listener: socket.socket, server: socket.socket) -> None:
    """Pass the requests of the program on to a fork server."""
    while True:
        with listener.accept()[0] as connection:
            head, streams, *_ = socket.recv_fds(connection, 4, 4)
            socket.send_fds(server, [head], streams)
            for stream in streams:
                os.close(stream)
            while data := connection.recv(1 << 16):
                server.sendall(data)


def run_bytes(
    *arguments: str, stdin: bytes = b"", env: Mapping[str, str], folder: Path, umask: int = -1
) -> tuple[int, bytes, bytes]:
    """Run a command to its end; return its exit code, stdout and stderr."""
    with ExitStack() as stack:
        out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        data = stack.enter_context(_readable(stdin))
        streams = (data.fileno(), out.fileno(), err.fileno())
        with start(*arguments, streams=streams, env=env, folder=folder, umask=umask) as command:
            code = command.wait()
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read()


def _readable(data: bytes) -> Any:
    """Return a pipe that holds the data, or a file if they are too large for a pipe."""
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
    :param folder: the working directory.
    """
    code, out, err = run_bytes(*arguments, stdin=stdin, env=env, folder=folder)
    return Answer(arguments, code, out, err.decode("utf-8", "replace"))


def hold(answer: Answer) -> None:
    """Check the rules that every command follows, whatever its input."""
    summary = (answer.arguments, answer.code, answer.out[:300], answer.err[:2000])
    assert answer.code in CODES, summary
    assert "Traceback" not in answer.err, summary
    assert "error: unexpected " not in answer.err, summary
    lines = answer.err.split("\n")
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == (answer.code not in (0, 6)) or _fails_without_error(answer), summary
    assert not control_characters(answer.err), summary
    words = answer.arguments
    words = words[: words.index("--")] if "--" in words else words
    if "-h" in words and answer.code == 0 and answer.out.startswith(b"Usage: "):
        return  # help instead of a document
    if "--json" in words and answer.out:
        assert answer.document["schema_version"] == 1, summary
    if "--jsonl" in words and answer.code == 0:
        for line in answer.out.decode().split("\n"):
            row = json.loads(line, parse_constant=_no_constant) if line else {}
            assert isinstance(row, dict), summary
    if answer.code in (2, 3, 5) and "--json" not in words:
        assert not answer.out, summary


def _fails_without_error(answer: Answer) -> bool:
    """Return whether exit code 1 needs no error: faults found, a no, or all matches elsewhere."""
    said = ("nothing was changed", "note: matching elsewhere: ")
    return answer.code == 1 and (
        "doctor" in answer.arguments or any(words in answer.err for words in said)
    )


#: Format characters that texts are written with, which stay: soft hyphens, zero-width spaces and
#: joiners, and those that print a sign around or above others.
_HARMLESS = re.compile(
    "[\xad\u200b-\u200d\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
    "\U00013430-\U0001345f]"
)


def _controls_terminal(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") and not _HARMLESS.match(
        character
    )


def on_terminal(
    *arguments: str, env: Mapping[str, str], folder: Path, typed: bytes = b""
) -> tuple[int, str]:
    """Run a command on a terminal of its own.

    :param typed: the input that the user types.
    :returns: its exit code, and the whole output on the terminal.
    """
    master, slave = pty.openpty()
    tty.setraw(slave)
    os.write(master, typed)
    with start(*arguments, streams=(slave, slave, slave), env=env, folder=folder) as command:
        shown = read_to_end(master, slave, command.ended)
    return command.wait(), shown.decode()


def control_characters(text: str) -> set[str]:
    """Return the characters of a text that control a terminal or reorder what it shows."""
    return {sign for sign in text if sign not in "\n\t" and _controls_terminal(sign)}
