"""Plot weekly statistics as bars of characters, so that they need no colour and fit pipes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reservoir_cli.context.weekly_statistics import count_tools, largest_tools, last_weeks
from reservoir_cli.util.progress import counted
from reservoir_cli.util.unicode_text import escaped

if TYPE_CHECKING:
    from rich.text import Text

WEEKS = 16  # the weeks that are plotted: with the headings, they fit a screen of 24 lines
#: Fills and colours of the tools with the most messages; the last one is for all others.
_FILLS = (("█", "cyan"), ("▓", "green"), ("▒", "magenta"), ("░", "yellow"))
#: Those of contexts and recalls.
_CONTEXTS, _RECALLS = _FILLS[0], _FILLS[2]
#: The room of a week, of the three numbers and of the spaces between all columns.
_WEEK, _NUMBERS, _SPACES = 10, (7, 8, 4), 7
_USED = "  recall used"  # the heading of the share of recalled rare words that answers used
_SHARES = (0.45, 0.35, 0.2)  # the share of the room for bars that each of the three has

Parts = Sequence[tuple[int, tuple[str, str]]]


def plot_weeks(rows: Sequence[Mapping[str, Any]], width: int) -> "list[Text]":
    """Return lines with the messages, the tokens and the use of the budget of each week."""
    from rich.text import Text

    weeks = last_weeks(rows, WEEKS)
    tools = largest_tools(weeks, len(_FILLS))
    has_use = any(week["used_share"] is not None for week in weeks)
    room = max(20, min(width, 100) - _WEEK - sum(_NUMBERS) - _SPACES - len(_USED) * has_use)
    widths = [int(room * share) for share in _SHARES]
    end = _WEEK + 2 + sum(widths) + sum(_NUMBERS) + 7
    most_messages = max((sum(week["stored"].values()) for week in weeks), default=0)
    most_tokens = max((week["context_tokens"] + week["recall_tokens"] for week in weeks), default=0)
    stored_width, tokens_width, used_width = (
        bar + 1 + number for bar, number in zip(widths, _NUMBERS, strict=True)
    )
    heading = (
        f"{'week of':{_WEEK}}  {'messages stored':{stored_width}}  "
        f"{'tokens in contexts':{tokens_width}}  {'budget used':{used_width}}"
    )
    lines = [Text(f"{heading}{_USED}" if has_use else heading.rstrip(), "bold")]
    for week in weeks:
        stored = list(zip(count_tools(week["stored"], tools), _FILLS, strict=False))
        tokens = [(week["context_tokens"], _CONTEXTS), (week["recall_tokens"], _RECALLS)]
        used = week["utilisation"]
        line = Text(f"{week['week']}  ")
        _add_bar(line, stored, most_messages, widths[0], _NUMBERS[0])
        _add_bar(line, tokens, most_tokens, widths[1], _NUMBERS[1])
        if used is not None:
            filled = min(widths[2], round(used * widths[2]))
            line.append(_CONTEXTS[0] * filled + "·" * (widths[2] - filled), _CONTEXTS[1])
            line.append(f" {used:>{_NUMBERS[2]}.0%}")
        if week["used_share"] is not None:
            line.pad_right(max(0, end - line.cell_len))
            line.append(f"{week['used_share']:>{len(_USED)}.0%}")
        line.rstrip()
        lines.append(line)
    if earlier := sum(row["week"] < weeks[0]["week"] for row in rows):
        lines.append(Text(f"{counted(earlier, 'earlier week')} not shown (--json has all)", "dim"))
    return [*lines, *_legends(tools)]


def _add_bar(line: "Text", parts: Parts, most: int, width: int, digits: int) -> None:
    total, filled = sum(size for size, _ in parts), 0
    for size, (fill, colour) in parts:
        length = min(width - filled, max(1, round(size * width / most))) if size else 0
        line.append(fill * length, colour)
        filled += length
    number = f"{total:,}" if total < 1_000_000 else f"{total / 1_000_000:,.1f}M"
    number = number if total else ""
    line.append(" " * (width - filled) + f" {number:<{digits}}  ")


def _legends(tools: Sequence[tuple[str, int]]) -> "list[Text]":
    from rich.text import Text

    named = [
        (fill, f"{escaped(' '.join(name.split()))[:24]} {count:,}")
        for (name, count), fill in zip(tools, _FILLS, strict=False)
    ]
    tokens = [(_CONTEXTS, "contexts that were asked for"), (_RECALLS, "recalled for agents")]
    lines = []
    for title, entries in (("messages", named), ("tokens", tokens)):
        if not entries:
            continue
        line = Text(f"{title:{_WEEK}}")
        for (fill, colour), label in entries:
            line.append("  ").append(fill, colour).append(f" {label}")
        lines.append(line)
    return lines
