"""Read all output of a command on a terminal."""

import os
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path


def read_to_end(master: int, slave: int, ended: Callable[[], bool]) -> bytes:
    """Read a terminal until its process has ended; close both of its ends.

    Our copy of the slave stays open meanwhile: when the last copy closes, reading fails with EIO,
    on a busy machine even before the last output is read.

    :param ended: whether the process has ended.
    """
    parts = []
    while ready(master, 0.005) or not ended():
        if ready(master, 0):
            parts.append(os.read(master, 65_536))
    os.close(slave)
    try:
        while part := os.read(master, 65_536):
            parts.append(part)
    except OSError:  # EIO at the end on Linux
        pass
    finally:
        os.close(master)
    return b"".join(parts)


def read_up_to(master: int, awaited: str, ended: Callable[[], bool], seconds: float) -> bytes:
    """Read a terminal until it has shown a text; fail if it does not appear in time."""
    shown = b""
    deadline = time.monotonic() + seconds
    while awaited.encode() not in shown:
        result = ended() or time.monotonic() > deadline
        assert ready(master, 0.1) or not result, f"no {awaited!r} after {shown.decode()!r}"
        if ready(master, 0):
            shown += os.read(master, 65_536)
    return shown


def pressing_ctrl_c(master: int, ended: Callable[[], bool]) -> Callable[[], bool]:
    """Press Ctrl-C again until a process has ended, as a user would.

    Python misses a Ctrl-C between printing a prompt and starting to read: then it sleeps.

    :returns: a function that says whether the process has ended.
    """
    pressed = time.monotonic()

    def check() -> bool:
        nonlocal pressed
        result, waited = ended(), time.monotonic() - pressed
        if not result and (waited > 5 or (waited > 0.2 and _sleeps(master))):
            os.write(master, b"\x03")
            pressed = time.monotonic()
        return result

    return check


def _sleeps(master: int) -> bool:
    """Return whether the program on a terminal sleeps, where the system says so."""
    try:
        status = Path(f"/proc/{os.tcgetpgrp(master)}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] == "S"


def ready(master: int, seconds: float) -> bool:
    """Return whether there is something to read; wait at most this many seconds."""
    return bool(select.select([master], [], [], seconds)[0])


def has_ended(process: "subprocess.Popen[bytes]") -> Callable[[], bool]:
    """Return a function that says whether a process has ended."""
    return lambda: process.poll() is not None
