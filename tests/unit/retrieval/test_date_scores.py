"""Scores of messages by their distance to the dates of a question."""

import sys
from datetime import UTC, date, datetime, tzinfo
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st
from named_days import BERLIN, DAY, NOW, moment, spans

from reservoir_cli.retrieval.question_dates.calendar_days import DaySpan
from reservoir_cli.retrieval.question_dates.nearness import date_scores, describe_empty_days
from reservoir_cli.retrieval.question_dates.parser import find_dates


def score(notation: str, time: str, zone: tzinfo = BERLIN) -> float:
    return float(date_scores(spans(notation), np.array([moment(time, zone)]), zone)[0])


@each(
    ("notation", "time", "expected"),
    [
        pytest.param("2023-07-07", "2023-07-07T00:00", 1, id="the first moment is inside"),
        pytest.param("2023-07-07", "2023-07-07T23:59:59.999", 1, id="so is the last"),
        pytest.param("2023-07-07", "2023-07-08T06:00", 1 / 4, id="a quarter of a day after"),
        pytest.param("2023-07-07", "2023-07-06T18:00", 1 / 4, id="a quarter of a day before"),
        pytest.param("2023-07-07", "2023-07-09T00:00", 1 / 32, id="a day after"),
        pytest.param("2023-07-03/2023-07-09", "2023-07-11T18:00", 1 / 4, id="beside a week"),
        pytest.param("2023-06-01/2023-06-30", "2023-06-16T12:00", 1, id="inside a month"),
        pytest.param("2023-06-01/2023-06-30", "2023-05-24T12:00", 1 / 4, id="beside a month"),
        pytest.param("2023-07-07; 2023-07-20", "2023-07-19T18:00", 1 / 4, id="the nearest counts"),
        pytest.param(
            "2023-07-01/2023-07-31; 2023-07-07", "2023-07-08T06:00", 1, id="one in another"
        ),
        pytest.param(
            "2023-07-01/2023-07-08; 2023-07-05", "2023-07-11T00:00", 1 / 4, id="the softer"
        ),
        pytest.param("07-07", "2019-07-07T12:00", 1, id="yearless: one year"),
        pytest.param("07-07", "2025-07-08T06:00", 1 / 4, id="yearless: and another"),
        pytest.param("12-31", "2025-01-01T06:00", 1 / 4, id="yearless: the year before is nearer"),
        pytest.param("01-01", "2024-12-31T18:00", 1 / 4, id="yearless: the year after is nearer"),
        pytest.param("11-01/02-29", "2025-01-15T00:00", 1, id="yearless over the new year"),
        pytest.param("02-29", "2024-02-29T12:00", 1, id="29 February of a leap year"),
        pytest.param("02-01/02-29", "2023-02-28T23:00", 1, id="February ends with the 28th"),
        pytest.param("0001-01-01/2023-06-30", "1999-01-01T00:00", 1, id="open towards the past"),
        pytest.param("2026-03-29", "2026-03-30T06:00", 1 / 4, id="after a day of 23 hours"),
        pytest.param("2026-10-25", "2026-10-25T23:30", 1, id="within a day of 25 hours"),
    ],
)
def test_a_score_is_1_inside_and_halves_with_every_quarter_of_the_length(notation, time, expected):
    assert score(notation, time) == pytest.approx(expected, rel=1e-6)


@each(
    ("notation", "expected"),
    [
        ("", ()),
        ("2023-07-07", ()),
        ("2023-07-08", ("no message is from 2023-07-08",)),
        ("2023-07-08; 2023-07-07", ()),
        ("2023-07-08/2023-07-09", ()),
        ("07-08", ("no message is from 08 July of any year",)),
    ],
)
def test_a_named_day_without_messages_is_reported(notation, expected):
    created_at = np.array([moment("2023-07-07T12:00"), moment("2023-07-10T12:00")])
    days = spans(notation)
    assert describe_empty_days(days, date_scores(days, created_at, BERLIN)) == expected


def test_29_february_names_no_day_of_a_common_year():
    leap = date_scores(spans("02-29"), np.array([moment("2024-02-29T12:00")]), BERLIN)
    common = date_scores(spans("02-29"), np.array([moment("2023-03-01T00:00")]), BERLIN)
    assert leap[0] == 1
    # The nearest one is 365 days ahead.
    assert common[0] == pytest.approx(0)


@each(
    ("notation", "expected"),
    [
        pytest.param("11-19", [1 / 2, 1 / 8, 1], id="the latest year counts most"),
        pytest.param("2025-11-19", [1, 1 / 4, 0], id="a named year counts in full"),
        pytest.param("11-18", [1 / 8, 1 / 64, 1 / 8], id="all alike without a message"),
        pytest.param("11-01/11-30", [1 / 2, 1 / 2, 1], id="a month"),
    ],
)
def test_a_day_without_a_year_is_first_of_all_the_latest_one(notation, expected):
    times = ("2025-11-19T12:00", "2025-11-20T06:00", "2026-11-19T12:00")
    scores = date_scores(spans(notation), np.array([moment(time) for time in times]), BERLIN)
    assert scores == pytest.approx(expected, abs=1e-6)


