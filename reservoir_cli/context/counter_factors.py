"""Measure how far token counters are off for a model, by what providers report of its answers.

Of answers through the proxy, those of text alone are compared: providers also count thinking.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from reservoir_cli.messages import Scope, to_epoch_ms
from reservoir_cli.settings.models import is_same_model
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import AnthropicCounter, TokenCounter, counter_id

COUNT = "count"  # in the record of an answer; ``input_tokens`` are the provider's
#: How many answers a factor needs, how many of a model are compared, and how many are read.
ENOUGH, _MOST, _MOST_READ = 20, 200, 2_000
_SHORTEST = 20  # shorter answers are not compared: the end of an answer is a token, too
_LARGEST = 4  # the largest factor, either way; beyond it, the provider has counted something else
_AGE = timedelta(days=90)  # how old a compared answer is at most
_NUMBERS = (
    *("context_window", "reserve", "reserve_used", "available", "input_tokens", "kept", "dropped"),
    *("truncations", "utilisation", "ms"),
)


class CounterFactor(NamedTuple):
    """By how much a model's tokens are more than those of a counter, of some compared answers."""

    model: str
    counter: str
    answers: int
    factor: float


def count_record(
    scope: Scope, model: str, counter: TokenCounter, text: str, reported: int, now: datetime
) -> dict[str, Any] | None:
    """Return the record of an answer whose provider reported its tokens, if both are comparable."""
    counted = counter.count(text)
    # Not divided: a provider may report a number that no float can hold.
    if counted < _SHORTEST or not counted <= reported * _LARGEST <= counted * _LARGEST**2:
        return None
    values = {"counter": counter_id(counter), "available": counted, "input_tokens": reported}
    return make_record(scope, COUNT, model, now, **values)


def make_record(
    scope: Scope, form: str, model: str | None, at: datetime, **values: Any
) -> dict[str, Any]:
    """Return the record of a run, with 0 for the numbers that are not given."""
    return {
        **dict.fromkeys(_NUMBERS, 0),
        "at": to_epoch_ms(at),
        "partition": scope.partition,
        "instance": scope.instance or "",
        "model": model,
        "format": form,
        "counter": "",
        "sections": "{}",
        **values,
    }


def counter_factors(
    store: Store, now: datetime, partition: str | None = None
) -> list[CounterFactor]:
    """Return the factor of each model and counter, by their names, for one partition or all."""
    counts: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    counted_answers = store.answer_counts(COUNT, now - _AGE, _MOST_READ, partition)
    for model, counter, reported, counted in counted_answers:
        counts[model, counter].append((reported, counted))
    return sorted(CounterFactor(*key, *_compare(pairs)) for key, pairs in counts.items())


def find_factor(
    store: Store, partition: str, model: str | None, counter: TokenCounter, now: datetime
) -> float | None:
    """Return the factor of a model, by any of its names, if enough answers tell one."""
    if model is None or counter.exact or isinstance(counter, AnthropicCounter):
        return None
    return next(
        (
            measure.factor
            for measure in counter_factors(store, now, partition)
            if measure.answers >= ENOUGH
            and measure.counter == counter_id(counter)
            and is_same_model(model, measure.model)
        ),
        None,
    )


def _compare(pairs: Iterable[tuple[int, int]]) -> tuple[int, float]:
    newest = list(pairs)[:_MOST]
    reported, counted = map(sum, zip(*newest, strict=True))
    return len(newest), reported / counted
