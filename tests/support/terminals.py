"""Read what a command shows on a terminal, to its last byte."""

import os
import select
import subprocess
from collections.abc import Callable


def read_to_end(master: int, slave: int, ended: Callable[[], bool]) -> bytes:
    """Read a terminal until its process has ended; close both of its ends.

    Our own copy of the slave stays open meanwhile: when the last one closes, reading fails with
    EIO, and on a busy machine that may come before the last output does.

    :param ended: whether the process has ended.
    """
    parts = []
    while ready(master, 0.02) or not ended():
        if ready(master, 0):
            parts.append(os.read(master, 65_536))
    os.close(slave)
    try:
        while part := os.read(master, 65_536):
            parts.append(part)
    except OSError:  # Linux says EIO at the end
        pass
    finally:
        os.close(master)
    return b"".join(parts)


def ready(master: int, seconds: float) -> bool:
    """Return whether there is something to read, at most after some seconds."""
    return bool(select.select([master], [], [], seconds)[0])


def has_ended(process: "subprocess.Popen[bytes]") -> Callable[[], bool]:
    """Return a function that says whether a process has ended."""
    return lambda: process.poll() is not None
