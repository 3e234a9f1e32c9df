"""The process of a server: its pipes to the client, and its end.

Called before the SDK is imported, so that nothing that the SDK imports can print to the client.
"""

import os
import signal
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

#: The exit code after a signal; Windows has no SIGHUP.
_EXIT_CODES = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 143}


class Wire(NamedTuple):
    """The pipes that carry the protocol."""

    input: BinaryIO
    output: BinaryIO


def take_wire() -> Wire:
    """Take stdin and stdout for the protocol alone.

    From now on whatever prints to stdout, in any library or child process, prints to stderr, and
    whatever reads stdin finds its end.
    """
    wire = Wire(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0))
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return wire


def end_on_signals() -> None:
    """End the process at once on a signal; the store undoes a write that is not committed."""

    def end_with(code: int) -> Callable[[int, object], None]:
        return lambda _signal, _frame: os._exit(code)

    for name, code in _EXIT_CODES.items():
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end_with(code))
