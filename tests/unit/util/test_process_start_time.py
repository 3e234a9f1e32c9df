"""The start time of a process tells it from a later process with the same PID."""

import os
import shutil
import subprocess
import sys
import time

import pytest

from reservoir_cli.util import programs as module
from reservoir_cli.util.programs import process_start_time

WAITING = "import sys; print('ready', flush=True); sys.stdin.read()"


def waiting() -> "subprocess.Popen[bytes]":
    """Start a process that runs until its input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout
    assert process.stdout.readline().startswith(b"ready")
    return process


def sources() -> list[object]:
    ps = [module._ask_ps] if os.name == "posix" and shutil.which("ps") else []
    return [process_start_time, *ps]


@pytest.mark.parametrize("read", sources())
def test_a_start_time_stays_the_same_until_the_process_has_ended(read):
    with waiting() as process:
        started = read(process.pid)
        assert started
        assert read(process.pid) == started
        process.kill()
        if sys.platform == "linux":  # it stays in the list of processes until it is waited for
            while module._read_proc(process.pid):
                time.sleep(0.01)
            assert read(process.pid) is None
        process.wait(60)
        assert read(process.pid) is None


def test_two_processes_have_different_start_times():
    with waiting() as second:
        assert process_start_time(second.pid) != process_start_time(os.getpid())
        second.kill()


def test_a_number_of_no_process_has_no_start_time():
    for pid in (2**31 - 1, 2**80, -1, 0):
        if sys.platform != "win32" or 0 < pid < 2**32:
            assert process_start_time(pid) is None
