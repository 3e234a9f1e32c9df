"""The table of ``context --explain``: each candidate, its scores, and why it is in or out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reservoir_cli.messages import plain_text

if TYPE_CHECKING:
    from reservoir_cli.rendering import ContextWindow
    from reservoir_cli.window import Candidate

COLUMNS = ("id", "day", "role", "tier", "sim", "rec", "prio", "tokens", "", "why", "text")
_WHY = {
    "newest": "newest",
    "priority": "by priority",
    "tier": "by tier",
    "no room": "no room left",
    "too large": "larger than budget",
    "duplicate": "said already",
    "orphan result": "its call is missing",
    "unanswered call": "no result for its call",
    "below min_similarity": "not similar enough",
}


def print_explanation(window: "ContextWindow") -> None:
    """Print the table to stderr."""
    from reservoir_cli.cli import output
    from reservoir_cli.rendering.document import explained

    selection = window.selection
    left_out = [each.candidate for each in (*selection.dropped, *selection.passed_over)]
    texts = {each.message.id: _first_words(each) for each in (*window.kept, *left_out)}
    rows = [_cells(row, texts[row["id"]]) for row in explained(window)]
    output.side_table(COLUMNS, rows, numeric=COLUMNS[4:8])
    if left := window.not_reached:
        output.aside(f"{left:,} messages that could only have filled the budget were not reached")


def _first_words(candidate: "Candidate") -> str:
    return " ".join(plain_text(candidate.message)[:200].split())


def _cells(row: dict[str, Any], text: str) -> Sequence[str]:
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
        _WHY.get(row["reason"], row["reason"]),
        text,
    )
