"""``reservoir stats``: show token usage of contexts over time, and what the store holds."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reservoir_cli.cli import (
    console,
    filters,
    nothing_found,
    open_store,
    options,
)
from reservoir_cli.cli.options import flag
from reservoir_cli.context.weekly_statistics import count_tools, largest_tools, last_weeks
from reservoir_cli.messages import Scope
from reservoir_cli.util.parse_time_options import parse_time
from reservoir_cli.util.progress import counted
from reservoir_cli.util.unicode_text import escaped

if TYPE_CHECKING:
    from rich.text import Text

_BARS = "▁▂▃▄▅▆▇█"
_DAYS = 30
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


def stats(
    ctx: typer.Context,
    partition: options.OnlyPartition = None,
    since: filters.Since = None,
    plot: Annotated[bool, flag("--plot", "Plot what was stored, and tokens, by week.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show the tokens that contexts used, and what the store holds.

    A context is counted as short of room if it had no room for a recent, similar or pinned message,
    or had to cut one; other messages do not count. Usage exceeds 100% of the budget
    if the question and sections alone exceed it. Every message is embedded, waits for
    `reservoir embed`, or has no text.
    """
    moment = parse_time(since, datetime.now(UTC)) if since is not None else None
    with open_store.open_reservoir(ctx) as reservoir:
        summary = reservoir.stats(moment, partition)
        if plot:
            summary["by_week"] = reservoir.runs.by_week(moment, partition)
        scope = Scope(partition)
        if partition and not summary["store"]["messages"]:
            nothing_found.tell(scope, reservoir.lookup.elsewhere(scope))
    if as_json:
        console.document(summary)
        return
    if plot and not summary["by_week"]:
        console.note("nothing is stored yet, and no context was built")
        return
    if plot:
        console.texts(plot_weeks(summary["by_week"], console.columns()))
        return
    console.table(("", ""), _rows(summary))


def _rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("contexts built", f"{summary['runs']:,}"),
        ("contexts short of room", f"{summary['truncated_runs']:,}"),
        ("messages left out or cut", f"{summary['truncation_events']:,}"),
    ]
    for key, name in (
        ("input_tokens", "tokens"),
        ("reserve_used", "reserve used"),
        ("utilisation", "share of the budget used"),
        ("window_utilisation", "share of the context window used"),
        ("ms", "milliseconds"),
    ):
        if summary[key]["median"] is not None:
            percent = key.endswith("utilisation")
            middle, high = (_number(summary[key][part], percent) for part in ("median", "p95"))
            rows.append((name, f"median {middle}, 95th percentile {high}"))
    rows += [
        (f"model {name}" if name else "without a model", bar)
        for name, bar in _bars(summary["models"])
    ]
    if summary["days"]:
        rows.append((f"last {_DAYS} days", _sparkline(summary["days"])))
    recalls = summary["recalls"]
    if recalls["runs"]:
        rows.append(("recalls", f"{recalls['runs']:,}, {recalls['skipped']:,} of them empty"))
    rows += _use_rows(summary["use"])
    answers = summary["answers"]
    if answers["cached_share"] is not None:
        share = _number(answers["cached_share"], percent=True)
        of = f"{answers['request_tokens']:,} tokens in {answers['count']:,}"
        rows.append(("requests from providers' caches", f"{share} of {of}"))
    held = summary["store"]
    rows += [
        (f"stored {console.HELD.get(name, name)}", f"{count:,}") for name, count in held.items()
    ]
    if without := held["messages"] - held["embedded"] - held["pending"]:
        rows.append(("stored without text", f"{without:,}"))
    return rows


def _use_rows(use: Mapping[str, Any]) -> list[tuple[str, str]]:
    if use["used_share"] is None:
        return []
    total = f"{use['rare_words']:,} in {counted(use['recalls'], 'recall')}"
    rows = [("rare words of recalls that answers used", f"{_share(use)} of {total}")]
    rows += [
        (f"in {row['week']}, {row['partition']}", f"{_share(row)}, {row['input_tokens']:,} tokens")
        for row in use["by_week"]
        if row["used_share"] is not None
    ]
    return rows


def _share(use: Mapping[str, Any]) -> str:
    return _number(use["used_share"], percent=True)


def _sparkline(days: Mapping[str, int]) -> str:
    newest = date.fromisoformat(max(days))
    counts = [days.get((newest - timedelta(days=back)).isoformat(), 0) for back in range(_DAYS)][
        ::-1
    ]
    most = max(counts)
    return "".join(_BARS[-(-count * (len(_BARS) - 1) // most)] for count in counts)


def _bars(models: Mapping[str, int]) -> list[tuple[str, str]]:
    most = max(models.values(), default=1)
    return [
        (name, f"{'█' * max(1, round(20 * count / most))} {count:,}")
        for name, count in models.items()
    ]


def _number(value: Any, percent: bool) -> str:
    return f"{100 * value:.0f}%" if percent else f"{value:,.0f}"


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
