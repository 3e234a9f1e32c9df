"""Count by week what was stored and from which tool, and the tokens of contexts and recalls."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from reservoir_cli.context.use_of_recalls import summarize_use
from reservoir_cli.messages import from_epoch_ms
from reservoir_cli.redaction import without_secrets

Run = Mapping[str, Any]


def summarize_weeks(
    stored: Iterable[tuple[date, str, int]],
    contexts: Iterable[Run],
    recalls: Iterable[Run],
    uses: Iterable[Run] = (),
) -> list[dict[str, Any]]:
    """Return a row for each week, from Monday in UTC, with messages, contexts or recalls, in order.

    :param stored: the Monday of a week, a tool and the number of its messages of that week.
    """
    messages: dict[str, Counter[str]] = {}
    for week, tool, count in stored:
        messages.setdefault(week.isoformat(), Counter())[without_secrets(tool)[0]] += count
    built, recalled, used = _by_week(contexts), _by_week(recalls), _by_week(uses)
    return [
        {
            "week": week,
            "stored": dict(messages.get(week, Counter()).most_common()),
            "contexts": len(built.get(week, ())),
            "recalls": len(recalled.get(week, ())),
            "context_tokens": _sum_tokens(built.get(week, ())),
            "recall_tokens": _sum_tokens(recalled.get(week, ())),
            "utilisation": median_of([run["utilisation"] for run in built.get(week, ())]),
            "used_share": summarize_use(used.get(week, ()))["used_share"],
        }
        for week in sorted({*messages, *built, *recalled})
    ]


def _by_week(runs: Iterable[Run]) -> dict[str, list[Run]]:
    by_week: dict[str, list[Run]] = {}
    for run in runs:
        day = from_epoch_ms(run["at"]).date()
        monday = day - timedelta(days=day.weekday())
        by_week.setdefault(monday.isoformat(), []).append(run)
    return by_week


def last_weeks(rows: Sequence[Mapping[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return the weeks up to the newest row, those without data included."""
    if not rows:
        return []
    empty = {"stored": {}, "contexts": 0, "recalls": 0, "context_tokens": 0, "recall_tokens": 0}
    by_week = {row["week"]: row for row in rows}
    newest = date.fromisoformat(max(by_week))
    weeks = [(newest - timedelta(weeks=back)).isoformat() for back in reversed(range(count))]
    first = min(by_week)
    return [
        {"week": week, "utilisation": None, "used_share": None, **empty, **by_week.get(week, {})}
        for week in weeks
        if week >= first
    ]


def largest_tools(rows: Iterable[Mapping[str, Any]], most: int) -> list[tuple[str, int]]:
    """Return the tools with the most messages and their numbers; the last may be all others."""
    totals = Counter[str]()
    for row in rows:
        totals.update(row["stored"])
    ranked = totals.most_common()
    if len(ranked) <= most:
        return ranked
    others = ranked[most - 1 :]
    return [*ranked[: most - 1], (f"{len(others)} others", sum(count for _, count in others))]


def count_tools(stored: Mapping[str, int], tools: Sequence[tuple[str, int]]) -> list[int]:
    """Return a week's messages of each tool; those of all others count for the last one."""
    named = [stored.get(name, 0) for name, _ in tools[:-1]]
    return [*named, sum(stored.values()) - sum(named)]


def _sum_tokens(runs: Iterable[Run]) -> int:
    return sum(run["input_tokens"] for run in runs)


def median_of(values: Sequence[float]) -> float | None:
    """Return the median in thousandths, if there are values."""
    from statistics import median  # only `stats` needs it

    return round(median(values), 3) if values else None
