"""Answer the calls of the ``llm`` plugin, which imports this module on first use."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reservoir_cli.agents.mcp.tools import Answers, Caller, offered_tools
from reservoir_cli.context.recall import Skipped
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings import config
from reservoir_cli.util.timeouts import LOCKED_STORE_OF_LLM


def recall(question: str) -> str:
    """Return the text recalled for a question; if there is none, print the reason to stderr."""
    with _open(create=False, notify=lambda _: None) as reservoir:
        outcome = reservoir.recall(question, partition=_partition())
    if not isinstance(outcome, Skipped):
        return outcome.text
    sys.stderr.write(f"reservoir: {outcome.explanation}\n")
    return ""


def answer(tool: str, arguments: Mapping[str, Any]) -> str:
    """Answer a tool call, or return the text of a ``fragment`` for a question."""
    if tool == "fragment":
        return recall(arguments["question"])
    checked = offered_tools()[tool].check(arguments)
    answers = Answers(_open)
    try:
        return answers.answer(tool, checked, _partition(), Caller("llm", (Path.cwd(),)))
    finally:
        answers.release()


def _open(*, create: bool, notify: Callable[[str], None]) -> Reservoir:
    return Reservoir.open(
        create=create, ready_only=True, patience=LOCKED_STORE_OF_LLM, notify=notify
    )


def _partition() -> str:
    settings = config.load()
    return settings.partition_of(Path.cwd()) or str(settings.lookup("partition")[0])
