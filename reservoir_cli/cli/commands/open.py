"""``reservoir open``: open the page of the running server, or of one that is started for it."""

import os
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Sequence
from typing import IO, Annotated

import typer

from reservoir_cli.cli import console
from reservoir_cli.cli.global_options import globals_of
from reservoir_cli.errors import ReservoirError
from reservoir_cli.server import running_servers
from reservoir_cli.util import this_program

#: Seconds that a server has to start.
_START = 60.0
_PAUSE = 0.1


def open(
    ctx: typer.Context,
    print_only: Annotated[
        bool, typer.Option("--print", help="Print the address; open no browser.")
    ] = False,
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65_535, help="Port of a server that is started; 0 takes any that is free."
        ),
    ] = 3017,
) -> None:
    """Open the page: conversations, the window of a question, and use.

    Uses the server that runs, or starts `reservoir serve` in the background. The address has a
    code that works once, for a minute. Without a display it is printed. Needs the extra serve.
    """
    address = _address()
    if address is None:
        address = _start(_command(ctx, port))
        console.note("a server runs in the background; reservoir serve --stop ends it")
    elif globals_of(ctx).db:
        console.note("a server runs already: the page shows its store, not that of --db")
    if print_only or not _has_display() or not webbrowser.open(address):
        console.write(f"{address}\n")
        console.note("the address works once, for a minute")
    else:
        console.note(f"opened {address.partition('enter?')[0]}")


def _address() -> str | None:
    """Return an address with a one-time code; ``None`` if no server answers."""
    for server in reversed(running_servers.read_servers()):
        if code := server.request_code():
            return f"{server.page}enter?code={code}"
    return None


def _start(command: Sequence[str]) -> str:
    """Start a server in the background; return an address with a one-time code.

    :raises ReservoirError: it does not start.
    """
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        end = time.monotonic() + _START
        while time.monotonic() < end and process.poll() is None:
            if address := _address():
                return address
            time.sleep(_PAUSE)
        raise _not_started(process, errors)


def _command(ctx: typer.Context, port: int) -> list[str]:
    given = globals_of(ctx)
    command = [*this_program.IN_PYTHON, "--quiet"]
    command += ["--db", given.db] if given.db else []
    command += ["--config", str(given.config)] if given.config else []
    return [*command, *(["--offline"] if given.offline else []), "serve", "--port", str(port)]


def _not_started(process: "subprocess.Popen[bytes]", errors: IO[bytes]) -> ReservoirError:
    """Return the error for a server that does not answer; say what it said."""
    process.terminate()
    errors.seek(0)
    said = errors.read(10_000).decode("utf-8", "replace")
    why = _last(said, "error: ") or "it does not answer"
    hint = _last(said, "hint: ") or "reservoir serve says more"
    return ReservoirError(f"the server does not start: {why}", hint=hint)


def _last(said: str, word: str) -> str:
    """Return the last line that begins with a word, without the word."""
    lines = [line for line in said.splitlines() if line.startswith(word)]
    return lines[-1].removeprefix(word) if lines else ""


def _has_display() -> bool:
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
