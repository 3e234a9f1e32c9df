"""Read the usage view: charts by day and by week, and the contents of the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from reservoir_cli.context.weekly_statistics import count_tools, largest_tools, last_weeks
from reservoir_cli.reservoir import ChannelSummary, Reservoir
from reservoir_cli.server.web.stacked_bar import Part, stack

#: Days and weeks in the charts, and the tools that have a part of their own.
DAYS, WEEKS, TOOLS = 60, 26, 5


@dataclass(frozen=True, slots=True)
class Bar:
    """A day in the chart: its parts, from the ground up, as fractions of the busiest day's.

    :param cached: the fraction of its proxied request tokens that came from providers' caches.
    """

    day: str
    runs: int
    truncated: int
    recalls: int
    tokens: int
    utilisation: float | None
    parts: Sequence[Part]
    cached: float | None


@dataclass(frozen=True, slots=True)
class Week:
    """A bar of a chart by week, and in words what it shows."""

    week: str
    figures: str
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart by week: what the full height means, and its parts from the ground up."""

    title: str
    scale: str
    legend: Sequence[tuple[str, str]]
    weeks: Sequence[Week]


@dataclass(frozen=True, slots=True)
class Use:
    """The data of the view; ``busiest`` are the contexts and recalls of the busiest day."""

    stats: Mapping[str, Any]
    charts: Sequence[Chart]
    bars: Sequence[Bar]
    busiest: int
    channels: Sequence[ChannelSummary]
    engine: str


def summarize(reservoir: Reservoir) -> Use:
    """Return the store's usage over time and its contents."""
    stats = reservoir.stats()
    drawn = bars(stats["by_day"])
    busiest = max((bar.runs + bar.recalls for bar in drawn), default=0)
    charts = draw_weeks(reservoir.runs.by_week(None, None))
    return Use(stats, charts, drawn, busiest, reservoir.partitions(), reservoir.location)


def draw_weeks(rows: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """Return the charts by week of ``stats --plot``; none without data."""
    weeks = last_weeks(rows, WEEKS)
    tools = largest_tools(weeks, TOOLS)
    charts = []
    if tools:
        counts = [count_tools(week["stored"], tools) for week in weeks]
        charts.append(
            _chart("Stored messages", "messages", [name for name, _ in tools], weeks, counts)
        )
    if any(week["contexts"] or week["recalls"] for week in weeks):
        tokens = [(week["context_tokens"], week["recall_tokens"]) for week in weeks]
        charts.append(_chart("Tokens", "tokens", ["contexts", "recalls"], weeks, tokens))
        charts.append(_draw_shares("Budget used, median", "utilisation", weeks))
    if any(week["used_share"] is not None for week in weeks):
        charts.append(_draw_shares("Recalled words that answers used", "used_share", weeks))
    return charts


def _draw_shares(title: str, name: str, weeks: Sequence[Mapping[str, Any]]) -> Chart:
    shares = [round(100 * (week[name] or 0.0)) for week in weeks]
    most = max(100, *shares)
    bars = [
        Week(week["week"], f"{share}%", stack([("0", share)], most, decimals=0))
        for week, share in zip(weeks, shares, strict=True)
    ]
    return Chart(title, f"{most}%", (), bars)


def _chart(
    title: str,
    unit: str,
    names: Sequence[str],
    weeks: Sequence[Mapping[str, Any]],
    values: Sequence[Sequence[int]],
) -> Chart:
    most = max(map(sum, values))
    bars = [
        Week(
            week["week"],
            ", ".join(f"{name} {value:,}" for name, value in zip(names, row, strict=True) if value)
            or f"no {unit}",
            stack([(str(part), value) for part, value in enumerate(row)], most, decimals=0),
        )
        for week, row in zip(weeks, values, strict=True)
    ]
    totals = [f"{sum(column):,}" for column in zip(*values, strict=True)]
    return Chart(title, f"{most:,} a week", list(zip(names, totals, strict=True)), bars)


def bars(rows: Sequence[Mapping[str, Any]]) -> list[Bar]:
    """Return the last days up to the newest one with data, days without data included."""
    if not rows:
        return []
    by_day = {row["day"]: row for row in rows}
    newest = date.fromisoformat(max(by_day))
    days = [(newest - timedelta(days=back)).isoformat() for back in reversed(range(DAYS))]
    most = max(_count_asked(by_day.get(day, {})) for day in days) or 1
    return [_bar(day, by_day.get(day, {}), most) for day in days]


def _count_asked(row: Mapping[str, Any]) -> int:
    return int(row.get("runs", 0) + row.get("recalls", 0))


def _bar(day: str, row: Mapping[str, Any], most: int) -> Bar:
    runs, truncated, recalls = (row.get(key, 0) for key in ("runs", "truncated_runs", "recalls"))
    parts = [("runs", runs - truncated), ("short", truncated), ("recalls", recalls)]
    return Bar(
        day,
        runs,
        truncated,
        recalls,
        row.get("input_tokens", 0),
        row.get("utilisation"),
        stack(parts, most, decimals=0),
        row.get("cached_share"),
    )
