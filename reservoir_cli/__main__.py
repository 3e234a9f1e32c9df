"""The entry point, which also holds while the command line is still loading."""

import os
import signal
from types import FrameType


def _interrupted(_signal: int, _frame: FrameType | None) -> None:
    os._exit(130)


def main() -> None:
    """Load the command line and run it; Ctrl-C meanwhile ends the program without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
    from reservoir_cli.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
