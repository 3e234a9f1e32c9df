"""What building contexts costs over time: a record of each run, and their summary.

Records hold numbers and names; no text of a question or a message is in them or in the log.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from reservoir_cli.context.render import ContextWindow
from reservoir_cli.context.types import ContextRequest
from reservoir_cli.messages import from_epoch_ms, to_epoch_ms
from reservoir_cli.settings import log
from reservoir_cli.storage.base import Store

#: Seconds a run record waits for other writers before it is given up.
_PATIENCE = 0.1
#: What the record of a recall has in place of a format.
RECALL = "recall"


def record(store: Store, window: ContextWindow) -> None:
    """Add a run to the store.

    :raises StoreLockedError: others write just now; the record is not worth waiting for.
    """
    _add(store, _run_of(window))


def record_recall(store: Store, request: ContextRequest, window: ContextWindow | None) -> None:
    """Add the decision of a recall to the store.

    :param window: ``None`` if the question was none.
    :raises StoreLockedError: others write just now; the record is not worth waiting for.
    """
    run = _run_of(window) if window else _no_run(request)
    tokens = {} if window and window.kept else {"input_tokens": 0, "utilisation": 0.0}
    _add(store, {**run, **tokens, "format": RECALL})


def _add(store: Store, run: Mapping[str, Any]) -> None:
    with store.write(wait=_PATIENCE, durable=False):
        store.add_run(run)


def _no_run(request: ContextRequest) -> dict[str, Any]:
    """Return the record of a question that was not looked for."""
    numbers = ("context_window", "reserve", "reserve_used", "kept", "dropped", "truncations", "ms")
    return {
        **dict.fromkeys(numbers, 0),
        "at": to_epoch_ms(request.now),
        "partition": request.partition,
        "instance": "",
        "model": request.model,
        "counter": "",
        "available": request.budget or 0,
        "sections": "{}",
    }


def _run_of(window: ContextWindow) -> dict[str, Any]:
    """Return the record of a window."""
    budget, request = window.budget, window.request
    return {
        "at": to_epoch_ms(request.now),
        "partition": request.partition,
        "instance": window.scope["instance"] or "",
        "model": request.model,
        "format": request.format,
        "counter": window.meter.name,
        "context_window": budget.window,
        "reserve": budget.reserve,
        "reserve_used": max(0, window.used - (budget.window - budget.reserve)),
        "available": budget.available,
        "input_tokens": window.used,
        "sections": json.dumps({key.value: value for key, value in budget.sections.items()}),
        "kept": len(window.kept),
        "dropped": len(window.selection.dropped),
        "truncations": window.truncations,
        "utilisation": window.used / budget.available,
        "ms": sum(window.timings_ms.values()),
    }


def log_truncation(window: ContextWindow) -> None:
    """Write a line to the log if something was left out for lack of room.

    :raises OSError: the log cannot be written.
    """
    if not window.truncated:
        return
    log.append(
        window.request.now,
        f"context truncated: {window.truncations} left out or cut, {window.used} of "
        f"{window.budget.available} tokens, "
        f"{f'{window.budget.overflow} too many, ' if window.budget.overfull else ''}"
        # As JSON: a name may hold what would begin another line.
        f"{json.dumps(window.scope['partition'])}/{json.dumps(window.scope['instance'])}",
    )


def summarize(runs: Sequence[Mapping[str, Any]], holdings: Mapping[str, int]) -> dict[str, Any]:
    """Return counts, medians and 95th percentiles of runs, by model and by day; recalls apart."""
    recalls = [run for run in runs if run["format"] == RECALL]
    runs = [run for run in runs if run["format"] != RECALL]
    shares = [run["input_tokens"] / max(1, run["context_window"]) for run in runs]
    return {
        "runs": len(runs),
        "truncated_runs": sum(run["truncations"] > 0 for run in runs),
        "truncation_events": sum(run["truncations"] for run in runs),
        **{
            name: {"median": _middle(values), "p95": _high(values)}
            for name, values in {
                key: [float(run[key]) for run in runs]
                for key in ("input_tokens", "reserve_used", "utilisation", "ms")
            }.items()
        },
        "window_utilisation": {
            "median": _middle(shares),
            "p95": _high(shares),
        },
        "models": dict(Counter(run["model"] or "" for run in runs).most_common()),
        "days": _by_day([from_epoch_ms(run["at"]) for run in runs]),
        "by_day": _rows_by_day(runs, recalls),
        "recalls": {
            "runs": len(recalls),
            "skipped": sum(not run["kept"] for run in recalls),
            **{
                name: {"median": _middle(values), "p95": _high(values)}
                for name, values in {
                    "input_tokens": [float(run["input_tokens"]) for run in recalls if run["kept"]],
                    "ms": [float(run["ms"]) for run in recalls if run["ms"]],
                }.items()
            },
        },
        "store": dict(holdings),
    }


def _by_day(moments: Sequence[datetime]) -> dict[str, int]:
    counts = Counter(moment.date().isoformat() for moment in moments)
    return dict(sorted(counts.items()))


def _rows_by_day(
    runs: Sequence[Mapping[str, Any]], recalls: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return a row for each day on which something was asked, in order."""
    by_day: dict[str, tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]] = {}
    for kind, records in enumerate((runs, recalls)):
        for run in records:
            day = from_epoch_ms(run["at"]).date().isoformat()
            by_day.setdefault(day, ([], []))[kind].append(run)
    return [
        {
            "day": day,
            "runs": len(built),
            "truncated_runs": sum(run["truncations"] > 0 for run in built),
            "input_tokens": sum(run["input_tokens"] for run in built),
            "utilisation": _middle([float(run["utilisation"]) for run in built]),
            "recalls": len(recalled),
        }
        for day, (built, recalled) in sorted(by_day.items())
    ]


def _middle(values: Sequence[float]) -> float | None:
    from statistics import median  # only `stats` needs it

    return round(median(values), 3) if values else None


def _high(values: Sequence[float]) -> float | None:
    """Return the 95th percentile: a value that occurred, not one in between."""
    rank = -(-95 * len(values) // 100)
    return round(sorted(values)[rank - 1], 3) if values else None
