"""Manage the database of a store: status, upgrades, copies and indexes."""

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

from reservoir_cli.errors import StoreError, UsageError
from reservoir_cli.retrieval.embed_messages import Indexer
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.copying import copy_store
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.postgres import tables
from reservoir_cli.storage.properties import UNFINISHED_COPY
from reservoir_cli.storage.sqlite.care.replace_file import check_count
from reservoir_cli.storage.store import Store
from reservoir_cli.util.progress import Progress
from reservoir_cli.util.timeouts import OWN_FILE

if TYPE_CHECKING:
    from reservoir_cli.maintenance.calibration import Calibration

_LARGEST = 10  #: Number of partitions in the status of a store.


class Database:
    """The database of a store in a file; see ``ServerDatabase`` for one on a server."""

    def __init__(self, store: Store, config: Config, indexer: Indexer, progress: Progress) -> None:
        self._store, self._config = store, config
        self._indexer, self._progress = indexer, progress

    def status(self) -> dict[str, Any]:
        """Return the engine, size and contents of the store: ``db status --json``."""
        store = self._store
        size = store.size()
        return {
            "location": store.location,
            "engine": store.engine() if size is not None else None,
            "bytes": size,
            "read_only": store.read_only,
            "unfinished_copy": store.get_property(UNFINISHED_COPY) is not None,
            "store": store.holdings(),
            "partitions": _largest_partitions(store),
        }

    def is_damaged(self) -> bool:
        """Return whether the store or its derived data is damaged."""
        return bool(self._store.problems())

    def migrate(self, *, rls: bool = False) -> str:
        """Set up row-level security if asked; return the engine and its schema number."""
        if rls:
            self._guard()
        return self._store.engine()

    def _guard(self) -> None:
        raise self._needs_server()

    def build_index(self, partition: str) -> float:
        """Build an approximate index over the embeddings of a partition; return its recall."""
        raise self._needs_server()

    def drop_index(self, partition: str) -> bool:
        """Remove the index of a partition; return whether there was one."""
        raise self._needs_server()

    def calibrate(self) -> "Calibration":
        """Measure the recall floor of the embedding model on this store, and keep it there."""
        from reservoir_cli.maintenance.calibration import calibrate  # loads numpy

        return calibrate(self._store, self._config, self._indexer.embedder(), self._progress)

    def _needs_server(self) -> UsageError:
        return UsageError(
            f"{self._store.location} is a file: this needs a store on a server",
            hint="name the server before the command: --db postgresql://USER@HOST/DATABASE",
        )


def copy(source: str, target: str, progress: Progress) -> dict[str, int]:
    """Copy a whole store into an empty one, or resume an interrupted copy; verify the result."""
    with closing(_opened(source)) as old:
        with closing(open_store(target)) as new:
            copied = copy_store.copy(old, new, progress)
    with closing(open_store(target, create=False, patience=OWN_FILE)) as new:
        check_count(new, copied["messages"])
    return copied


def check_copy(source: str, target: str) -> dict[str, int]:
    """Check that a whole store can be copied into another, and write nothing."""
    with closing(_opened(source)) as old, closing(open_store(target, create=False)) as new:
        return copy_store.check(old, new)


def _opened(source: str) -> Store:
    store = open_store(source, create=False)
    if store.size() is None:
        store.close()
        raise StoreError(
            f"there is no store at {store.location}", hint="reservoir db status says where yours is"
        )
    return store


def shard_statements() -> list[str]:
    """Return the SQL statements that distribute a store over a Citus cluster."""
    return tables.sharding_statements()


def _largest_partitions(store: Store) -> list[dict[str, Any]]:
    counts = Counter[str]()
    for partition, _, messages in store.channels():
        counts[partition] += messages
    return [
        {"partition": partition, "messages": messages}
        for partition, messages in counts.most_common(_LARGEST)
    ]
