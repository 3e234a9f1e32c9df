"""Summarise run records: counts, medians and 95th percentiles, by model and by day. Pure."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from reservoir_cli.messages import from_epoch_ms

#: The format in a recall's record.
RECALL = "recall"
#: The format in the record of an answer that went through the proxy.
ANSWER = "answer"
#: The section of such a record that counts tokens from the provider's cache.
CACHED = "cached"


def summarize(runs: Sequence[Mapping[str, Any]], holdings: Mapping[str, int]) -> dict[str, Any]:
    """Return counts, medians and 95th percentiles of runs, by model and by day.

    Recalls and answers that went through the proxy are counted separately.
    """
    recalls = [run for run in runs if run["format"] == RECALL]
    answers = [run for run in runs if run["format"] == ANSWER]
    runs = [run for run in runs if run["format"] not in (RECALL, ANSWER)]
    shares = [run["input_tokens"] / max(1, run["context_window"]) for run in runs]
    return {
        "runs": len(runs),
        "truncated_runs": sum(run["truncations"] > 0 for run in runs),
        "truncation_events": sum(run["truncations"] for run in runs),
        **{
            name: {"median": _median(values), "p95": _percentile_95(values)}
            for name, values in {
                key: [float(run[key]) for run in runs]
                for key in ("input_tokens", "reserve_used", "utilisation", "ms")
            }.items()
        },
        "window_utilisation": {
            "median": _median(shares),
            "p95": _percentile_95(shares),
        },
        "models": dict(Counter(run["model"] or "" for run in runs).most_common()),
        "days": _by_day([from_epoch_ms(run["at"]) for run in runs]),
        "by_day": _rows_by_day(runs, recalls, answers),
        "recalls": {
            "runs": len(recalls),
            "skipped": sum(not run["kept"] for run in recalls),
            **{
                name: {"median": _median(values), "p95": _percentile_95(values)}
                for name, values in {
                    "input_tokens": [float(run["input_tokens"]) for run in recalls if run["kept"]],
                    "ms": [float(run["ms"]) for run in recalls if run["ms"]],
                }.items()
            },
        },
        "answers": {"count": len(answers), **_cache_use(answers)},
        "store": dict(holdings),
    }


def _cache_use(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the tokens that providers read for some answers, and how many came from caches."""
    tokens = sum(run["input_tokens"] for run in answers)
    cached = sum(json.loads(run["sections"]).get(CACHED, 0) for run in answers)
    share = round(cached / tokens, 3) if tokens else None
    return {"request_tokens": tokens, "cached_tokens": cached, "cached_share": share}


def _by_day(moments: Sequence[datetime]) -> dict[str, int]:
    counts = Counter(moment.date().isoformat() for moment in moments)
    return dict(sorted(counts.items()))


def _rows_by_day(
    *kinds: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return a row for each day with at least one record, in order.

    :param kinds: contexts, recalls, and answers.
    """
    by_day: dict[str, tuple[list[Mapping[str, Any]], ...]] = {}
    for kind, records in enumerate(kinds):
        for run in records:
            day = from_epoch_ms(run["at"]).date().isoformat()
            by_day.setdefault(day, ([], [], []))[kind].append(run)
    return [
        {
            "day": day,
            "runs": len(contexts),
            "truncated_runs": sum(run["truncations"] > 0 for run in contexts),
            "input_tokens": sum(run["input_tokens"] for run in contexts),
            "utilisation": _median([float(run["utilisation"]) for run in contexts]),
            "recalls": len(recalls),
            "answers": len(answers),
            **_cache_use(answers),
        }
        for day, (contexts, recalls, answers) in sorted(by_day.items())
    ]


def _median(values: Sequence[float]) -> float | None:
    from statistics import median  # only `stats` needs it

    return round(median(values), 3) if values else None


def _percentile_95(values: Sequence[float]) -> float | None:
    """Return the 95th percentile: a value that occurred, not one in between."""
    rank = -(-95 * len(values) // 100)
    return round(sorted(values)[rank - 1], 3) if values else None
