"""Read the usage view: contexts and recalls by day as a chart, and the contents of the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from reservoir_cli.reservoir import PlaceSummary, Reservoir
from reservoir_cli.server import limits
from reservoir_cli.server.web.stacked_bar import Part, stack


@dataclass(frozen=True, slots=True)
class Bar:
    """A day in the chart.

    :param parts: its other contexts, those that were truncated, and its recalls, from the ground
        up, as fractions of the busiest day's.
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
class Use:
    """The data of the view.

    :param busiest: contexts and recalls of the busiest day in the chart.
    """

    stats: Mapping[str, Any]
    bars: Sequence[Bar]
    busiest: int
    places: Sequence[PlaceSummary]
    engine: str


def summarize(reservoir: Reservoir) -> Use:
    """Return the store's usage over time and its contents."""
    stats = reservoir.stats()
    drawn = bars(stats["by_day"])
    busiest = max((bar.runs + bar.recalls for bar in drawn), default=0)
    return Use(stats, drawn, busiest, reservoir.partitions(), reservoir.location)


def bars(rows: Sequence[Mapping[str, Any]]) -> list[Bar]:
    """Return the last days up to the newest one with data, days without data included."""
    if not rows:
        return []
    by_day = {row["day"]: row for row in rows}
    newest = date.fromisoformat(max(by_day))
    days = [(newest - timedelta(days=back)).isoformat() for back in reversed(range(limits.DAYS))]
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
