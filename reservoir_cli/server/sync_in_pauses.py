"""Import new messages of the settings' sources while no question is being answered."""

import threading
from collections.abc import Callable
from subprocess import Popen

from reservoir_cli.server import limits
from reservoir_cli.server.state import ServerState
from reservoir_cli.util.timeouts import SYNC_IN_PAUSES


class SyncTimer:
    """Starts a sync, in a process of its own, again and again in pauses, if sources are set."""

    def __init__(self, state: ServerState, start_sync: Callable[[], Popen[bytes]]) -> None:
        self._state, self._start_sync = state, start_sync
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._stopped = False

    def start(self) -> None:
        """Begin with a sync in the first pause."""
        self._wait(limits.PAUSE)

    def stop(self) -> None:
        """Start no more."""
        with self._lock:
            self._stopped = True
            if self._timer:
                self._timer.cancel()

    def run(self) -> float:
        """Sync if there is a pause and a source; return the seconds to the next attempt.

        It waits until the process has ended: nobody else does, and it would stay as a zombie.
        """
        if not self._state.config.sources:
            return SYNC_IN_PAUSES
        if not self._state.traffic.is_idle():
            return limits.PAUSE
        try:
            self._start_sync().wait()
        except OSError as error:
            self._state.log(f"sync cannot be started: {error.strerror}")
        return SYNC_IN_PAUSES

    def _wait(self, seconds: float) -> None:
        with self._lock:
            if not self._stopped:
                self._timer = threading.Timer(seconds, lambda: self._wait(self.run()))
                self._timer.daemon = True
                self._timer.start()
