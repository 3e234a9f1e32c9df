"""Open the store at a location."""

from reservoir_cli.settings.locations import check_location, is_on_a_server
from reservoir_cli.storage.sqlite.store import SqliteStore
from reservoir_cli.storage.store import Store
from reservoir_cli.util.time_limits import LOCKED_STORE


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
