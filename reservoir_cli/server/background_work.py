"""Delay background work until no question is being answered.

Python runs one thread at a time, so storing and embedding would slow down the question.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from reservoir_cli.server import limits


class StartReason(Enum):
    """Why background work starts."""

    PAUSE = "no question is being answered"
    LATE = "it has waited long enough"
    URGENT = "a question is queued behind it"


class Traffic:
    """Count the questions that each thread is answering."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._changed = threading.Condition()
        self._open_questions: Counter[object] = Counter()
        self._last = self._too_late = float("-inf")

    def begin(self, thread: object) -> None:
        """Record that a question was submitted to a thread."""
        with self._changed:
            self._open_questions[thread] += 1
            self._changed.notify_all()

    def end(self, thread: object) -> None:
        """Record that a thread has answered a question."""
        with self._changed:
            self._open_questions[thread] -= 1
            self._last = time.monotonic()
            self._changed.notify_all()

    def is_idle(self) -> bool:
        """Return whether no question is open, nor was a moment ago."""
        with self._changed:
            return (
                not self._open_questions.total() and self._last + limits.PAUSE <= time.monotonic()
            )

    def wait(self, thread: object, due: float) -> StartReason:
        """Wait for a pause, or until ``due``; that also releases all that falls due soon after."""
        with self._changed:
            while True:
                now = time.monotonic()
                if self._open_questions[thread]:
                    return StartReason.URGENT
                if due <= now:
                    self._too_late = now
                if due <= self._too_late + limits.MAX_DELAY:
                    return StartReason.LATE
                pause = (
                    now + limits.PAUSE
                    if self._open_questions.total()
                    else self._last + limits.PAUSE
                )
                if pause <= now:
                    return StartReason.PAUSE
                self._changed.wait(min(pause, due) - now)

    def give_way(self, thread: object, due: float) -> None:
        """Wait until ``due`` while a question is answered, unless one waits for this thread."""
        with self._changed:
            while self._open_questions.total() and not self._open_questions[thread]:
                if (seconds := due - time.monotonic()) <= 0:
                    return
                self._changed.wait(seconds)

    @contextmanager
    def take_turn(self) -> Iterator[None]:
        """Do background work alone, but begin after ``MAX_DELAY``: embedding may take long."""
        has_turn = self._turn.acquire(timeout=limits.MAX_DELAY)
        try:
            yield
        finally:
            if has_turn:
                self._turn.release()
