"""The type of the callbacks that report the progress of long work."""

from collections.abc import Callable

#: Called with the name of the work, the amount done, and the total (0: unknown).
Progress = Callable[[str, int, int], None]


def no_progress(_what: str, _done: int, _total: int) -> None:
    """Ignore progress."""
