"""Forget messages for good: no word of them stays in the store's files."""

from collections.abc import Sequence

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Key
from reservoir_cli.storage.base import Store
from reservoir_cli.util.progress import Progress


def forget(store: Store, keys: Sequence[Key], progress: Progress = lambda *_: None) -> None:
    """Delete messages and everything that was made of them.

    Importing them again does not bring them back; saying the same words again does.

    :raises ReservoirError: they are gone, but whoever reads the store just now keeps their words
        in its files; the next command that opens the store finishes it.
    """
    if not store.delete(keys, progress):
        raise still_there(f"{len(keys):,} messages are gone, but words of them")


def still_there(what: str) -> ReservoirError:
    """Return the error for words that are deleted but not yet out of the files."""
    return ReservoirError(
        f"{what} are still in the store's files: another program is reading it, "
        "or the disk is full",
        hint="end that program, or make room; then any reservoir command finishes this",
    )
