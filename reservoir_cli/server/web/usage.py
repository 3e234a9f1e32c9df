"""The view of use: what contexts took over time, and what the store holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from reservoir_cli.reservoir import PlaceSummary, Reservoir

#: Days that are drawn.
DAYS = 60


@dataclass(frozen=True, slots=True)
class Bar:
    """A day of the drawing.

    :param height: of its runs, beside the day with the most.
    :param short: the share of its runs that were short of room.
    :param cached: the share of the tokens of its requests that providers had in their caches.
    """

    day: str
    runs: int
    truncated: int
    recalls: int
    tokens: int
    utilisation: float | None
    height: float
    short: float
    cached: float | None


@dataclass(frozen=True, slots=True)
class Use:
    """What the view shows."""

    stats: Mapping[str, Any]
    bars: Sequence[Bar]
    places: Sequence[PlaceSummary]
    engine: str


def summarize(reservoir: Reservoir) -> Use:
    """Return what contexts took, and what the store holds."""
    stats = reservoir.stats()
    return Use(stats, bars(stats["by_day"]), reservoir.partitions(), reservoir.location)


def bars(rows: Sequence[Mapping[str, Any]]) -> list[Bar]:
    """Return the last days up to the newest, those on which nothing was asked included."""
    if not rows:
        return []
    by_day = {row["day"]: row for row in rows}
    newest = date.fromisoformat(max(by_day))
    days = [(newest - timedelta(days=back)).isoformat() for back in reversed(range(DAYS))]
    most = max(_asked(by_day.get(day, {})) for day in days) or 1
    return [_bar(day, by_day.get(day, {}), most) for day in days]


def _asked(row: Mapping[str, Any]) -> int:
    return int(row.get("runs", 0) + row.get("recalls", 0))


def _bar(day: str, row: Mapping[str, Any], most: int) -> Bar:
    asked, truncated = _asked(row), row.get("truncated_runs", 0)
    return Bar(
        day,
        row.get("runs", 0),
        truncated,
        row.get("recalls", 0),
        row.get("input_tokens", 0),
        row.get("utilisation"),
        asked / most,
        truncated / asked if asked else 0.0,
        row.get("cached_share"),
    )
