"""Open a store for use: refuse an unfinished copy, and fix permissions of its files."""

from collections.abc import Callable
from contextlib import suppress

from reservoir_cli.errors import StoreError
from reservoir_cli.settings import paths
from reservoir_cli.storage import unfinished_copy
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.factory import open_store
from reservoir_cli.util.private_files import restrict_permissions

#: Files of SQLite beside a store, which need not be named.
_BESIDE = ("-wal", "-shm", "-journal")


def open_for_use(
    location: str, *, create: bool, patience: float, notify: Callable[[str], None]
) -> Store:
    """Open a store; an unfinished copy is opened for reading only, and reported.

    :param create: create the store if it does not exist.
    :param patience: seconds to wait while others write.
    :raises StoreError: it cannot be opened, or is to be written to and is an unfinished copy.
    """
    store = open_store(location, create=create, patience=patience)
    mark = None
    with suppress(StoreError):  # damage is reported by the read that meets it
        mark = store.get_property(unfinished_copy.UNFINISHED_COPY)
    if mark is not None:
        problem = unfinished_copy.unfinished_copy_error(mark, store.location)
        if create:
            store.close()
            raise problem
        store.read_only = True
        notify(f"{problem.message}: {problem.hint}")
    _fix_permissions(store, notify)
    return store


def _fix_permissions(store: Store, notify: Callable[[str], None]) -> None:
    fixed = restrict_permissions(paths.private_files(store.files()))
    if fixed:
        names = [path.name for path in fixed if not path.name.endswith(_BESIDE)]
        notify(f"others could read {', '.join(names or [fixed[0].name])}: now nobody but you can")
