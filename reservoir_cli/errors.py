"""Everything that can go wrong, as one tree.

    ReservoirError             1  the operation failed
    ├── UsageError             2  wrong name, value or combination of options
    ├── StoreError             3  the store cannot be opened, is newer, or is corrupt
    │   ├── StoreCorruptError  3  what it holds is not what was written
    │   └── StoreLockedError   4  the store stayed locked by another process
    └── ModelUnavailableError  5  the embedding model or token counter asked for is absent

The number is the exit code of the command line. Errors are raised where they are found
and shown once, in ``cli.main``. No error carries the text of a message.
"""


class ReservoirError(Exception):
    """An operation failed.

    :param message: one line that says what is wrong.
    :param hint: one line that says what to do, if there is something to do.
    """

    exit_code = 1
    kind = "failed"

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(ReservoirError):
    """The request itself is wrong: an unknown name, a wrong value, options that conflict."""

    exit_code = 2
    kind = "usage"


class StoreError(ReservoirError):
    """The store cannot be opened, was written by a newer version, or is corrupt."""

    exit_code = 3
    kind = "store"


class StoreCorruptError(StoreError):
    """What the store holds is not what was written."""

    #: The hint for it, where nothing better is known.
    WAY_OUT = (
        "reservoir doctor --repair mends it if it can; else a backup, or doctor --salvage FILE"
    )


class StoreLockedError(StoreError):
    """Another process kept the store locked for longer than we wait."""

    exit_code = 4
    kind = "locked"


class ModelUnavailableError(ReservoirError):
    """The embedding model or the token counter asked for is not on this machine."""

    exit_code = 5
    kind = "unavailable"
