"""``reservoir stats``: show token usage of contexts over time, and what the store holds."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

import typer

from reservoir_cli.cli import (
    console,
    filters,
    nothing_found,
    open_store,
    options,
    plots,
    terminal_tables,
)
from reservoir_cli.cli.options import flag
from reservoir_cli.messages import Scope
from reservoir_cli.util.parse_time_options import parse_time

_BARS = "▁▂▃▄▅▆▇█"
_DAYS = 30


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
        console.texts(plots.plot_weeks(summary["by_week"], console.columns()))
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
        rows.append((f"last {_DAYS} days", sparkline(summary["days"])))
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
        (f"stored {terminal_tables.HELD.get(name, name)}", f"{count:,}")
        for name, count in held.items()
    ]
    if without := held["messages"] - held["embedded"] - held["pending"]:
        rows.append(("stored without text", f"{without:,}"))
    return rows


def _use_rows(use: Mapping[str, Any]) -> list[tuple[str, str]]:
    if use["used_share"] is None:
        return []
    total = f"{use['rare_words']:,} in {use['recalls']:,} recalls"
    rows = [("rare words of recalls that answers used", f"{_share(use)} of {total}")]
    rows += [
        (f"in {row['week']}, {row['partition']}", f"{_share(row)}, {row['input_tokens']:,} tokens")
        for row in use["by_week"]
        if row["used_share"] is not None
    ]
    return rows


def _share(use: Mapping[str, Any]) -> str:
    return _number(use["used_share"], percent=True)


def sparkline(days: Mapping[str, int]) -> str:
    """Return a bar for each of the 30 days up to the newest."""
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
