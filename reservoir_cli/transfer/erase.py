"""Delete messages permanently, so that none of their text remains in the store's files."""

from collections.abc import Sequence

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Key
from reservoir_cli.storage.base import Store
from reservoir_cli.util.progress import Progress


def forget(store: Store, keys: Sequence[Key], progress: Progress = lambda *_: None) -> None:
    """Delete messages and all data derived from them.

    Importing them again does not bring them back; a new message with the same text is stored.

    :raises ReservoirError: they are deleted, but a concurrent reader keeps their text in the
        store's files; the next command that opens the store removes it.
    """
    if not store.delete(keys, progress):
        raise text_remains_error(f"{len(keys):,} messages are deleted, but parts of their text")


def text_remains_error(what: str) -> ReservoirError:
    """Return the error for text that is deleted but not yet removed from the store's files."""
    return ReservoirError(
        f"{what} are still in the store's files: another program is reading the store, "
        "or the disk is full",
        hint="close that program or free disk space; then any reservoir command removes them",
    )
