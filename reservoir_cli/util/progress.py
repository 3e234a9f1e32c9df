"""Report the progress of long work, and what remains to be done if it is interrupted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

#: Called with the name of the work, the amount done, and the total (0: unknown).
Progress = Callable[[str, int, int], None]
_MEASURABLE = 1.0  #: Seconds before a rate is meaningful.


def report_megabytes(progress: Progress, done: int, total: int) -> None:
    """Report how many of a number of bytes have been read; below one MB without a number."""
    megabytes = total >> 20
    progress("MB read" if megabytes else "reading", done >> 20, megabytes)


def no_progress(_what: str, _done: int, _total: int) -> None:
    """Ignore progress."""


def pace(done: int, total: int, measured: int, seconds: float) -> str:
    """Return a text such as ``512 of 12,431 · 260/s · 46 s left``."""
    if not total:
        return ""
    parts = [f"{done:,} of {total:,}"]
    if measured > 0 and seconds >= _MEASURABLE and done < total:
        rate = measured / seconds
        parts += [f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"]
        parts += [f"{duration_in_words((total - done) / rate)} left"]
    return " · ".join(parts)


def duration_in_words(seconds: float) -> str:
    """Format a duration for people: ``46 s``, ``3 min``, ``1 h 20 min``."""
    if seconds < 99.5:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if minutes else f"{hours:,} h"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as ``1 message`` or ``1,200 messages``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


#: The explanations of the blocks that are running, also in other threads.
_running: list[Callable[[], None]] = []


@contextmanager
def explain_interrupt(notify: Callable[[str], None], sentence: str) -> Iterator[None]:
    """Notify the user of a sentence if Ctrl-C ends the block, and raise it again."""
    explain = partial(notify, sentence)
    _running.append(explain)
    try:
        yield
    except KeyboardInterrupt:
        explain()
        raise
    finally:
        _running.remove(explain)


def explain_now() -> None:
    """Notify the user as at the end of the innermost block, if the process ends without it."""
    if _running:
        _running[-1]()
