"""End a hook in time, whatever it waits for: a lock, a disk, an import.

This is imported before anything else is, so it imports little.
"""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

#: Seconds from the start of the process; clients are told of 2.
LIMIT = 1.7
#: Seconds that the interpreter took to start, where the system does not say.
_STARTING = 0.1
#: Options before the command that take a value.
_WITH_VALUE = ("--config", "--db")
#: Seconds to write why a hook was ended.
_LOGGING = 0.1


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
    """Limit the time of this process from its start, and let it exit with 0 only.

    On POSIX the work goes on in a child: its output is passed on when it is complete, and a
    child that hangs, even in code that holds the interpreter's lock, is killed.
    """
    deadline = time.monotonic() + LIMIT - _age()
    if not hasattr(os, "fork"):
        _end_later(deadline)
        return
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        """Take the numbers of streams that were closed before we began."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        _watch(child, reader, deadline)
    os.dup2(writer, 1)
    # Made for another file; without one, the command line opens its own.
    sys.stdout = None
    if not (os.isatty(2) or os.environ.get("RESERVOIR_DEBUG") == "1"):
        os.dup2(number, 2)
        sys.stderr = None
    for extra in (reader, writer, number):
        os.close(extra)


def _watch(child: int, reader: int, deadline: float) -> NoReturn:
    """Pass on what a child prints if it ends well and in time, and exit."""
    import select
    import signal

    output = bytearray()
    while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
        if piece := os.read(reader, 65_536):
            output += piece
            continue
        if os.waitpid(child, 0)[1] == 0:
            with suppress(OSError):  # nobody reads it any more
                os.write(1, output)
        os._exit(0)
    os.kill(child, signal.SIGKILL)
    _say_ended()
    os._exit(0)


def _end_later(deadline: float) -> None:
    """End this process at a time, unless :func:`finish` was called."""
    import _thread

    def wait() -> None:
        time.sleep(max(0.0, deadline - time.monotonic()))
        if _running.acquire(blocking=False):
            _say_ended()
            os._exit(0)

    _running = _thread.allocate_lock()
    _finish.append(lambda: _running.acquire(blocking=True))
    _thread.start_new_thread(wait, ())


_finish: list[Callable[[], object]] = []


def finish() -> None:
    """Lift the limit: from here on there is only output to write."""
    for lift in _finish:
        lift()


def _say_ended() -> None:
    """Write to the log that a hook was ended; not for long, as the disk may be what hangs."""
    import _thread

    done = _thread.allocate_lock()
    done.acquire()

    def write() -> None:
        from datetime import UTC, datetime

        from reservoir_cli.settings import log_file

        with suppress(Exception):
            log_file.append(datetime.now(UTC), f"hook ended: it took more than {LIMIT} seconds")
        done.release()

    _thread.start_new_thread(write, ())
    done.acquire(timeout=_LOGGING)


def _age() -> float:
    """Return how many seconds ago this process started."""
    if sys.platform != "linux":
        return _STARTING
    try:
        with open("/proc/self/stat", "rb") as file:
            started = int(file.read().rpartition(b")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return _STARTING
    return age if 0 <= age < LIMIT else _STARTING
