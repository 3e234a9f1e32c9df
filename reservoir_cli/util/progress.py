"""The type of the callbacks that report the progress of long work."""

from collections.abc import Callable

#: Called with the name of the work, the amount done, and the total (0: unknown).
Progress = Callable[[str, int, int], None]


def report_megabytes(progress: Progress, done: int, total: int) -> None:
    """Report how many of a number of bytes have been read; below one MB without a number."""
    megabytes = total >> 20
    progress("MB read" if megabytes else "reading", done >> 20, megabytes)


def no_progress(_what: str, _done: int, _total: int) -> None:
    """Ignore progress."""
