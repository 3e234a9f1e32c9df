"""Open the store at a location; for use, refuse an unfinished copy, and fix permissions."""

import os
from collections.abc import Callable
from contextlib import suppress

from reservoir_cli.errors import StoreError
from reservoir_cli.settings import paths
from reservoir_cli.settings.store_locations import check_location, is_on_a_server
from reservoir_cli.storage import properties
from reservoir_cli.storage.sqlite.store import SqliteStore
from reservoir_cli.storage.store import Store
from reservoir_cli.util.private_files import restrict_permissions
from reservoir_cli.util.shared_folders import describe_shared_folder
from reservoir_cli.util.timeouts import LOCKED_STORE

#: Suffixes of SQLite's files beside a store, which messages leave out.
_COMPANIONS = ("-wal", "-shm", "-journal")


def open_store(location: str, *, create: bool = True, patience: float = LOCKED_STORE) -> Store:
    """Open the store at a path or URL, and create it if it does not exist."""
    check_location(location)
    if not is_on_a_server(location):
        return SqliteStore(location, create=create, patience=patience)
    from reservoir_cli.storage.postgres.store import PostgresStore  # it needs psycopg

    store = PostgresStore(location, patience=patience)
    try:
        if store.server.schema is not None or create:
            store.prepare()
            return store
    except BaseException:
        store.close()
        raise
    store.close()
    empty = SqliteStore(":memory:", create=False, patience=patience)
    empty.location, empty.read_only = store.location, store.read_only
    return empty


def open_for_use(
    location: str, *, create: bool, patience: float, notify: Callable[[str], None]
) -> Store:
    """Open a store; open an unfinished copy read-only, and report it."""
    is_new = create and not os.path.exists(os.path.expanduser(location))
    store = open_store(location, create=create, patience=patience)
    if is_new and store.files() and (shared := describe_shared_folder(store.files()[0])):
        notify(": ".join(shared))
    mark = None
    with suppress(StoreError):  # later reads report damage
        mark = store.get_property(properties.UNFINISHED_COPY)
    if mark is not None:
        problem = properties.unfinished_copy_error(mark, store.location)
        if create:
            store.close()
            raise problem
        store.read_only = True
        notify(f"{problem.message}: {problem.hint}")
    if fixed := [path.name for path in restrict_permissions(paths.private_files(store.files()))]:
        names = [name for name in fixed if not name.endswith(_COMPANIONS)] or fixed[:1]
        verb = "was" if len(names) == 1 else "were"
        notify(f"fixed permissions: {', '.join(names)} {verb} readable by other users")
    return store
