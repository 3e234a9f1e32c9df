"""Whole processes from a cold prompt: how long they take and how much memory they hold."""

import compileall
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import reservoir_cli

# As pip leaves it; where Python may not write its bytecode, every process would compile anew.
compileall.compile_dir(Path(reservoir_cli.__file__).parent, quiet=1)

RESERVOIR = Path(sys.executable).with_name("reservoir")


@dataclass(frozen=True)
class Run:
    """One process from start to end.

    :param seconds: by the wall clock.
    :param megabytes: the most it held at once.
    :param computed: seconds of processor time, which other load on the machine changes less.
    """

    seconds: float
    megabytes: float
    computed: float


def run(command: Sequence[str], stdin: str = "", env: Mapping[str, str] | None = None) -> Run:
    """Run a command to its end.

    :raises RuntimeError: it failed.
    """
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(stdin.encode())
    process.stdin.close()
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.stderr.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {said.decode()}")
    # Linux counts kilobytes, macOS bytes.
    megabytes = usage.ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
    return Run(seconds, megabytes, usage.ru_utime + usage.ru_stime)


def medians(runs: Sequence[Run]) -> Run:
    """Return the median of each figure of several runs."""
    return Run(
        statistics.median(each.seconds for each in runs),
        statistics.median(each.megabytes for each in runs),
        statistics.median(each.computed for each in runs),
    )


def machine() -> str:
    """Describe the machine, for readers of the figures."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    version = ".".join(map(str, sys.version_info[:3]))
    return f"{os.cpu_count()} cores, Python {version}, {sys.platform}{load}"
