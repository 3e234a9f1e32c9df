"""Score messages by how near they are to the days that a question names."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, tzinfo
from typing import TYPE_CHECKING

from reservoir_cli.retrieval.question_dates.calendar_days import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HALF_LIFE_DAYS = 7

_DAY_MS = 86_400_000


def date_scores(
    spans: Sequence[Span], created_at: "NDArray[np.int64]", zone: tzinfo
) -> "NDArray[np.float64]":
    """Score how near messages are to the nearest of the spans: 2^(-days/7), 1 inside.

    :param created_at: shape (n,), milliseconds since 1970, ascending.
    :param zone: the zone in which days begin; a fixed offset ignores daylight saving time.
    :returns: shape (n,), in 0…1; all 0 if there are no spans.
    """
    import numpy as np

    if not spans or not len(created_at):
        return np.zeros(len(created_at))
    extremes = created_at[[0, -1]].astype("datetime64[ms]")
    first, last = (int(year) + 1970 for year in extremes.astype("datetime64[Y]").astype(np.int64))
    edges = sorted(_edges(spans, first, last, zone))
    starts = np.array([start for start, _ in edges] + [np.inf])
    # Where spans overlap, the latest end counts for all that began before.
    ends = np.maximum.accumulate([-np.inf] + [end for _, end in edges])
    # Few searches in many times are faster than many in few.
    counts = np.diff(np.searchsorted(created_at, starts), prepend=0)
    distances = np.minimum(
        created_at - np.repeat(ends, counts), np.repeat(starts, counts) - created_at
    )
    return np.asarray(np.exp2(np.maximum(distances, 0.0) / (-HALF_LIFE_DAYS * _DAY_MS)))


def _edges(
    spans: Sequence[Span], first: int, last: int, zone: tzinfo
) -> Iterator[tuple[float, float]]:
    # The nearest Christmas to a message from January is in the year before.
    years = range(max(first - 1, date.min.year + 1), min(last + 2, date.max.year - 1))
    for span in spans:
        for occurrence in map(span.in_year, years) if span.every_year else [span]:
            if occurrence.start < occurrence.end:
                yield _midnight_ms(occurrence.start, zone), _midnight_ms(occurrence.end, zone)


def _midnight_ms(day: date, zone: tzinfo) -> float:
    return datetime.combine(day, time(), zone).timestamp() * 1000
