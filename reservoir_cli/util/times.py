"""Parse times as people type them: durations, ages and dates.

A time without a zone is local; results are aware datetimes in UTC.
"""

import re
from datetime import UTC, datetime, timedelta

from reservoir_cli.errors import UsageError

#: A time this much later than now is not a clock that is slightly off.
FAR_AHEAD = timedelta(days=1)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31557600}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhdwy]?)\s*", re.ASCII)


def unix_time() -> float:
    """Return seconds since 1970; ``time.time`` overflows if the clock is set to 2262 or later."""
    return datetime.now(UTC).timestamp()


def is_far_ahead(moment: datetime | None, now: datetime) -> bool:
    """Return whether a time is more than a day ahead of now."""
    return moment is not None and moment - now > FAR_AHEAD


def parse_duration(text: str) -> float:
    """Return the seconds of ``90``, ``30m``, ``4h``, ``7d``, ``2w`` or ``1y``.

    :raises ValueError: the text is not a duration.
    """
    match = _DURATION.fullmatch(text)
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
    """Parse a time: ISO 8601 (local without a zone), or an age such as ``7d`` before now.

    :raises UsageError: the text is neither, or out of range.
    """
    hint = "use 2026-05-09, 2026-05-09T14:23, or an age such as 12h or 7d"
    text = text.strip()
    if _DURATION.fullmatch(text) and not text.isdigit():
        try:
            return now - timedelta(seconds=parse_duration(text))
        except OverflowError:
            raise UsageError(f"the age {text!r} is out of range", hint=hint) from None
    try:
        moment = datetime.fromisoformat(text)
        if not text.isdigit() and moment.year >= 1970:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise UsageError(f"{text!r} is not a time", hint=hint)
