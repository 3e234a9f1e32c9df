"""What the plugin for ``llm`` answers with; imported when it is first used."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reservoir_cli.agents.mcp.tool_schemas import tools
from reservoir_cli.agents.mcp.tools import Answers
from reservoir_cli.context.recall import Skipped
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings import config

#: Seconds to wait while others write.
_PATIENCE = 10.0


def recalled(question: str) -> str:
    """Return what is recalled for a question; if that is nothing, stderr says why."""
    with _open(create=False, notify=lambda _: None) as reservoir:
        outcome = reservoir.recall(question, partition=_partition())
    if not isinstance(outcome, Skipped):
        return outcome.text
    sys.stderr.write(f"reservoir: {outcome.explanation}\n")
    return ""


def answer(tool: str, given: Mapping[str, Any]) -> str:
    """Answer a call of a tool, or return the text of a ``fragment`` for a question.

    :raises ReservoirError: an argument is wrong, or the tool failed.
    """
    if tool == "fragment":
        return recalled(given["question"])
    arguments = tools()[tool].check(given)
    answers = Answers(_open)
    try:
        return answers.answer(tool, arguments, _partition())
    finally:
        answers.release()


def _open(*, create: bool, notify: Callable[[str], None]) -> Reservoir:
    return Reservoir.open(create=create, ready_only=True, patience=_PATIENCE, notify=notify)


def _partition() -> str:
    """Return the partition of the folder we are in, else the default one."""
    known = config.load()
    return known.partition_of(Path.cwd()) or str(known.lookup("partition")[0])
