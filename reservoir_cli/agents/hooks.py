"""Handle the hook events of Claude Code and Codex, which send the same JSON."""

import json
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reservoir_cli.agents import hook_time_limit
from reservoir_cli.agents.transcript import read_transcript
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings import log_file
from reservoir_cli.settings.schema import RECALL_BUDGET
from reservoir_cli.util import installation
from reservoir_cli.util.programs import start_in_background
from reservoir_cli.util.time_limits import LOCKED_STORE_OF_HOOK

#: The most characters that are printed; clients truncate beyond 10,000.
MAX_OUTPUT = 9_000
#: The largest event that is read, in bytes.
MAX_EVENT = 32 << 20
#: Events that start a sync of the histories on this machine.
SYNC_EVENTS = ("stop", "session-end", "session-start")


def answer(
    event: str, *, config_file: Path | None, db: str | None, budget: int | None = None
) -> None:
    """Handle an event, whose JSON is on stdin.

    On failure nothing is printed; the reason is logged.

    :param config_file: the settings file, if one was named.
    :param db: the store, if one was named.
    :param budget: the most tokens to recall.
    """
    try:
        if event in SYNC_EVENTS:
            start_sync(config_file, db)
            _read_event()  # some clients report an error if nobody reads their event
        elif event == "user-prompt":
            _print(_recall(json.loads(_read_event()), config_file, db, budget))
        else:
            raise UsageError("there is no such event")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as failure:  # a Rust panic is not an Exception
        _log(event, failure)


def _recall(event: Any, config_file: Path | None, db: str | None, budget: int | None) -> str:
    """Return the text recalled for a prompt; ``""`` if there is none."""
    # Loads numpy, which other events do not need.
    from reservoir_cli.context.recall import Reason, Recall

    prompt, session, folder = (_text(event, name) for name in ("prompt", "session_id", "cwd"))
    if not prompt:
        return ""
    transcript = read_transcript(_text(event, "transcript_path"))
    with Reservoir.open(
        db, config_file=config_file, create=False, ready_only=True, patience=LOCKED_STORE_OF_HOOK
    ) as reservoir:
        folder = folder or _current_folder()
        partition = reservoir.config.partition_of(folder) if folder else None
        budget = budget or RECALL_BUDGET
        while budget:
            recall = reservoir.recall(
                prompt,
                partition=partition,
                budget=budget,
                exclude_conversation=session,
                talk=transcript.talk,
                shown=sorted(transcript.recalled),
            )
            if not isinstance(recall, Recall):
                if recall.reason is Reason.EMPTY:
                    _log_empty(reservoir, partition, db)
                break
            if len(recall.text) <= MAX_OUTPUT:
                return recall.text
            budget = int(0.95 * budget * MAX_OUTPUT / len(recall.text))
    return ""


def _current_folder() -> str | None:
    """Return the folder in which the client runs the hook, unless it was deleted."""
    with suppress(OSError):
        return os.getcwd()
    return None


def _log_empty(reservoir: Reservoir, partition: str | None, db: str | None) -> None:
    """Log that a named store is empty or missing, or only the partition of a prompt."""
    name = reservoir.scope(partition).partition
    partitions = {place[0] for place in reservoir.lookup.places()}
    if db and not partitions:
        location = reservoir.store.location
        _log("user-prompt", ReservoirError(f"the store {location} is empty or missing"))
    if partitions and name not in partitions:
        hint = "setting partition, or projects for a folder, selects another"
        _log("user-prompt", ReservoirError(f"partition {name} is empty: {hint}"))


def _text(event: Any, name: str) -> str | None:
    """Return a member of an event if it is a string."""
    value = event.get(name) if isinstance(event, dict) else None
    return value if isinstance(value, str) else None


def _read_event() -> bytes:
    """Return the event on stdin; ``b""`` if stdin is a terminal.

    :raises UsageError: the event is too large.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    data = sys.stdin.buffer.read(MAX_EVENT + 1)
    if len(data) > MAX_EVENT:
        raise UsageError("the event is too large")
    return data


def _print(text: str) -> None:
    """Print the context that the client appends to the prompt, in one write."""
    if not text:
        return
    output = {"hookEventName": "UserPromptSubmit", "additionalContext": text}
    line = json.dumps({"hookSpecificOutput": output}, ensure_ascii=False) + "\n"
    hook_time_limit.finish()
    sys.stdout.flush()
    with suppress(OSError):  # the client is gone
        os.write(sys.stdout.fileno(), line.encode("utf-8", "replace"))


def start_sync(config_file: Path | None, db: str | None) -> None:
    """Start ``reservoir sync`` detached: it outlives this process and prints nothing.

    :raises OSError: it cannot be started.
    """
    values = {"--config": config_file, "--db": db}
    options = [word for name, value in values.items() if value for word in (name, str(value))]
    # IN_PYTHON has -P: the current folder may contain a module of any name.
    command = [*installation.IN_PYTHON, *options, "sync", "--quiet"]
    start_in_background(command)


def _log(event: str, failure: BaseException) -> None:
    """Log why an event failed; only our own errors are logged with their text."""
    reason = failure.message if isinstance(failure, ReservoirError) else type(failure).__name__
    if isinstance(failure, OSError) and failure.errno:
        reason = os.strerror(failure.errno)
    with suppress(Exception):
        # As JSON, since a name or a path may contain a line break.
        log_file.append(datetime.now(UTC), f"hook {json.dumps(event)}: {json.dumps(reason)}")
