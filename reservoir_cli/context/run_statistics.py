"""Record numbers and names of runs, but no text of questions or messages, and summarise them."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from reservoir_cli.context.counter_factors import COUNT, make_record
from reservoir_cli.context.render.formats import ContextWindow
from reservoir_cli.context.request import FORMATS, ContextRequest
from reservoir_cli.context.use_of_recalls import (
    RECALL,
    RECALLED,
    SESSION,
    USE,
    measure_use,
    summarize_use,
)
from reservoir_cli.context.weekly_statistics import median_of, summarize_weeks
from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Scope, from_epoch_ms
from reservoir_cli.settings import log_file
from reservoir_cli.storage.store import Store
from reservoir_cli.util.timeouts import LOCKED_STORE_OF_RUN

_MOST_TOKENS = 2**31 - 1  # more than any provider reports, and the most that a record can hold
ANSWER = "answer"  # the format in the record of an answer that went through the proxy
CACHED = "cached"  # the section of such a record that counts tokens from the provider's cache


class Runs:
    """The run records of one store. Failing to record a run is reported, not raised."""

    def __init__(self, store: Store, notify: Callable[[str], None]) -> None:
        self._store, self._notify = store, notify
        self._recalls: list[dict[str, Any]] = []
        self._puts_off = False

    def put_off_recalls(self) -> None:
        """Keep records of recalls until :meth:`write_recalls`, so that recalls return sooner."""
        self._puts_off = True

    @property
    def has_put_off(self) -> bool:
        """Whether any records of recalls are pending."""
        return bool(self._recalls)

    def take_recalls(self) -> list[dict[str, Any]]:
        """Remove and return the pending records of recalls, for another thread to add."""
        records, self._recalls = self._recalls, []
        return records

    def add(
        self, records: Sequence[Mapping[str, Any]], wait: float | None = LOCKED_STORE_OF_RUN
    ) -> None:
        """Store records of recalls and of :func:`answer_record`.

        :param wait: seconds to wait for a locked store; ``None``: as long as for other writes.
        """
        with self._report_errors():
            self._add(records, wait)

    def write_recalls(self) -> None:
        """Store the pending records of recalls."""
        self.add(self.take_recalls())

    def record(self, window: ContextWindow) -> None:
        """Record a printed window; log any truncation."""
        with self._report_errors():
            _log_truncation(window)
            self._add([_window_record(window)])

    def record_recall(self, request: ContextRequest, window: ContextWindow | None) -> None:
        """Record the outcome of a recall; there is no window if the question asked nothing."""
        tokens = {} if window and window.kept else {"input_tokens": 0, "utilisation": 0.0}
        run = _window_record(window) if window else _empty_record(request)
        if window and window.kept and request.exclude_conversation:
            recalled = [candidate.message.id for candidate in window.kept]
            read = {RECALLED: recalled, SESSION: request.exclude_conversation}
            run["sections"] = json.dumps({**json.loads(run["sections"]), **read})
        self._recalls.append({**run, **tokens, "format": RECALL})
        if not self._puts_off:
            self.write_recalls()

    def summary(self, since: datetime | None, partition: str | None) -> dict[str, Any]:
        """Measure the use of recalls that have been answered since, and return all statistics."""
        with self._report_errors():
            now = datetime.now(UTC)
            self._add(list(measure_use(self._store, self._store.runs(None, partition), now)))
        return summarize_runs(self._store.runs(since, partition), self._store.holdings(partition))

    def by_week(self, since: datetime | None, partition: str | None) -> list[dict[str, Any]]:
        """Return what was stored from which tool, tokens, and how much was used, by week."""
        runs = self._store.runs(since, partition)
        contexts, recalls, uses = (
            [run for run in runs if run["format"] in formats]
            for formats in (FORMATS, (RECALL,), (USE,))
        )
        stored = self._store.stored_by_week(since, partition)
        return summarize_weeks(stored, contexts, recalls, uses)

    def _add(
        self, runs: Sequence[Mapping[str, Any]], wait: float | None = LOCKED_STORE_OF_RUN
    ) -> None:
        if runs and not (self._store.read_only or self._store.missing):
            with self._store.write(wait=wait, durable=False):
                for run in runs:
                    self._store.add_run(run)

    @contextmanager
    def _report_errors(self) -> Iterator[None]:
        try:
            yield
        except (ReservoirError, OSError) as error:
            why = error.message if isinstance(error, ReservoirError) else error.strerror
            self._notify(f"this run is not recorded: {why}")


def _empty_record(request: ContextRequest) -> dict[str, Any]:
    scope, budget = Scope(request.partition), request.budget or 0
    return make_record(scope, RECALL, request.model, request.now, available=budget)


def _window_record(window: ContextWindow) -> dict[str, Any]:
    budget, request = window.budget, window.request
    return make_record(
        Scope(request.partition, window.scope["instance"]),
        request.format,
        request.model,
        request.now,
        counter=window.meter.name,
        context_window=budget.window,
        reserve=budget.reserve,
        reserve_used=max(0, window.used - (budget.window - budget.reserve)),
        available=budget.available,
        input_tokens=window.used,
        sections=json.dumps({key.value: value for key, value in budget.sections.items()}),
        kept=len(window.kept),
        dropped=len(window.selection.dropped),
        truncations=window.shortages,
        utilisation=window.used / budget.available,
        ms=sum(window.timings_ms.values()),
    )


def _log_truncation(window: ContextWindow) -> None:
    if not window.truncated:
        return
    log_file.append(
        window.request.now,
        f"context truncated: {window.truncations} left out or cut, {window.used} of "
        f"{window.budget.available} tokens, "
        f"{f'{window.overflow} over budget, ' if window.overflow else ''}"
        # As JSON, because a name may hold line breaks.
        f"{json.dumps(window.scope['partition'])}/{json.dumps(window.scope['instance'])}",
    )


def answer_record(scope: Scope, model: str | None, tokens: int, cached: int) -> dict[str, Any]:
    """Return the record of an answer by the tokens that its provider reports, also those cached."""
    tokens = min(max(tokens, 0), _MOST_TOKENS)
    sections = json.dumps({CACHED: min(max(cached, 0), tokens)})
    values = {"input_tokens": tokens, "sections": sections}
    return make_record(scope, ANSWER, model, datetime.now(UTC), **values)


def summarize_runs(
    runs: Sequence[Mapping[str, Any]], holdings: Mapping[str, int]
) -> dict[str, Any]:
    """Return counts, medians and 95th percentiles of each kind of run, by model and by day."""
    uses = [run for run in runs if run["format"] == USE]
    recalls = [run for run in runs if run["format"] == RECALL]
    answers = [run for run in runs if run["format"] == ANSWER]
    runs = [run for run in runs if run["format"] not in (RECALL, ANSWER, USE, COUNT)]
    shares = [run["input_tokens"] / max(1, run["context_window"]) for run in runs]
    return {
        "runs": len(runs),
        "truncated_runs": sum(run["truncations"] > 0 for run in runs),
        "truncation_events": sum(run["truncations"] for run in runs),
        **{
            key: _median_and_p95([float(run[key]) for run in runs])
            for key in ("input_tokens", "reserve_used", "utilisation", "ms")
        },
        "window_utilisation": _median_and_p95(shares),
        "models": dict(Counter(run["model"] or "" for run in runs).most_common()),
        "days": dict(sorted(Counter(map(_day, runs)).items())),
        "by_day": _rows_by_day(runs, recalls, answers),
        "recalls": {
            "runs": len(recalls),
            "skipped": sum(not run["kept"] for run in recalls),
            "input_tokens": _median_and_p95(
                [float(run["input_tokens"]) for run in recalls if run["kept"]]
            ),
            "ms": _median_and_p95([float(run["ms"]) for run in recalls if run["ms"]]),
        },
        "use": summarize_use(uses),
        "answers": {"count": len(answers), **_cache_use(answers)},
        "store": dict(holdings),
    }


def _cache_use(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    tokens = sum(run["input_tokens"] for run in answers)
    cached = sum(json.loads(run["sections"]).get(CACHED, 0) for run in answers)
    share = round(cached / tokens, 3) if tokens else None
    return {"request_tokens": tokens, "cached_tokens": cached, "cached_share": share}


def _day(run: Mapping[str, Any]) -> str:
    return from_epoch_ms(run["at"]).date().isoformat()


def _rows_by_day(*kinds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each day with contexts, recalls or answers, in order."""
    by_day: dict[str, tuple[list[Mapping[str, Any]], ...]] = {}
    for kind, records in enumerate(kinds):
        for run in records:
            by_day.setdefault(_day(run), ([], [], []))[kind].append(run)
    return [
        {
            "day": day,
            "runs": len(contexts),
            "truncated_runs": sum(run["truncations"] > 0 for run in contexts),
            "input_tokens": sum(run["input_tokens"] for run in contexts),
            "utilisation": median_of([float(run["utilisation"]) for run in contexts]),
            "recalls": len(recalls),
            "answers": len(answers),
            **_cache_use(answers),
        }
        for day, (contexts, recalls, answers) in sorted(by_day.items())
    ]


def _median_and_p95(values: Sequence[float]) -> dict[str, float | None]:
    # The 95th percentile is a value that occurred, not one in between.
    rank = -(-95 * len(values) // 100)
    highest = round(sorted(values)[rank - 1], 3) if values else None
    return {"median": median_of(values), "p95": highest}
