"""Reserve the server's pipes for the protocol, and end the process on signals.

This happens before the SDK is imported, so that no module can print to the client on import.
"""

import os
import signal
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

#: The exit code after a signal; Windows has no SIGHUP.
_EXIT_CODES = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 143}


class Wire(NamedTuple):
    """The pipes to the client."""

    input: BinaryIO
    output: BinaryIO


def take_wire() -> Wire:
    """Reserve stdin and stdout for the protocol: others print to stderr, and read nothing."""
    wire = Wire(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0))
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return wire


def end_on_signals() -> None:
    """End the process immediately on a signal; the store rolls back uncommitted writes."""

    def end_with(code: int) -> Callable[[int, object], None]:
        return lambda _signal, _frame: os._exit(code)

    for name, code in _EXIT_CODES.items():
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end_with(code))
