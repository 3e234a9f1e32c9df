"""The program's entry point; it handles Ctrl-C and time limits while modules are imported."""

import gc
import os
import signal
import sys
from types import FrameType


def _interrupted(_signal: int, _frame: FrameType | None) -> None:
    os._exit(130)


def main() -> None:
    """Import the command line and run it; Ctrl-C exits without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
    # Modules create many objects that stay: collecting garbage among them takes 5% of a command.
    gc.set_threshold(100_000, 20, 100)
    is_hook = False
    if "hook" in sys.argv:
        from reservoir_cli.agents import hook_time_limit

        is_hook = hook_time_limit.is_hook(sys.argv[1:])
        if is_hook:
            hook_time_limit.begin()
    from reservoir_cli.cli.app import main as run

    run(always_succeed=is_hook)


if __name__ == "__main__":
    main()
