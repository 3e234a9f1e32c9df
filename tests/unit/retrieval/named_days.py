"""Short notations for days and times."""

from datetime import date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from reservoir_cli.retrieval.question_dates.calendar_days import DaySpan

NOW = datetime(2026, 5, 13, 15, 30, tzinfo=timezone(timedelta(hours=2)))  # a Wednesday
BERLIN = ZoneInfo("Europe/Berlin")
DAY = timedelta(days=1)


def spans(text: str) -> tuple[DaySpan, ...]:
    """Parse ``2023-07-01/2023-07-31; 12-24``: inclusive ranges of days, with or without a year."""
    return tuple(one_span(part) for part in text.split("; ") if part)


def one_span(text: str) -> DaySpan:
    first, _, last = text.partition("/")
    every_year = len(first) == 5
    start = date.fromisoformat(f"2000-{first}" if every_year else first)
    end = date.fromisoformat(f"2000-{last or first}" if every_year else last or first)
    if end < start:
        end = end.replace(year=2001, day=28 if (end.month, end.day) == (2, 29) else end.day)
    return DaySpan(start, end + DAY, every_year)


def format_spans(parsed: tuple[DaySpan, ...]) -> str:
    return "; ".join(
        f"{span.start}/{span.end - DAY}{' every year' if span.every_year else ''}"
        for span in parsed
    )


def moment(text: str, zone: tzinfo = BERLIN) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)
