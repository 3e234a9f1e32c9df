"""Spans of calendar days, and calculations with them."""

from datetime import date, timedelta
from typing import NamedTuple

DAY = timedelta(days=1)
MONTH_NAMES = (
    "January February March April May June July August September October November December"
).split()
# Yearless dates are put in a leap year, so that 29 February exists.
ANY_YEAR = 2000


class DaySpan(NamedTuple):
    """Local days from the first to before the end; those of every year if no year was named."""

    start: date
    end: date
    every_year: bool = False
    sure: bool = True  # whether its words are certainly a date, and not perhaps a name

    def in_year(self, year: int) -> "DaySpan":
        """Return these days in a given year; empty if that year has none of them.

        A year without 29 February has not, nor has one that no calendar has.
        """
        end = _move(self.end, year + self.end.year - self.start.year)
        return DaySpan(_move(self.start, year), end)


def _move(day: date, year: int) -> date:
    if not date.min.year <= year <= date.max.year:
        return date.min if year < date.min.year else date.max
    try:
        return day.replace(year=year)
    except ValueError:
        return date(year, 3, 1)


def any_year(month: int, day: int = 1) -> date:
    """Return a day without a year."""
    return date(ANY_YEAR, month, day)


def days_later(day: date, count: int) -> date:
    """Return the day this many days later, or the first or last day of all calendars."""
    ordinal = max(date.min.toordinal(), day.toordinal() + count)
    return date.fromordinal(min(ordinal, date.max.toordinal()))


def months_later(first: date, count: int = 1) -> date:
    """Return the same day some months later, or the last day of a shorter month."""
    year, month = divmod(first.year * 12 + first.month - 1 + count, 12)
    following = date(year + (month == 11), (month + 1) % 12 + 1, 1)
    return date(year, month + 1, min(first.day, (following - DAY).day))


def later(day: date, count: int, unit: str) -> date:
    """Return the day this many days, weeks, months or years later."""
    if unit in ("day", "week"):
        return day + DAY * count * (7 if unit == "week" else 1)
    return months_later(day, count * (12 if unit == "year" else 1))
