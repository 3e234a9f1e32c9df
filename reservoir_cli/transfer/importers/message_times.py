"""Read the times of messages, which other tools write in several forms."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from reservoir_cli.transfer.importers.foreign_values import obj

_YEAR_10000 = 253_402_300_800
#: Times from this number on are in milliseconds.
_LEAST_MS = 100_000_000_000
_NUMBER = re.compile(r"\d{9,16}(?:\.\d+)?", re.ASCII)
#: Names of a message's time in lists of messages, the most specific first.
_TIMES = ("created_at", "timestamp", "created", "create_time", "createdAt")


def moment(value: Any) -> datetime | None:
    """Parse a time in ISO 8601 (UTC without a zone) or in seconds since 1970, in UTC.

    Return ``None`` for anything but a time from 1970 to 9999: a message without a time is still
    useful.
    """
    try:
        if isinstance(value, str):
            parsed_time = datetime.fromisoformat(value.strip())
            aware = parsed_time if parsed_time.tzinfo else parsed_time.replace(tzinfo=UTC)
            utc = aware.astimezone(UTC)
            return utc if utc.year >= 1970 else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        seconds = float(value)
        if math.isfinite(seconds) and 0 < seconds < _YEAR_10000 - 1:
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def seconds(value: Any) -> float:
    """Return a time in seconds since 1970; 0 for anything but a time."""
    time = moment(value)
    return time.timestamp() if time else 0.0


def moment_ms(value: Any) -> datetime | None:
    """Parse a time in milliseconds since 1970, or in ISO 8601."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return moment(value)
    try:
        return moment(value / 1000)
    except OverflowError:
        return None


def any_moment(value: Any) -> datetime | None:
    """Parse a time of unknown unit: ISO 8601, or seconds or milliseconds since 1970.

    Numbers may be given as text. Times in milliseconds are after 1973, those in seconds before
    5138.
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return moment_ms(value) if is_number and abs(value) >= _LEAST_MS else moment(value)


def time_of(value: Any) -> datetime | None:
    """Return the time that an object has under one of the usual names."""
    times = (any_moment(obj(value).get(name)) for name in _TIMES)
    return next((time for time in times if time is not None), None)


def fill_gaps(times: Sequence[datetime | None], start: datetime | None) -> list[datetime | None]:
    """Return the times of a conversation's messages, with gaps filled in.

    A gap is filled with the previous time, or at the beginning with the next one.

    :param start: when the conversation began, used if no message has a time.
    """
    last = next((time for time in times if time), start)
    filled = []
    for time in times:
        last = time or last
        filled.append(last)
    return filled
