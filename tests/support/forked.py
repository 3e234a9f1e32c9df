"""The command line in a process that costs a hundredth of a new one: this one, forked.

The child runs ``main()`` from its first line to its exit, on streams, an environment and a folder
of its own, so that what it answers is what a new process would answer.
"""

import json
import os
import pty
import select
import signal
import sys
import tempfile
import time
import tty
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from terminals import read_to_end

from reservoir_cli.cli.app import main
from reservoir_cli.cli.lazy import EXAMPLES, MODULES

#: What cli.md promises; a signal is never sent here.
CODES = frozenset(range(7))
#: Seconds after which a command counts as hanging.
PATIENCE = 60


def load_all() -> None:
    """Load every command once, so that no child pays for it."""
    for name in EXAMPLES:
        import_module(f"reservoir_cli.cli.commands.{MODULES.get(name, name)}")
    for name in (
        "reservoir",
        "transfer.importers",
        "transfer.exporters",
        "storage.prepare",
        "storage.sqlite.store",
        "storage.sqlite.candidates",
        "storage.sqlite.delete",
        "storage.sqlite.repair",
        "storage.sqlite.schema",
        "retrieval.search",
    ):
        import_module(f"reservoir_cli.{name}")
    for name in ("sqlite_utils", "tomlkit", "rich.console", "rich.table", "difflib", "tomli_w"):
        import_module(name)


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


def run(
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str],
    folder: Path,
) -> Answer:
    """Run a command to its end.

    :param env: the whole environment.
    :param folder: where it runs.
    """
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin)
        given.seek(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer Pythons warn of threads
            child = os.fork()
        if not child:
            _become(arguments, (given.fileno(), out.fileno(), err.fileno()), env, folder)
        status = _waited(child)
        out.seek(0)
        err.seek(0)
        told = err.read().decode("utf-8", "replace")
        return Answer(arguments, os.waitstatus_to_exitcode(status), out.read(), told)


def _become(
    arguments: Sequence[str], streams: tuple[int, int, int], env: Mapping[str, str], folder: Path
) -> None:
    """Be the command, and never come back."""
    try:
        os.chdir(folder)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.environ.clear()
        os.environ.update(env)
        time.tzset()
        sys.argv = ["reservoir", *arguments]
        sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        main()
    except BaseException:
        import traceback

        with suppress(BaseException):
            os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(99)


def _waited(child: int) -> int:
    """The status of a child; one that hangs is ended."""
    with suppress(AttributeError):  # only Linux has them
        handle = os.pidfd_open(child)
        try:
            if not select.select([handle], [], [], PATIENCE)[0]:
                os.kill(child, signal.SIGKILL)
        finally:
            os.close(handle)
    return os.waitpid(child, 0)[1]


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        _become(arguments, (slave, slave, slave), env, folder)
    statuses: list[int] = []

    def ended() -> bool:
        number, status = (child, statuses[0]) if statuses else os.waitpid(child, os.WNOHANG)
        statuses[:] = [status] if number else []
        return bool(statuses)

    shown = read_to_end(master, slave, ended)
    return os.waitstatus_to_exitcode(statuses[0]), shown.decode()


def commands_in(text: str) -> set[str]:
    """What in a text a terminal would obey, or show in another order."""
    return {each for each in text if each not in "\n\t" and _commands_a_terminal(each)}
