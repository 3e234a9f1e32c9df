"""Log errors that nobody sees: those of hooks, and of the syncs that hooks start."""

import json
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime

from reservoir_cli.agents import hook_time_limit
from reservoir_cli.settings import log_file


def log(message: str) -> None:
    """Append an error, without any text of a message, to the log if nobody reads stderr."""
    command = "hook" if hook_time_limit.is_hook(sys.argv[1:]) else "sync"
    with suppress(Exception):
        if command == "hook" or ("sync" in sys.argv and _discards_stderr()):
            # As JSON, since a name or a path may contain a line break.
            log_file.append(datetime.now(UTC), f"{command}: {json.dumps(message)}")


def _discards_stderr() -> bool:
    return os.path.samestat(os.fstat(2), os.stat(os.devnull))
