"""How long work tells how far it is."""

from collections.abc import Callable

#: Called with what is being done, how much of it is done, and how much there is (0: unknown).
Progress = Callable[[str, int, int], None]


def no_progress(_what: str, _done: int, _total: int) -> None:
    """Report nothing."""
