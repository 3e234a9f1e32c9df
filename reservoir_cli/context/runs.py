"""What building contexts costs over time: a record of each run, and their summary.

Records hold numbers and names; no text of a question or a message is in them or in the log.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from reservoir_cli.context.render import ContextWindow
from reservoir_cli.messages import from_epoch_ms, to_epoch_ms
from reservoir_cli.settings import paths
from reservoir_cli.storage.base import Store
from reservoir_cli.util.private import make_private_dir, restrict_permissions

#: Seconds a run record waits for other writers before it is given up.
_PATIENCE = 0.1
_LOG_BYTES = 1_000_000


def record(store: Store, window: ContextWindow) -> None:
    """Add a run to the store.

    :raises StoreLockedError: others write just now; the record is not worth waiting for.
    """
    budget, request = window.budget, window.request
    run = {
        "at": to_epoch_ms(request.now),
        "partition": request.partition,
        "instance": window.scope["instance"],
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
    with store.write(wait=_PATIENCE, durable=False):
        store.add_run(run)


def log_truncation(window: ContextWindow) -> None:
    """Write a line to the log if something was left out for lack of room.

    :raises OSError: the log cannot be written.
    """
    if not window.truncated:
        return
    files = paths.log_files()
    line = (
        f"{window.request.now.isoformat(timespec='seconds')} WARNING context truncated: "
        f"{window.truncations} left out or cut, {window.used} of {window.budget.available} tokens, "
        f"{f'{window.budget.overflow} too many, ' if window.budget.overfull else ''}"
        # As JSON: a name may hold what would begin another line.
        f"{json.dumps(window.scope['partition'])}/{json.dumps(window.scope['instance'])}"
    )
    make_private_dir(files[0].parent)
    # By hand: the standard library's rotating log takes 15 ms to load, the files are the same.
    if files[0].exists() and files[0].stat().st_size + len(line) > _LOG_BYTES:
        for newer, older in zip(files[-2::-1], files[:0:-1], strict=True):
            if newer.exists():
                newer.replace(older)
    restrict_permissions(files)
    # A pipe in its place would wait for a reader.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
    handle = os.open(files[0], flags, 0o600)
    with open(handle, "a", encoding="utf-8", newline="\n") as log:
        log.write(f"{line}\n")


def summarize(runs: Sequence[Mapping[str, Any]], holdings: Mapping[str, int]) -> dict[str, Any]:
    """Return counts, medians and 95th percentiles of runs, by model and by day."""
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
        "store": dict(holdings),
    }


def _by_day(moments: Sequence[datetime]) -> dict[str, int]:
    counts = Counter(moment.date().isoformat() for moment in moments)
    return dict(sorted(counts.items()))


def _middle(values: Sequence[float]) -> float | None:
    from statistics import median  # only `stats` needs it

    return round(median(values), 3) if values else None


def _high(values: Sequence[float]) -> float | None:
    """Return the 95th percentile: a value that occurred, not one in between."""
    rank = -(-95 * len(values) // 100)
    return round(sorted(values)[rank - 1], 3) if values else None
