"""Explain to the user what an interrupted command leaves behind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

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
