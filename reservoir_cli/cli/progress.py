"""Format how far long work has come, how fast it goes, and how long the rest takes."""

#: Before so many seconds a rate says little.
_MEASURABLE = 1.0


def pace(done: int, total: int, measured: int, seconds: float) -> str:
    """Return a text such as ``512 of 12,431 · 260/s · 46 s left``.

    :param total: how much there is; 0 if that is unknown.
    :param measured: how much was done in ``seconds``, which may be less than ``done``.
    """
    if not total:
        return ""
    parts = [f"{done:,} of {total:,}"]
    if measured > 0 and seconds >= _MEASURABLE and done < total:
        rate = measured / seconds
        parts += [f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"]
        parts += [f"{in_words((total - done) / rate)} left"]
    return " · ".join(parts)


def in_words(seconds: float) -> str:
    """Return a duration as a person would say it: ``46 s``, ``3 min``, ``1 h 20 min``."""
    if seconds < 99.5:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if minutes else f"{hours:,} h"