def test_without_dates_all_scores_are_zero():
    scores = date_scores((), np.array([0, 1, 2]), UTC)
    assert scores.tolist() == [0, 0, 0]
    assert scores.dtype == np.float64


def test_no_messages_have_no_scores():
    scores = date_scores(spans("07-07"), np.array([], np.int64), UTC)
    assert scores.shape == (0,)
    assert scores.dtype == np.float64


def test_a_day_begins_at_midnight_of_the_zone():
    created_at = np.array([moment("2023-07-06T23:30", UTC)])
    assert date_scores(spans("2023-07-07"), created_at, BERLIN)[0] == 1
    assert date_scores(spans("2023-07-07"), created_at, UTC)[0] < 1


def test_a_day_without_a_midnight_begins_with_its_first_moment():
    # In São Paulo the clock went from 23:59:59 to 01:00 into 4 November 2018, at 03:00 UTC.
    first = moment("2018-11-04T03:00", UTC)
    scores = date_scores(
        spans("2018-11-04"), np.array([first - 3_600_000, first]), ZoneInfo("America/Sao_Paulo")
    )
    assert scores == pytest.approx([2 ** (-1 - 4 / 24), 1])


def test_the_first_and_last_times_have_scores():
    created_at = np.array([np.iinfo(np.int64).min, 0, np.iinfo(np.int64).max])
    scores = date_scores(spans("07-07; 0001-01-01/2023-06-30"), created_at, BERLIN)
    assert scores == pytest.approx([0, 1, 0])


ZONES = ["UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Kathmandu"]
MOMENTS = st.datetimes(datetime(2015, 1, 1), datetime(2026, 12, 31)).map(
    lambda when: round(when.replace(tzinfo=UTC).timestamp() * 1000)
)


@st.composite
def some_spans(draw: st.DrawFn) -> DaySpan:
    every_year = draw(st.booleans())
    years = (2000, 2000) if every_year else (2014, 2027)
    start = draw(st.dates(date(years[0], 1, 1), date(years[1], 12, 31)))
    return DaySpan(start, start + DAY * draw(st.integers(1, 120)), every_year)


def naive_scores(date_spans: list[DaySpan], moments: list[int], zone: tzinfo) -> list[float]:
    best = [0.0] * len(moments)
    for span in date_spans:
        weight = 1.0
        for year in reversed(range(2012, 2030)):
            start, end = span.start, span.end
            if span.every_year:
                end = in_year(end, year + end.year - start.year)
                start = in_year(start, year)
            if start == end:
                continue
            first, last = (
                datetime(day.year, day.month, day.day, tzinfo=zone).timestamp() * 1000
                for day in (start, end)
            )
            for position, timestamp in enumerate(moments):
                distance = max(first - timestamp, timestamp - last + 1, 0)
                quarters = 4 * distance / 86_400_000 / (span.end - span.start).days
                score = 1.0 if not distance else 0.5 * 0.5**quarters
                best[position] = max(best[position], weight * score)
            if span.every_year and any(first <= timestamp < last for timestamp in moments):
                weight = 0.5
    return best


def in_year(day: date, year: int) -> date:
    common = (day.month, day.day) == (2, 29) and year % 4 != 0
    return date(year, 3, 1) if common else date(year, day.month, day.day)


@given(
    st.lists(some_spans(), min_size=1, max_size=4),
    st.lists(MOMENTS, min_size=1, max_size=20).map(sorted),
    st.sampled_from(ZONES),
)
def test_scores_equal_those_of_a_loop_over_messages_spans_and_years(date_spans, moments, key):
    zone = ZoneInfo(key)
    expected = naive_scores(date_spans, moments, zone)
    assert date_scores(date_spans, np.array(moments), zone) == pytest.approx(expected, rel=1e-9)


def test_a_million_messages_are_scored_without_a_loop():
    created_at = np.linspace(moment("2016-01-01"), moment("2026-05-13"), 1_000_000).astype(np.int64)
    date_spans = find_dates("in July or on 3 March, before Christmas or yesterday", NOW)
    assert len(date_spans) == 4
    lines, tracer = 0, sys.gettrace()

    def count(*_: object) -> object:
        nonlocal lines
        lines += 1
        return count

    sys.settrace(count)
    try:
        scores = date_scores(date_spans, created_at, BERLIN)
    finally:
        sys.settrace(tracer)
    assert lines < 100_000
    assert scores.shape == (1_000_000,)
    assert scores.max() == 1
