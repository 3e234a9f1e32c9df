"""Handle the hook events of Claude Code and Codex, which send the same JSON."""

import json
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from subprocess import Popen

from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.settings import log_file
from reservoir_cli.util import installation
from reservoir_cli.util.programs import start_in_background

MAX_EVENT = 32 << 20  #: The largest event that is read, in bytes.
#: Events that start a sync of the histories on this machine.
SYNC_EVENTS = ("stop", "session-end", "session-start")


def answer(
    event: str, *, config_file: Path | None, db: str | None, budget: int | None = None
) -> None:
    """Handle an event, whose JSON is on stdin; a failure is logged, and nothing printed."""
    try:
        if event in SYNC_EVENTS:
            start_sync(config_file, db)
            _read_event()  # some clients report an error if nobody reads their event
        elif event == "user-prompt":
            # Loads what other events do not need.
            from reservoir_cli.agents.answer_prompt import answer_prompt

            answer_prompt(json.loads(_read_event()), config_file, db, budget)
        else:
            raise UsageError("there is no such event")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as failure:  # a Rust panic is not an Exception
        _log(event, failure)


def _read_event() -> bytes:
    """Return the event on stdin; ``b""`` if stdin is a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    data = sys.stdin.buffer.read(MAX_EVENT + 1)
    if len(data) > MAX_EVENT:
        raise UsageError("the event is too large")
    return data


def start_sync(config_file: Path | None, db: str | None) -> Popen[bytes]:
    """Start ``reservoir sync`` detached: it outlives this process and prints nothing."""
    values = {"--config": config_file, "--db": db}
    options = [word for name, value in values.items() if value for word in (name, str(value))]
    # IN_PYTHON has -P: the current folder may contain a module of any name.
    command = [*installation.IN_PYTHON, *options, "sync", "--quiet"]
    return start_in_background(command)


def _log(event: str, failure: BaseException) -> None:
    """Log why an event failed; only our own errors are logged with their text."""
    reason = failure.message if isinstance(failure, ReservoirError) else type(failure).__name__
    if isinstance(failure, OSError) and failure.errno:
        reason = os.strerror(failure.errno)
    with suppress(Exception):
        # As JSON, since a name or a path may contain a line break.
        log_file.append(datetime.now(UTC), f"hook {json.dumps(event)}: {json.dumps(reason)}")
