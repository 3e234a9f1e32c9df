"""Append lines to the log, which is rotated and readable by the user only, and read them again."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from reservoir_cli.settings import paths
from reservoir_cli.util.private_files import make_private_dir, restrict_permissions
from reservoir_cli.util.read_files import open_regular

_MAX_SIZE = 1_000_000  #: The size in bytes at which the log is rotated.
#: The largest log that is read, in bytes: more than it has before it is rotated.
_LARGEST = 4 << 20
#: A line about a hook that failed, after its time: hooks print nothing, so that no prompt waits.
_FAILURE = re.compile(r"(\S+) WARNING (hook\b.*)")
_RECENT = timedelta(days=7)


class HookFailure(NamedTuple):
    """A hook that failed, and why."""

    at: datetime
    reason: str


def append(now: datetime, text: str, *, level: str = "WARNING") -> None:
    """Append a line to the log."""
    files = paths.log_files()
    line = f"{now.isoformat(timespec='seconds')} {level} {text}\n"
    make_private_dir(files[0].parent)
    # The same files as logging.handlers.RotatingFileHandler, which takes 15 ms to import.
    if files[0].exists() and files[0].stat().st_size + len(line) > _MAX_SIZE:
        for newer, older in zip(files[-2::-1], files[:0:-1], strict=True):
            if newer.exists():
                newer.replace(older)
    restrict_permissions(files)
    # Opening a pipe at this path would block until somebody reads it.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
    handle = os.open(files[0], flags, 0o600)
    with open(handle, "a", encoding="utf-8", newline="\n") as log:
        log.write(line)


def read_lines() -> Iterator[str]:
    """Yield the lines of the log and its predecessors, oldest first, as far as they can be read."""
    for file in reversed(paths.log_files()):
        data = b""
        with suppress(OSError), open_regular(file) as log:
            data = log.read(_LARGEST)
        yield from data.decode("utf-8", "replace").splitlines()


def recent_failures() -> list[HookFailure]:
    """Return the hooks that failed in the last days, oldest first."""
    since, failures = datetime.now(UTC) - _RECENT, []
    for match in filter(None, map(_FAILURE.fullmatch, read_lines())):
        with suppress(ValueError, OverflowError):  # a damaged line
            at = datetime.fromisoformat(match[1]).astimezone(UTC)
            failures += [HookFailure(at, match[2])] if at >= since else []
    return failures


def describe_failures(failures: list[HookFailure]) -> str:
    """Return how often hooks failed, and why the last one did."""
    times = "once" if len(failures) == 1 else f"{len(failures):,} times"
    at, reason = failures[-1]
    last = f"last at {at.isoformat(timespec='seconds')}: {reason}"
    return f"hooks failed {times}, {last} (in the last {_RECENT.days} days)"
