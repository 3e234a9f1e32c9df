"""Explain to the user what an interrupted command leaves behind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def explain_interrupt(notify: Callable[[str], None], sentence: str) -> Iterator[None]:
    """Notify the user of a sentence if Ctrl-C ends the block, and raise it again."""
    try:
        yield
    except KeyboardInterrupt:
        notify(sentence)
        raise
