"""Answer the events of Claude Code and Codex, which send the same JSON."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reservoir_cli.agents import time_limit
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings import log_file
from reservoir_cli.util import this_program

#: Clients cut off what is longer than 10,000 characters.
LONGEST = 9_000
#: The largest event that is read, in bytes.
LARGEST_EVENT = 32 << 20
#: Seconds to wait for a store that others write to.
_PATIENCE = 0.5
#: Events at which the store catches up with the histories on this machine.
SYNC_EVENTS = ("stop", "session-end", "session-start")


def answer(
    event: str, *, config_file: Path | None, db: str | None, budget: int | None = None
) -> None:
    """Answer an event; its JSON is on stdin.

    A failure is written to the log, and nothing is printed.

    :param config_file: the settings file, if one was named; so is ``db``, the store.
    :param budget: tokens of what is recalled.
    """
    try:
        if event in SYNC_EVENTS:
            start_sync(config_file, db)
            _read_event()  # a client that cannot write it may complain
        elif event == "user-prompt":
            _print(_recalled(json.loads(_read_event()), config_file, db, budget))
        else:
            raise UsageError("there is no such event")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as failure:  # a panic in Rust is no Exception
        _log(event, failure)


def _recalled(event: Any, config_file: Path | None, db: str | None, budget: int | None) -> str:
    """Return what the client is to know beside a prompt; empty if nothing."""
    # Loads numpy, which other events do not need.
    from reservoir_cli.context.recall import BUDGET, Reason, Recall

    prompt, session, folder = (_text(event, name) for name in ("prompt", "session_id", "cwd"))
    if not prompt:
        return ""
    with Reservoir.open(
        db, config_file=config_file, create=False, ready_only=True, patience=_PATIENCE
    ) as reservoir:
        partition = reservoir.config.partition_of(folder) if folder else None
        budget = budget or BUDGET
        while budget:
            recall = reservoir.recall(
                prompt, partition=partition, budget=budget, exclude_conversation=session
            )
            if not isinstance(recall, Recall):
                if recall.reason is Reason.EMPTY:
                    _log_empty(reservoir, partition)
                break
            if len(recall.text) <= LONGEST:
                return recall.text
            budget = int(0.95 * budget * LONGEST / len(recall.text))
    return ""


def _log_empty(reservoir: Reservoir, partition: str | None) -> None:
    """Write to the log that the partition of a prompt is empty, if others are not."""
    name = reservoir.scope(partition).partition
    partitions = {place[0] for place in reservoir.lookup.places()}
    if partitions and name not in partitions:
        hint = "setting partition, or projects for a folder, names another"
        _log("user-prompt", ReservoirError(f"partition {name} is empty: {hint}"))


def _text(event: Any, name: str) -> str | None:
    """Return a text of an event, if it is one."""
    value = event.get(name) if isinstance(event, dict) else None
    return value if isinstance(value, str) else None


def _read_event() -> bytes:
    """Return what the client sends; nothing from a terminal.

    :raises UsageError: it is too large.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    data = sys.stdin.buffer.read(LARGEST_EVENT + 1)
    if len(data) > LARGEST_EVENT:
        raise UsageError("the event is too large")
    return data


def _print(text: str) -> None:
    """Print what the client puts behind the prompt, in one write."""
    if not text:
        return
    output = {"hookEventName": "UserPromptSubmit", "additionalContext": text}
    line = json.dumps({"hookSpecificOutput": output}, ensure_ascii=False) + "\n"
    time_limit.finish()
    sys.stdout.flush()
    with suppress(OSError):  # nobody reads it any more
        os.write(sys.stdout.fileno(), line.encode("utf-8", "replace"))


def start_sync(config_file: Path | None, db: str | None) -> None:
    """Start ``reservoir sync`` on its own: it outlives this process and prints nothing.

    :raises OSError: it cannot be started.
    """
    given = {"--config": config_file, "--db": db}
    options = [word for name, value in given.items() if value for word in (name, str(value))]
    # -P: a folder that people work in may hold a module of any name.
    command = [*this_program.IN_PYTHON, *options, "sync", "--quiet"]
    apart: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        apart = {"creationflags": flags}
    nothing = subprocess.DEVNULL
    subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, **apart)


def _log(event: str, failure: BaseException) -> None:
    """Write to the log why an event has no answer; only our own errors with their text."""
    said = failure.message if isinstance(failure, ReservoirError) else type(failure).__name__
    if isinstance(failure, OSError) and failure.errno:
        said = os.strerror(failure.errno)
    with suppress(Exception):
        # As JSON: a name or a path may hold what would begin another line.
        log_file.append(datetime.now(UTC), f"hook {json.dumps(event)}: {json.dumps(said)}")
