"""Reload the settings of a long-running program when their file changes."""

import time
from collections.abc import Callable
from threading import Lock

from reservoir_cli.errors import ReservoirError
from reservoir_cli.settings import config
from reservoir_cli.settings.config import Config

#: Many editors empty a file before they write it. For so long, in nanoseconds, an empty file may be
#: one that is being written.
EMPTY_WHILE_WRITTEN = 1_000_000_000


class LiveConfig:
    """The current settings; if their file is missing or invalid, the previous ones stay in force.

    :param check: raises an error if new settings cannot be used.
    """

    def __init__(
        self,
        initial: Config,
        log: Callable[[str], None],
        check: Callable[[Config], object] = lambda _: None,
    ) -> None:
        self._config, self._log, self._check = initial, log, check
        self._lock, self._last_state = Lock(), self._file_state()

    def current(self) -> Config:
        """Return the settings, after reading the file again if it has changed."""
        state = self._file_state()
        if state != self._last_state and not _is_being_written(state):
            with self._lock:
                if state != self._last_state:
                    self._reload()
                    self._last_state = state  # until now, other threads wait for the new settings
        return self._config

    def _file_state(self) -> tuple[int, int, int] | None:
        """Return the file's times, size and inode, to detect changes; ``None`` if it is missing."""
        try:
            status = self._config.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _reload(self) -> None:
        try:
            new = config.load(self._config.path, self._config.flags)
            self._check(new)
        except ReservoirError as error:
            self._log(f"the settings stay as they are: {error.message}")
        else:
            self._config = new


def _is_being_written(state: tuple[int, int, int] | None) -> bool:
    if state is None:
        return False
    modified, size, _ = state
    return size == 0 and 0 <= time.time_ns() - modified < EMPTY_WHILE_WRITTEN
