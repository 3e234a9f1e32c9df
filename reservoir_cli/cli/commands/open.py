"""``reservoir open``: open the web page of the running server, or of a new one."""

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
from reservoir_cli.cli.options import flag, option
from reservoir_cli.errors import ReservoirError
from reservoir_cli.server import running_servers
from reservoir_cli.util import installation
from reservoir_cli.util.programs import start_in_background
from reservoir_cli.util.timeouts import SERVER_START

_PAUSE = 0.1


def open(
    ctx: typer.Context,
    print_only: Annotated[bool, flag("--print", "Print the address; open no browser.")] = False,
    port: Annotated[
        int, option("N", "Port for a new server; 0 picks a free one.", min=0, max=65_535)
    ] = 3017,
) -> None:
    """Open the web page: conversations, contexts and usage.

    Uses the running server, or starts `reservoir serve` in the background. The address contains a
    code that works once, within a minute. Without a display the address is printed. Needs the
    extra serve.
    """
    address = _address()
    if address is None:
        address = _start(_command(ctx, port))
        console.note("started a server in the background; reservoir serve --stop stops it")
    elif globals_of(ctx).db:
        console.note("a server is already running: the page shows its store, not that of --db")
    if print_only or not _has_display() or not webbrowser.open(address):
        console.write(f"{address}\n")
        console.note("the address works once, within a minute")
    else:
        console.note(f"opened {address.partition('enter?')[0]}")


def _address() -> str | None:
    for server in reversed(running_servers.read_servers()):
        if code := server.make_code():
            return f"{server.page}enter?code={code}"
    return None


def _start(command: Sequence[str]) -> str:
    """Start a server in the background; return an address with a one-time code."""
    running_servers.require_writable()
    with tempfile.TemporaryFile() as errors:
        process = start_in_background(command, errors=errors)
        end = time.monotonic() + SERVER_START
        while time.monotonic() < end and process.poll() is None:
            if address := _address():
                return address
            time.sleep(_PAUSE)
        raise _start_error(process, errors)


def _command(ctx: typer.Context, port: int) -> list[str]:
    flags = globals_of(ctx)
    command = [*installation.IN_PYTHON, "--quiet"]
    command += ["--db", flags.db] if flags.db else []
    command += ["--config", str(flags.config)] if flags.config else []
    return [*command, *(["--offline"] if flags.offline else []), "serve", "--port", str(port)]


def _start_error(process: "subprocess.Popen[bytes]", errors: IO[bytes]) -> ReservoirError:
    process.terminate()
    errors.seek(0)
    output = errors.read(10_000).decode("utf-8", "replace")
    reason = _last_line(output, "error: ") or "it does not answer"
    hint = _last_line(output, "hint: ") or "run reservoir serve to see more"
    return ReservoirError(f"the server does not start: {reason}", hint=hint)


def _last_line(output: str, prefix: str) -> str:
    lines = [line for line in output.splitlines() if line.startswith(prefix)]
    return lines[-1].removeprefix(prefix) if lines else ""


def _has_display() -> bool:
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
