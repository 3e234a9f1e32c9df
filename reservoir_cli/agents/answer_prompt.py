"""Answer the hook event of a prompt with recalled messages."""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from reservoir_cli.agents import hook_time_limit, injection_log
from reservoir_cli.agents.read_transcript import read_transcript
from reservoir_cli.context.recall import Reason, Recall, Skipped
from reservoir_cli.errors import ReservoirError
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings.recall_switch import find_switch
from reservoir_cli.settings.schema import RECALL_BUDGET
from reservoir_cli.util.timeouts import LOCKED_STORE_OF_HOOK

MAX_OUTPUT = 9_000  #: The most characters that are printed; clients truncate beyond 10,000.


def answer_prompt(event: Any, config_file: Path | None, db: str | None, budget: int | None) -> None:
    """Print what is recalled for a prompt, and log its numbers."""
    prompt, session, folder = (_text(event, name) for name in ("prompt", "session_id", "cwd"))
    if not prompt:
        return
    with Reservoir.open(
        db, config_file=config_file, create=False, ready_only=True, patience=LOCKED_STORE_OF_HOOK
    ) as reservoir:
        folder = folder or _current_folder()
        partition = reservoir.config.partition_of(folder) if folder else None
        if find_switch(reservoir.config, partition, folder):
            return
        path = _text(event, "transcript_path")
        recall = _recall(reservoir, prompt, partition, session, path, budget or RECALL_BUDGET)
        if isinstance(recall, Recall):
            _print(recall.text)
            injection_log.record(reservoir, recall, "hook", _client_of(event), partition, session)
        elif recall and recall.reason is Reason.EMPTY:
            _require_messages(reservoir, partition, db)


def _recall(
    reservoir: Reservoir,
    prompt: str,
    partition: str | None,
    session: str | None,
    path: str | None,
    budget: int,
) -> Recall | Skipped | None:
    transcript = read_transcript(path)
    while budget:
        recall = reservoir.recall(
            prompt,
            partition=partition,
            budget=budget,
            exclude_conversation=session,
            talk=transcript.talk,
            shown=sorted(transcript.recalled),
        )
        if isinstance(recall, Skipped) or len(recall.text) <= MAX_OUTPUT:
            return recall
        budget = int(0.95 * budget * MAX_OUTPUT / len(recall.text))
    return None


def _client_of(event: Any) -> str | None:
    transcript = os.path.basename(_text(event, "transcript_path") or "")
    if _text(event, "hook_event_name") == "BeforeAgent":
        return "gemini"
    if transcript.startswith("rollout-") or _text(event, "turn_id"):
        return "codex"
    return "claude" if transcript.endswith(".jsonl") else None


def _current_folder() -> str | None:
    with suppress(OSError):
        return os.getcwd()
    return None


def _require_messages(reservoir: Reservoir, partition: str | None, db: str | None) -> None:
    name = reservoir.scope(partition).partition
    partitions = {entry[0] for entry in reservoir.lookup.channels()}
    if db and not partitions:
        raise ReservoirError(f"the store {reservoir.location} is empty or missing")
    if partitions and name not in partitions:
        hint = "setting partition, or projects for a folder, selects another"
        raise ReservoirError(f"partition {name} is empty: {hint}")


def _text(event: Any, name: str) -> str | None:
    value = event.get(name) if isinstance(event, dict) else None
    return value if isinstance(value, str) else None


def _print(text: str) -> None:
    output = {"hookEventName": "UserPromptSubmit", "additionalContext": text}
    line = json.dumps({"hookSpecificOutput": output}, ensure_ascii=False) + "\n"
    sys.stdout.flush()
    with hook_time_limit.printing, suppress(OSError):  # the client is gone
        os.write(sys.stdout.fileno(), line.encode("utf-8", "replace"))
