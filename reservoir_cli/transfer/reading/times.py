"""Read the times of other tools' messages, in any of their forms and under any of their names."""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from reservoir_cli.transfer.reading.foreign_values import obj

_YEAR_10000 = 253_402_300_800
_LEAST_MS = 100_000_000_000  # times from this number on are in milliseconds
#: Units smaller than a second, and the least number that is taken for a time in them.
_UNITS = ((1e9, 1e17), (1e6, 1e14), (1e3, _LEAST_MS))
_NUMBER = re.compile(r"\d{9,20}(?:\.\d+)?", re.ASCII)
#: A time as Go prints it, with the name of the zone and the reading of a clock at its end.
_GO = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) ([+-]\d{4}) [A-Z+-]")
#: Names of a message's time in lists of messages, the most specific first.
_TIMES = ("created_at", "timestamp", "created", "create_time", "createdAt")


@dataclass(slots=True)
class UnreadTimes:
    """How many times were there and could not be read."""

    count: int = 0


_unread: ContextVar[UnreadTimes | None] = ContextVar("unread", default=None)


@contextmanager
def count_unread_times() -> Iterator[UnreadTimes]:
    """Count the times that cannot be read meanwhile."""
    unread = UnreadTimes()
    token = _unread.set(unread)
    try:
        yield unread
    finally:
        _unread.reset(token)


def moment(value: Any) -> datetime | None:
    """Parse a time, in UTC, of 1970 to 9999; ``None`` for anything else.

    Dates are in ISO 8601 (UTC without a zone), RFC 2822, or as Go prints them. Numbers are in
    seconds up to the year 5138, milliseconds from 1973 on, microseconds or nanoseconds.
    """
    return _parse_or_count(value, _LEAST_MS)


def moment_ms(value: Any) -> datetime | None:
    """Parse a time; numbers are in milliseconds since 1970, or in a smaller unit."""
    return _parse_or_count(value, 0)


def _parse_or_count(value: Any, least_ms: float) -> datetime | None:
    time = _parse(value, least_ms)
    if time is None and value not in (None, "", 0) and (unread := _unread.get()):
        unread.count += 1
    return time


def seconds(value: Any) -> float:
    """Return a time in seconds since 1970; 0 for anything but a time."""
    time = _parse(value, _LEAST_MS)
    return time.timestamp() if time else 0.0


def _parse(value: Any, least_ms: float) -> datetime | None:
    """Parse a time; numbers from ``least_ms`` on are in milliseconds or smaller units."""
    try:
        if isinstance(value, str):
            value = value.strip()
            if not _NUMBER.fullmatch(value):
                return _parse_date(value)
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        since = float(value)
        for unit, least in _UNITS:
            if since >= (least_ms if unit == 1e3 else least):
                since /= unit
                break
        if math.isfinite(since) and 0 < since < _YEAR_10000 - 1:
            return datetime.fromtimestamp(since, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def _parse_date(value: str) -> datetime | None:
    if go := _GO.match(value):
        value = f"{go[1]}{go[2]}"
    try:
        date = datetime.fromisoformat(value)
    except ValueError:
        from email.utils import parsedate_to_datetime

        date = parsedate_to_datetime(value)
    utc = (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    return utc if utc.year >= 1970 else None


def time_of(value: Any) -> datetime | None:
    """Return the time that an object has under one of the usual names."""
    values = [obj(value).get(name) for name in _TIMES]
    times = (_parse(time, _LEAST_MS) for time in values)
    first = next((time for time in times if time is not None), None)
    return first or moment(next((time for time in values if time), None))


def fill_gaps(times: Sequence[datetime | None], start: datetime | None) -> list[datetime | None]:
    """Fill gaps with the previous time, or at the beginning with the next one.

    :param start: when the conversation began, used if no message has a time.
    """
    last = next((time for time in times if time), start)
    filled = []
    for time in times:
        last = time or last
        filled.append(last)
    return filled
