"""Run commands as whole processes, and measure their time and memory."""

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

# Like pip; if Python cannot write bytecode itself, every process would compile the modules again.
compileall.compile_dir(Path(reservoir_cli.__file__).parent, quiet=1)

RESERVOIR = Path(sys.executable).with_name("reservoir")


@dataclass(frozen=True)
class Run:
    """The figures of one process.

    :param seconds: wall-clock time.
    :param megabytes: peak memory.
    :param cpu_seconds: CPU time, which other load on the machine affects less.
    """

    seconds: float
    megabytes: float
    cpu_seconds: float


def run(command: Sequence[str], stdin: str = "", env: Mapping[str, str] | None = None) -> Run:
    """Run a command until it exits.

    :raises RuntimeError: the command failed.
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
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.stderr.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {errors.decode()}")
    # Linux reports kilobytes, macOS bytes.
    megabytes = usage.ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
    return Run(seconds, megabytes, usage.ru_utime + usage.ru_stime)


def medians(runs: Sequence[Run]) -> Run:
    """Return the median of each figure over several runs."""
    return Run(
        statistics.median(run.seconds for run in runs),
        statistics.median(run.megabytes for run in runs),
        statistics.median(run.cpu_seconds for run in runs),
    )


def machine() -> str:
    """Return a description of the machine for the report."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    version = ".".join(map(str, sys.version_info[:3]))
    return f"{os.cpu_count()} cores, Python {version}, {sys.platform}{load}"
