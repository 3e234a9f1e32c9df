import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from builders import NOW, full_width
from each import each
from hypothesis import given
from hypothesis import strategies as st

from reservoir_cli.errors import UsageError
from reservoir_cli.util.parse_time_options import format_duration, parse_duration, parse_time


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


@each(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("30m", 1_800),
        ("4h", 14_400),
        ("7d", 604_800),
        ("2w", 1_209_600),
        ("1y", 31_557_600),
        ("1.5h", 5_400),
        (" 7 d ", 604_800),
        (full_width("1.5h"), 5_400),
        ("0", 0),
    ],
)
def test_durations_are_parsed(text, seconds):
    assert parse_duration(text) == seconds


@each("text", ["", "d", "-1d", "7 days", "1h30m", "1e3", "nan", "inf", "٣d", "7D", "1.h", "."])
def test_invalid_durations_are_refused(text):
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@each(
    ("seconds", "text"),
    [(0, "0s"), (90, "90s"), (120, "2m"), (14_400, "4h"), (86_400, "1d"), (1_209_600, "2w")],
)
def test_a_duration_is_written_with_its_largest_unit(seconds, text):
    assert format_duration(seconds) == text


@given(st.integers(0, 10**10) | st.integers(0, 10**7).map(lambda tenths: tenths / 10))
def test_a_formatted_duration_is_parsed_back_unchanged(seconds):
    assert parse_duration(format_duration(seconds)) == seconds


@each(
    ("text", "expected"),
    [
        ("2026-05-09T14:23:01+02:00", datetime(2026, 5, 9, 12, 23, 1, tzinfo=UTC)),
        ("2026-05-09T14:23Z", datetime(2026, 5, 9, 14, 23, tzinfo=UTC)),
        ("2026-05-09 14:23:01.5+00:00", datetime(2026, 5, 9, 14, 23, 1, 500_000, tzinfo=UTC)),
        (" 2026-05-09T14:23Z\n", datetime(2026, 5, 9, 14, 23, tzinfo=UTC)),
        ("7d", NOW - timedelta(days=7)),
        ("12h", NOW - timedelta(hours=12)),
        ("1.5h", NOW - timedelta(minutes=90)),
        ("0s", NOW),
        (full_width("2026-05-09"), datetime(2026, 5, 9).astimezone(UTC)),
    ],
)
def test_times_are_parsed(text, expected):
    assert parse_time(text, NOW) == expected


@pytest.mark.usefixtures("new_york")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-09", datetime(2026, 5, 9, 4, tzinfo=UTC)),
        ("2026-01-09T14:23", datetime(2026, 1, 9, 19, 23, tzinfo=UTC)),
    ],
)
def test_a_time_without_a_zone_is_local(text, expected):
    parsed = parse_time(text, NOW)
    assert parsed == expected
    assert parsed.utcoffset() == timedelta(0)


@pytest.mark.usefixtures("new_york")
@each(
    ("text", "expected"),
    [
        ("today", datetime(2026, 5, 9, 4, tzinfo=UTC)),
        ("Yesterday", datetime(2026, 5, 8, 4, tzinfo=UTC)),
        ("last  week", datetime(2026, 4, 27, 4, tzinfo=UTC)),
        ("this week", datetime(2026, 5, 4, 4, tzinfo=UTC)),
        ("last month", datetime(2026, 4, 1, 4, tzinfo=UTC)),
        ("last year", datetime(2025, 1, 1, 5, tzinfo=UTC)),
        ("3 days ago", NOW - timedelta(days=3)),
        ("1 hour ago", NOW - timedelta(hours=1)),
        ("two weeks ago", NOW - timedelta(weeks=2)),
        ("7 days", NOW - timedelta(days=7)),
        ("a year ago", NOW - timedelta(days=365.25)),
        ("6 months", NOW - timedelta(days=182.625)),
        ("now", NOW),
        ("Monday", datetime(2026, 5, 4, 4, tzinfo=UTC)),
        ("last friday", datetime(2026, 5, 8, 4, tzinfo=UTC)),
        ("last saturday", datetime(2026, 5, 2, 4, tzinfo=UTC)),  # now is a Saturday
        ("sunday", datetime(2026, 5, 3, 4, tzinfo=UTC)),
        ("2025-12", datetime(2025, 12, 1, 5, tzinfo=UTC)),
        ("March", datetime(2026, 3, 1, 5, tzinfo=UTC)),
        ("may", datetime(2026, 5, 1, 4, tzinfo=UTC)),
        ("last may", datetime(2025, 5, 1, 4, tzinfo=UTC)),
        ("last april", datetime(2026, 4, 1, 4, tzinfo=UTC)),
        ("June", datetime(2025, 6, 1, 4, tzinfo=UTC)),
        ("a fortnight ago", NOW - timedelta(days=14)),
        ("the Friday before last", datetime(2026, 5, 1, 4, tzinfo=UTC)),
        ("saturday before last", datetime(2026, 4, 25, 4, tzinfo=UTC)),
        ("the week before last", datetime(2026, 4, 20, 4, tzinfo=UTC)),
        ("month before last", datetime(2026, 3, 1, 5, tzinfo=UTC)),
        ("year before last", datetime(2024, 1, 1, 5, tzinfo=UTC)),
        ("week 12", datetime(2026, 3, 16, 4, tzinfo=UTC)),
        ("KW 19", datetime(2026, 5, 4, 4, tzinfo=UTC)),
        ("KW20", datetime(2025, 5, 12, 4, tzinfo=UTC)),  # not begun yet this year
        ("calendar week 53/2020", datetime(2020, 12, 28, 5, tzinfo=UTC)),
    ],
)
def test_words_mean_the_local_time_at_which_the_period_began(text, expected):
    assert parse_time(text, NOW) == expected


@each(
    "text",
    [
        "",
        "the day before",
        "week 0",
        "week 54",
        "KW 53 2021",
        "KW 1 0000",
        "week 1 0001",
        "week 12 1969",
        "2026",
        "90",
        "20260509",
        "2026-13-01",
        "2026-13",
        "2026-05-09T25:00",
        "-7d",
        "some days",
        "999999 years",
        "1969-12-31T00:00Z",
        "0001-01-01",
        "9999-12-31T23:59:59-14:00",
        "999999999y",
        "9" * 400 + "d",
    ],
)
def test_an_invalid_time_is_a_usage_error_with_examples(text):
    with pytest.raises(UsageError) as caught:
        parse_time(text, NOW)
    assert "7d" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["6M", " 6 M"])
def test_a_capital_m_is_neither_minutes_nor_months(text):
    with pytest.raises(UsageError, match="may mean minutes or months") as caught:
        parse_time(text, NOW)
    assert caught.value.hint == "use 6m or '6 months'"


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_a_usage_error(text):
    with suppress(UsageError):
        assert parse_time(text, NOW).tzinfo is not None
