"""Read the clock and convert times to the local zone, even if the system's functions fail."""

from datetime import UTC, datetime, timedelta

#: Times up to this far ahead of now may come from a clock that is slightly off.
FAR_AHEAD = timedelta(days=1)


def unix_time() -> float:
    """Return seconds since 1970; ``time.time`` overflows if the clock is set to 2262 or later."""
    return datetime.now(UTC).timestamp()


def is_far_ahead(moment: datetime | None, now: datetime) -> bool:
    """Return whether a time is more than a day in the future."""
    return moment is not None and moment - now > FAR_AHEAD


def to_local(moment: datetime) -> datetime:
    """Convert an aware time to the local zone; return it unchanged if the system cannot."""
    try:
        return moment.astimezone()
    except (OverflowError, ValueError, OSError):  # Windows knows no zone before 1970
        return moment


def local_day(moment: datetime) -> str:
    """Return the date of a time in the local zone, such as ``2026-05-09``."""
    return to_local(moment).date().isoformat()
