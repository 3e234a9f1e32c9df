"""Let work that nobody waits for wait for a pause between questions.

Storing and embedding what was said takes as long as answering a question. Python runs one thread at
a time, so beside a question both would take longer.
"""

import threading
import time
from collections import Counter
from enum import Enum

#: Seconds without a question that make a pause, and seconds after which work waits no longer.
PAUSE, MOST = 0.1, 2.0


class Go(Enum):
    """Why work begins."""

    PAUSE = "no question is being answered"
    LATE = "it has waited long enough"
    URGENT = "somebody waits for work behind it"


class Traffic:
    """What a server is being asked, by the thread that answers.

    :ivar turn: held by the thread that does work for which nobody waits: beside a question there is
        one at most.
    """

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self._changed = threading.Condition()
        self._asked: Counter[object] = Counter()
        self._last = self._too_late = float("-inf")

    def begin(self, thread: object) -> None:
        """Count a question that a thread is to answer."""
        with self._changed:
            self._asked[thread] += 1
            self._changed.notify_all()

    def end(self, thread: object) -> None:
        """Count a question that was answered."""
        with self._changed:
            self._asked[thread] -= 1
            self._last = time.monotonic()

    def is_idle(self) -> bool:
        """Return whether there is a pause now."""
        with self._changed:
            return not self._asked.total() and self._last + PAUSE <= time.monotonic()

    def wait(self, thread: object, since: float) -> Go:
        """Wait for a pause; once work has waited for long, all that came before it goes, too.

        :param thread: the one that waits.
        :param since: when the work came, in seconds of the monotonic clock.
        """
        with self._changed:
            while True:
                now = time.monotonic()
                if self._asked[thread]:
                    return Go.URGENT
                if since + MOST <= now:
                    self._too_late = now
                if since <= self._too_late:
                    return Go.LATE
                pause = now + PAUSE if self._asked.total() else self._last + PAUSE
                if pause <= now:
                    return Go.PAUSE
                self._changed.wait(min(pause, since + MOST) - now)
