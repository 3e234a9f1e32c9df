"""End a hook after a time limit, whatever it is waiting for: a lock, a disk, an import.

This module is imported before all others, so it imports little.
"""

import _thread
import os
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

LIMIT = 1.7  #: Seconds from the start of the process; 2 are documented.
_STARTUP = 0.1  #: Seconds that the interpreter takes to start, where the system does not tell.
_WITH_VALUE = ("--config", "--db")  #: Options before the command that take a value.
#: Seconds to log that a hook was ended, and how long before the limit what logs it is imported.
_LOGGING, _IMPORTING = 0.1, 0.7
printing = _thread.allocate_lock()  #: Held while output is written, so that none is cut.


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
    """Limit the run time of this process, and make it exit with 0 even if it fails to start.

    A thread ends it at the limit, or when it has printed; another one writes a line to the log,
    which is not waited for long, since it may be the disk that hangs.
    """
    deadline = time.monotonic() + LIMIT - _age()
    ended, logged = _thread.allocate_lock(), _thread.allocate_lock()
    ended.acquire()
    logged.acquire()

    def end() -> None:
        time.sleep(max(0.0, deadline - time.monotonic()))
        printing.acquire()
        ended.release()
        logged.acquire(timeout=_LOGGING)
        os._exit(0)

    def log() -> None:
        time.sleep(max(0.0, deadline - _IMPORTING - time.monotonic()))
        with suppress(Exception):
            from datetime import UTC, datetime

            from reservoir_cli.settings import log_file, paths

            paths.log_files()  # it imports more where RESERVOIR_HOME is not set
            ended.acquire()
            log_file.append(datetime.now(UTC), f"hook ended: it took more than {LIMIT} seconds")
        logged.release()

    sys.excepthook = _report_and_leave
    if not (os.isatty(2) or os.environ.get("RESERVOIR_DEBUG") == "1"):
        os.dup2(os.open(os.devnull, os.O_RDWR), 2)
    _thread.start_new_thread(end, ())
    _thread.start_new_thread(log, ())


def _report_and_leave(*failure: Any) -> NoReturn:
    sys.__excepthook__(*failure)
    os._exit(0)


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
