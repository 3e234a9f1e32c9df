"""Settings of a program that runs for long: the file is read again when it has changed."""

from collections.abc import Callable
from threading import Lock

from reservoir_cli.errors import ReservoirError
from reservoir_cli.settings import config
from reservoir_cli.settings.config import Config


class LiveConfig:
    """The settings as they are now.

    A file that is gone or cannot be read leaves the settings as they are.

    :param known: as read at the start.
    :param log: called with one line if the file cannot be read.
    :param check: raises an error for settings that cannot be used.
    """

    def __init__(
        self,
        known: Config,
        log: Callable[[str], None],
        check: Callable[[Config], object] = lambda _: None,
    ) -> None:
        self._config, self._log, self._check = known, log, check
        self._lock, self._seen = Lock(), self._state()

    def current(self) -> Config:
        """Return the settings."""
        state = self._state()
        if state != self._seen:
            with self._lock:
                if state != self._seen:
                    self._seen = state
                    self._read()
        return self._config

    def _state(self) -> tuple[int, int, int] | None:
        """Return what tells a file from the one before; ``None`` if there is none."""
        try:
            about = self._config.path.stat()
        except OSError:
            return None
        return about.st_mtime_ns, about.st_size, about.st_ino

    def _read(self) -> None:
        try:
            known = config.load(self._config.path, self._config.flags)
            self._check(known)
        except ReservoirError as error:
            self._log(f"the settings stay as they are: {error.message}")
        else:
            self._config = known
