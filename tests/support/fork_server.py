"""A process that has loaded every command, and forks one for each request of ``forked.py``.

A test process itself cannot fork safely: it has threads and open stores, and needs 20 times as
much memory.
"""

import ctypes
import fcntl
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import measuring

#: Environment variables before any import.
_INITIAL = dict(os.environ)

#: Seconds after which a command is killed.
PATIENCE = 300
#: Modules that no forked command imports.
_NOT_FORKED = (
    "reservoir_cli.agents.llm_plugin",
    "reservoir_cli.agents.mcp",
    "reservoir_cli.embedding.compiler",
    "reservoir_cli.server",
)
#: Modules that commands import on demand.
_LATER = (
    "difflib",
    "email",
    "glob",
    "html",
    "numpy",
    "psycopg",
    "quopri",
    "rich.console",
    "rich.table",
    "sqlite_utils",
    "statistics",
    "tomli_w",
    "tomlkit",
    "typer._click.decorators",
)
#: Sent once all modules are loaded; no process has this status.
READY = -1


def load_all(*others: str) -> None:
    """Import everything that commands use, so that no child has to.

    :param others: packages to import that most commands do not use.
    """
    import reservoir_cli

    package = Path(reservoir_cli.__file__).parent
    files = [file.relative_to(package.parent).with_suffix("") for file in package.rglob("*.py")]
    modules = (".".join(file.parts).removesuffix(".__init__") for file in files)
    for name in (*modules, *_LATER, *others):
        if not name.startswith(_NOT_FORKED) or name.startswith(others):
            with suppress(ImportError):
                import_module(name)
    _build_commands()
    _fill_caches()
    _fill_gaps()
    gc.freeze()  # a child that collected garbage would copy all memory


def _build_commands() -> None:
    """Parse the signatures of all commands, which is half the work of a short one."""
    import typer

    from reservoir_cli.cli.app import app

    build = typer.main.get_command
    program: Any = build(app)
    for name in program.commands:
        program.commands[name]
    typer.main.get_command = lambda instance: program if instance is app else build(instance)


def _fill_caches() -> None:
    """Let functions that keep their results, such as compiled patterns, compute these."""
    from reservoir_cli import Message, Reservoir
    from reservoir_cli.settings import config
    from reservoir_cli.storage.open_store import open_store

    settings = config.load(None, {"embedding_model": "./none", "min_history_messages": 0})
    key = "sk-proj-" + "a1B2c3D4" * 6
    with tempfile.TemporaryDirectory() as folder:
        with Reservoir(open_store(f"{folder}/store.db"), settings, offline=True) as reservoir:
            question = Message("user", "When did I buy the bicycle, on 9 May?", conversation_id="c")
            answer = Message("assistant", f"I do not know. api_key={key}", conversation_id="c")
            reservoir.ingest([question, answer], embed=False)
            reservoir.search("bicycle", limit=3)
            reservoir.context("When did I buy the bicycle last May?", budget=500)


def _fill_gaps() -> None:
    """Allocate the gaps between what is loaded, so that a child gets new pages instead.

    It would copy the page of each gap that it uses: a quarter of all pages that it touches.
    """
    allocate = ctypes.CDLL(None).malloc
    allocate.argtypes = [ctypes.c_size_t]
    for size in (65_536, 16_384, 4_096, 2_048, 1_024, 512, 256, 128, 64, 24):
        for _ in range(min(1_000, 2**21 // size)):
            allocate(size)


def serve(requests: socket.socket) -> None:
    """Run one command after another, and send the exit status of each."""
    set_by_imports = {key: text for key, text in os.environ.items() if key not in _INITIAL}
    requests.sendall(struct.pack("i", READY))
    measuring.save()
    known = measuring.know(os.getpid())
    while received := socket.recv_fds(requests, 4, 4):
        head, streams = received[0], received[1]
        if not head:
            return
        request = json.loads(_read(requests, struct.unpack("I", head)[0]))
        child = os.fork()
        if not child:
            requests.close()
            if len(streams) == 4:
                *streams, status = streams
                _keep(streams, status)
            measuring.save_at_exit()
            _become(request, streams, set_by_imports)
        for stream in streams:
            os.close(stream)
        if len(streams) == 4:
            continue
        requests.sendall(struct.pack("i", _wait_for(child)))
        known = measuring.know(os.getpid(), known)


def _read(requests: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        parts += requests.recv(size - len(parts))
    return bytes(parts)


def _keep(streams: Sequence[int], status: int) -> None:
    """Fork again; return in the child, and report its id and status from this process."""
    child = os.fork()
    if not child:
        os.close(status)
        return
    for stream in streams:
        os.close(stream)
    os.write(status, struct.pack("i", child))
    os.write(status, struct.pack("i", os.waitpid(child, 0)[1]))
    os._exit(0)


def _become(request: dict[str, Any], streams: Sequence[int], variables: dict[str, str]) -> None:
    """Turn a forked child into the command; never return."""
    from reservoir_cli.__main__ import main

    try:
        os.chdir(request["folder"])
        if request["umask"] >= 0:
            os.umask(request["umask"])
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, max(streams) + 1)
        if request.get("own_terminal"):
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        os.environ.clear()
        os.environ.update(variables | request["env"])
        time.tzset()
        sys.argv = ["reservoir", *request["arguments"]]
        sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
        main()
    except BaseException:
        import traceback

        with suppress(BaseException):
            os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(99)


def _wait_for(child: int) -> int:
    """Return the exit status of a child; kill it if it hangs."""
    with suppress(AttributeError):  # only Linux has pidfd_open
        handle = os.pidfd_open(child)
        try:
            if not select.select([handle], [], [], PATIENCE)[0]:
                os.kill(child, signal.SIGKILL)
        finally:
            os.close(handle)
    return os.waitpid(child, 0)[1]


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored if the tests run under ``nohup``
    load_all(*sys.argv[2:])
    serve(socket.socket(fileno=int(sys.argv[1])))
