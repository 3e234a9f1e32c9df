"""Say what an interrupt leaves behind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def explain_interrupt(notify: Callable[[str], None], sentence: str) -> Iterator[None]:
    """If Ctrl-C ends the work, say what was done of it."""
    try:
        yield
    except KeyboardInterrupt:
        notify(sentence)
        raise
