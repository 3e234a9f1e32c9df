"""The table of ``context --explain``: each candidate, its scores, and the reason of its outcome."""

from collections.abc import Sequence
from typing import Any

from reservoir_cli.cli import console, options
from reservoir_cli.context.candidate import Candidate, describe_reason
from reservoir_cli.context.render.formats import ContextWindow
from reservoir_cli.context.render.json import explain_candidates
from reservoir_cli.messages import plain_text

COLUMNS = ("id", "day", "role", "tier", "sim", "rec", "prio", "tokens", "", "why", "text")
#: Columns that a narrow terminal leaves out, the first of them first.
_SPARE = ("text", "day", "tier", "rec", "sim")
_LEGEND = (
    "sim: how well it fits the question · rec: how new it is · "
    "prio: 0.7 sim + 0.3 rec, unless set otherwise"
)


def print_explanation(window: ContextWindow) -> None:
    """Print the table to stderr."""
    selection = window.selection
    left_out = [dropped.candidate for dropped in (*selection.dropped, *selection.passed_over)]
    candidates = {candidate.message.id: candidate for candidate in (*window.kept, *left_out)}
    rows = [_cells(row, candidates[row["id"]]) for row in explain_candidates(window)]
    console.side_table(COLUMNS, rows, numeric=COLUMNS[4:8], spare=_SPARE)
    console.legend(_LEGEND)
    if count := window.not_reached:
        verb = "was" if count == 1 else "were"
        console.aside(
            f"{options.counted(count, 'message')} that could only have filled the budget "
            f"{verb} not reached"
        )


def _first_words(candidate: Candidate) -> str:
    return " ".join(plain_text(candidate.message)[:200].split())


def _cells(row: dict[str, Any], candidate: Candidate) -> Sequence[str]:
    return (
        str(row["id"]),
        row["created_at"][:10],
        row["role"],
        row["tier"],
        f"{row['similarity']:.2f}",
        f"{row['recency']:.2f}",
        f"{row['priority']:.3f}",
        f"{row['tokens']:,}",
        "✓" if row["outcome"] == "kept" else "·",
        describe_reason(row["reason"], candidate.message),
        _first_words(candidate),
    )
