"""The entry point, which also holds while the command line is still loading."""

import gc
import os
import signal
import sys
from types import FrameType


def _interrupted(_signal: int, _frame: FrameType | None) -> None:
    os._exit(130)


def main() -> None:
    """Load the command line and run it; Ctrl-C meanwhile ends the program without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
    # Modules are full of objects that stay: looking for garbage among them takes 5% of a command.
    gc.set_threshold(100_000, 20, 100)
    is_hook = "hook" in sys.argv and _limit_hook()
    from reservoir_cli.cli.app import main as run

    run(always_succeed=is_hook)


def _limit_hook() -> bool:
    """Limit the time of a hook; return whether this is one."""
    from reservoir_cli.agents import time_limit

    is_hook = time_limit.is_hook(sys.argv[1:])
    if is_hook:
        time_limit.begin()
    return is_hook


if __name__ == "__main__":
    main()
