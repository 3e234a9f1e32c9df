"""Score messages by how near they are to the days that a question names."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, tzinfo
from typing import TYPE_CHECKING

from reservoir_cli.retrieval import ranking_constants as constants
from reservoir_cli.retrieval.question_dates.calendar_days import DaySpan
from reservoir_cli.retrieval.question_dates.parser import find_dates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DAY_MS = 86_400_000


def score_dates(
    question: str, now: datetime, created_at: "NDArray[np.int64]"
) -> tuple["NDArray[np.float64]", tuple[str, ...]]:
    """Score how near messages are to the days of a question; note a day without messages.

    :param now: the time of the question, aware.
    """
    spans = find_dates(question, now)
    scores = date_scores(spans, created_at, now.tzinfo or UTC)
    return scores, describe_empty_days(spans, scores)


def date_scores(
    spans: Sequence[DaySpan], created_at: "NDArray[np.int64]", zone: tzinfo
) -> "NDArray[np.float64]":
    """Score how near messages are to the nearest of the spans: 1 inside, at most a half outside.

    Beside a span the score falls the faster, the more precise the span is: it halves with every
    quarter of the span's length. Of a span without a year, the occurrences before the latest one
    with a message count half; one that may be a name counts a quarter. Without spans all are 0.

    :param created_at: shape (n,), milliseconds since 1970, ascending.
    :param zone: the zone in which days begin; a fixed offset ignores daylight saving time.
    """
    import numpy as np

    scores = np.zeros(len(created_at))
    if not len(created_at):
        return scores
    extremes = created_at[[0, -1]].astype("datetime64[ms]")
    first, last = (int(year) + 1970 for year in extremes.astype("datetime64[Y]").astype(np.int64))
    by_length: dict[int, list[DaySpan]] = {}
    for span in spans:
        by_length.setdefault((span.end - span.start).days, []).append(span)
    for days, equally_long in by_length.items():
        half_life = constants.DATE_HALF_LIFE * days * _DAY_MS
        by_weight: dict[float, list[tuple[float, float]]] = {}
        for span in equally_long:
            edges = list(_edges(span, first, last, zone))
            latest = _latest(edges, created_at) if span.every_year else 0
            weight = 1.0 if span.sure else constants.DOUBTFUL_DATE
            by_weight.setdefault(weight * constants.EARLIER_YEAR, []).extend(edges[:latest])
            by_weight.setdefault(weight, []).extend(edges[latest:])
        for weight, weighted in by_weight.items():
            if weighted:
                distances = _distances(sorted(weighted), created_at)
                beside = constants.BESIDE_DATE * np.exp2(distances / -half_life)
                nearness = weight * np.where(distances <= 0, 1.0, beside)
                np.maximum(scores, nearness, out=scores)
    return scores


def describe_empty_days(spans: Sequence[DaySpan], scores: "NDArray[np.float64]") -> tuple[str, ...]:
    """Return a note if a question names only single days, and no message is from one of them."""
    if not spans or any((span.end - span.start).days > 1 or not span.sure for span in spans):
        return ()
    if (scores == 1).any():
        return ()
    days = dict.fromkeys(
        f"{span.start:%d %B} of any year" if span.every_year else span.start.isoformat()
        for span in spans
    )
    return (f"no message is from {' or '.join(days)}",)


def _distances(
    edges: Sequence[tuple[float, float]], created_at: "NDArray[np.int64]"
) -> "NDArray[np.float64]":
    """Return how far messages are from the nearest span, in ms, 0 inside; edges are in order."""
    import numpy as np

    starts = np.array([start for start, _ in edges] + [np.inf])
    # Where spans overlap, the latest end counts for all that began before.
    ends = np.maximum.accumulate([-np.inf] + [end for _, end in edges])
    # Few searches in many times are faster than many in few.
    counts = np.diff(np.searchsorted(created_at, starts), prepend=0)
    # The end itself belongs to the next day.
    after = created_at - np.repeat(ends, counts) + 1
    distances = np.minimum(after, np.repeat(starts, counts) - created_at)
    return np.asarray(np.maximum(distances, 0.0))


def _latest(edges: Sequence[tuple[float, float]], created_at: "NDArray[np.int64]") -> int:
    """Return the position of the last span with a message in it; 0 if there is none."""
    import numpy as np

    counts = np.diff(np.searchsorted(created_at, edges))[:, 0] if edges else np.zeros(0)
    return int(counts.nonzero()[0].max(initial=0))


def _edges(span: DaySpan, first: int, last: int, zone: tzinfo) -> Iterator[tuple[float, float]]:
    # The nearest Christmas to a message from January is in the year before.
    years = range(max(first - 1, date.min.year + 1), min(last + 2, date.max.year - 1))
    for occurrence in map(span.in_year, years) if span.every_year else [span]:
        if occurrence.start < occurrence.end:
            yield _midnight_ms(occurrence.start, zone), _midnight_ms(occurrence.end, zone)


def _midnight_ms(day: date, zone: tzinfo) -> float:
    return datetime.combine(day, time(), zone).timestamp() * 1000
