"""Parse times in options and settings, as people type them: durations, ages and dates.

A time without a zone is local; results are aware datetimes in UTC.
"""

import re
from datetime import UTC, date, datetime, time, timedelta

from reservoir_cli.errors import UsageError
from reservoir_cli.util.unicode_text import plain_digits

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31557600}
_DURATION = r"(?a)\s*(\d+(?:\.\d+)?)\s*([smhdwy]?)\s*"


_NUMBERS = dict.fromkeys(("a", "an", "one"), 1) | dict(
    zip("two three four five six seven eight nine ten".split(), range(2, 11), strict=True)
)
_AGO = rf"(?a)(\d{{1,6}}|{'|'.join(_NUMBERS)}) (second|minute|hour|day|week|month|year)s?(?: ago)?"
_MONTH = _UNITS["y"] / 12
_FIRST_YEAR = 1970
_YEAR_MONTH = r"(?a)\d{4}-\d\d"
_WEEK = r"(?a)(?:(?:calendar )?week|kw|cw) ?(\d{1,2})(?:[ /](\d{4}))?"
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_MONTHS = (
    "january february march april may june july august september october november december".split()
)


def parse_duration(text: str) -> float:
    """Return the seconds of ``90``, ``30m``, ``4h``, ``7d``, ``2w`` or ``1y``."""
    match = re.fullmatch(_DURATION, plain_digits(text))
    if not match:
        raise ValueError(f"{text!r} is not a duration such as 30m, 4h or 7d")
    return float(match[1]) * _UNITS[match[2] or "s"]


def format_duration(seconds: float) -> str:
    """Format seconds as the shortest text that :func:`parse_duration` reads back unchanged."""
    for unit in ("w", "d", "h", "m"):
        if seconds and seconds % _UNITS[unit] == 0:
            return f"{int(seconds // _UNITS[unit])}{unit}"
    # No exponent: 1e+06s could not be read back.
    from decimal import Decimal

    return f"{Decimal(repr(seconds)):f}s"


def parse_time(text: str, now: datetime) -> datetime:
    """Parse a time: ISO 8601 (local without a zone), an age such as ``7d``, or words.

    Words such as ``yesterday`` and ``last week``, and ``2026-05``, mean the start of that period;
    ``monday`` and ``last monday`` are the latest Monday before today, ``may`` the latest May,
    ``last may`` the latest one before this month, and ``week 12`` the latest one of that number.
    """
    hint = "use 2026-05-09, 2026-05-09T14:23, an age such as 12h or 7d, yesterday or '2 weeks ago'"
    text = " ".join(plain_digits(text).split())
    if match := re.fullmatch(r"(?a)(\d+(?:\.\d+)?) ?M", text):
        number = match[1]
        raise UsageError(
            f"{text!r} may mean minutes or months", hint=f"use {number}m or '{number} months'"
        )
    if (start := _start_of(text.lower(), now)) is not None:
        return start
    if (age := parse_age(text.lower())) is not None:
        try:
            return now - timedelta(seconds=age)
        except OverflowError:
            raise UsageError(f"the age {text!r} is out of range", hint=hint) from None
    try:
        moment = datetime.fromisoformat(f"{text}-01" if re.fullmatch(_YEAR_MONTH, text) else text)
        if not text.isdigit() and moment.year >= _FIRST_YEAR:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise UsageError(f"{text!r} is not a time", hint=hint)


def parse_age(text: str) -> float | None:
    """Return the seconds of an age such as ``7d``, ``two weeks ago`` or ``a fortnight ago``."""
    text = re.sub(r"^(?:an? |one )?fortnight\b", "2 weeks", plain_digits(text))
    if match := re.fullmatch(_AGO, text):
        number = _NUMBERS.get(match[1]) or int(match[1])
        return number * (_MONTH if match[2] == "month" else _UNITS[match[2][0]])
    return parse_duration(text) if re.fullmatch(_DURATION, text) and not text.isdigit() else None


def _start_of(words: str, now: datetime) -> datetime | None:
    """Return the start of the period that words such as ``last week`` name, in local time."""
    today = now.astimezone().date()
    monday, first = today - timedelta(days=today.weekday()), today.replace(day=1)
    starts = {
        "today": today,
        "yesterday": today - timedelta(days=1),
        "this week": monday,
        "last week": monday - timedelta(days=7),
        "this month": first,
        "last month": (first - timedelta(days=1)).replace(day=1),
        "this year": first.replace(month=1),
        "last year": first.replace(year=first.year - 1, month=1),
        "week before last": monday - timedelta(days=14),
        "month before last": first.replace(
            year=first.year - (first.month <= 2), month=(first.month - 3) % 12 + 1
        ),
        "year before last": first.replace(year=first.year - 2, month=1),
    }
    for number, name in enumerate(_WEEKDAYS):
        latest = today - timedelta(days=(today.weekday() - number - 1) % 7 + 1)
        starts[name] = starts[f"last {name}"] = latest
        starts[f"{name} before last"] = latest - timedelta(days=7)
    for number, name in enumerate(_MONTHS, 1):
        latest = first.replace(year=today.year - (today.month < number), month=number)
        starts[name] = latest
        starts[f"last {name}"] = latest.replace(year=latest.year - (latest == first))
    if words == "now":
        return now
    start = starts.get(words.removeprefix("the ")) or _start_of_week(words, today)
    return datetime.combine(start, time()).astimezone(UTC) if start else None


def _start_of_week(words: str, today: date) -> date | None:
    """Return the Monday of ``week 12`` or ``kw 12 2026`` (ISO 8601); without a year the latest."""
    match = re.fullmatch(_WEEK, words)
    if not match:
        return None
    year, week = int(match[2] or today.isocalendar().year), int(match[1])
    try:
        monday = date.fromisocalendar(year, week, 1)
        if not match[2] and monday > today:
            monday = date.fromisocalendar(year - 1, week, 1)
    except ValueError:
        return None
    return monday if monday.year >= _FIRST_YEAR else None
