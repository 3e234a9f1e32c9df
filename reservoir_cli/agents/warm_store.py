"""Keep a store open between calls, until its owner closes it."""

import gc
from collections.abc import Callable
from contextlib import suppress

from reservoir_cli.errors import ReservoirError
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings.paths import file_identity

#: Opens the store of the settings; takes keywords of :meth:`Reservoir.open`.
Opener = Callable[..., Reservoir]


class WarmStore:
    """A store that is opened when it is needed, and stays open. Not thread-safe."""

    def __init__(self, open_store: Callable[[bool], Reservoir]) -> None:
        self._open_store = open_store
        self._identity: tuple[int, int] | None = None
        self.reservoir: Reservoir | None = None  #: The store, while it is open.

    def open(self, *, create: bool) -> Reservoir:
        """Return the store; reopen it if its file was removed, replaced or missing."""
        if self.reservoir:
            identity = file_identity(self.reservoir.location)
            if identity != self._identity or (create and identity is None):
                self.release()
        if self.reservoir is None:
            self.reservoir = self._open_store(create)
            self._identity = file_identity(self.reservoir.location)
        return self.reservoir

    def close(self) -> None:
        """Close the store; the next call reopens it."""
        reservoir, self.reservoir = self.reservoir, None
        if reservoir:
            with suppress(ReservoirError):
                reservoir.close()

    def release(self) -> None:
        """Close the store, and free the memory of its model."""
        if self.reservoir:
            self.close()
            gc.unfreeze()
            gc.collect()  # the reservoir's objects form reference cycles
