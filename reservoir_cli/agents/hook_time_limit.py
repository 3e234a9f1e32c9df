"""End a hook after a time limit, whatever it is waiting for: a lock, a disk, an import.

This module is imported before all others, so it imports little.
"""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

LIMIT = 1.7  #: Seconds from the start of the process; 2 are documented.
_STARTUP = 0.1  #: Seconds that the interpreter takes to start, where the system does not tell.
_WITH_VALUE = ("--config", "--db")  #: Options before the command that take a value.
#: Seconds to log that a hook was ended, and how long before the limit what logs it is imported.
_LOGGING, _IMPORTING = 0.1, 0.7


def is_hook(arguments: list[str]) -> bool:
    """Return whether a command line runs ``reservoir hook EVENT``."""
    rest = iter(arguments)
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif not word.startswith("-"):
            return word == "hook" and not {"-h", "--help"} & set(arguments)
    return False


def begin() -> None:
    """Limit the run time of this process, and make it always exit with 0.

    On POSIX the work is done in a child process: its output is printed when it is complete, and a
    child that hangs is killed, even in code that holds the GIL.
    """
    deadline = time.monotonic() + LIMIT - _age()
    if not hasattr(os, "fork"):
        _end_later(deadline)
        return
    while (null := os.open(os.devnull, os.O_RDWR)) < 3:
        pass  # occupy the descriptors of standard streams that were closed
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        _watch(child, reader, deadline)
    os.dup2(writer, 1)
    # It belongs to the old descriptor; the command line opens a new one.
    sys.stdout = None
    if not (os.isatty(2) or os.environ.get("RESERVOIR_DEBUG") == "1"):
        os.dup2(null, 2)
        sys.stderr = None
    for descriptor in (reader, writer, null):
        os.close(descriptor)


def _watch(child: int, reader: int, deadline: float) -> NoReturn:
    import select
    import signal

    log_ended = _prepare_log(deadline)
    output = bytearray()
    while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
        if chunk := os.read(reader, 65_536):
            output += chunk
            continue
        if os.waitpid(child, 0)[1] == 0:
            with suppress(OSError):  # the client is gone
                os.write(1, output)
        os._exit(0)
    if sys.platform != "win32":  # which has no fork
        os.kill(child, signal.SIGKILL)
    log_ended()
    os._exit(0)


def _end_later(deadline: float) -> None:
    import _thread

    def wait() -> None:
        time.sleep(max(0.0, deadline - time.monotonic()))
        if running.acquire(blocking=False):
            log_ended()
            os._exit(0)

    log_ended = _prepare_log(deadline)
    running = _thread.allocate_lock()
    _finishers.append(lambda: running.acquire(blocking=True))
    _thread.start_new_thread(wait, ())


_finishers: list[Callable[[], object]] = []


def finish() -> None:
    """Lift the limit: only the output remains to be written."""
    for lift in _finishers:
        lift()


def _prepare_log(deadline: float) -> Callable[[], None]:
    """Return a function that logs that a hook was ended.

    It does not wait long, since it may be the disk that hangs; so the imports are done in advance.
    """
    import _thread

    ended, written = _thread.allocate_lock(), _thread.allocate_lock()
    ended.acquire()
    written.acquire()

    def write() -> None:
        time.sleep(max(0.0, deadline - _IMPORTING - time.monotonic()))
        from datetime import UTC, datetime

        from reservoir_cli.settings import log_file, paths

        with suppress(Exception):
            paths.log_files()  # it imports more where RESERVOIR_HOME is not set
            ended.acquire()
            log_file.append(datetime.now(UTC), f"hook ended: it took more than {LIMIT} seconds")
        written.release()

    def log_ended() -> None:
        ended.release()
        written.acquire(timeout=_LOGGING)

    _thread.start_new_thread(write, ())
    return log_ended


def _age() -> float:
    if sys.platform != "linux":
        return _STARTUP
    try:
        with open("/proc/self/stat", "rb") as file:
            started = int(file.read().rpartition(b")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return _STARTUP
    return age if 0 <= age < LIMIT else _STARTUP
