"""The table of ``context --explain``: each candidate, its scores, and why it is in or out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reservoir_cli.rendering import ContextWindow

COLUMNS = ("id", "day", "role", "tier", "simil.", "recency", "priority", "tokens", "", "why")
_WHY = {
    "newest": "among the newest",
    "priority": "by priority",
    "tier": "by tier",
    "no room": "no room left",
    "too large": "larger than the budget",
    "duplicate": "said already",
    "orphan result": "its call is missing",
    "unanswered call": "no result for its call",
    "below min_similarity": "not similar enough",
}


def print_explanation(window: "ContextWindow") -> None:
    """Print the table to stderr."""
    from reservoir_cli.cli import output
    from reservoir_cli.rendering.document import explained

    output.side_table(COLUMNS, [_cells(row) for row in explained(window)], numeric=COLUMNS[4:8])
    if left := window.selection.not_reached:
        output.aside(f"{left:,} more messages were not reached: the budget was spent")


def _cells(row: dict[str, Any]) -> Sequence[str]:
    return (
        str(row["id"]),
        row["created_at"][:10],
        row["role"],
        row["tier"],
        f"{row['similarity']:.2f}",
        f"{row['recency']:.2f}",
        f"{row['priority']:.3f}",
        f"{row['tokens']:,}",
        "kept" if row["outcome"] == "kept" else "out",
        _WHY.get(row["reason"], row["reason"]),
    )
