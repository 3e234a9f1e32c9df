"""Read from the log which hooks of agents failed: they print nothing, so that no prompt waits."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from reservoir_cli.settings import log_file

_LINE = re.compile(r"(\S+) WARNING (hook\b.*)")  #: A line of a hook, after its time.


class HookFailure(NamedTuple):
    """A hook that failed, and why."""

    at: datetime
    reason: str


def read_failures(since: datetime) -> list[HookFailure]:
    """Return the hooks that failed since a time, oldest first."""
    return [failure for failure in _read() if failure.at >= since]


def _read() -> Iterator[HookFailure]:
    for line in log_file.read_lines():
        if match := _LINE.fullmatch(line):
            with suppress(ValueError, OverflowError):  # a damaged line
                yield HookFailure(datetime.fromisoformat(match[1]).astimezone(UTC), match[2])


def describe_failures(failures: list[HookFailure]) -> str:
    """Return how often hooks failed, and why the last one did."""
    times = "once" if len(failures) == 1 else f"{len(failures):,} times"
    last = failures[-1]
    return f"hooks failed {times}, last at {last.at.isoformat(timespec='seconds')}: {last.reason}"
