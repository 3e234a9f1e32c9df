"""What can be done with the database of a store itself: its state, upgrades, copies, indexes."""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reservoir_cli.errors import StoreError, UsageError
from reservoir_cli.settings.location import is_on_a_server
from reservoir_cli.storage import replicate
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.factory import open_store
from reservoir_cli.storage.records import Progress
from reservoir_cli.storage.unfinished import UNFINISHED_COPY

if TYPE_CHECKING:
    from reservoir_cli.storage.postgres.store import PostgresStore

#: How many partitions the status of a store names.
_LARGEST = 10


@dataclass(frozen=True, slots=True)
class EmbeddingState:
    """By which models a store is embedded.

    :param active: name of the model whose embeddings are compared.
    :param next: name of the model that is being built beside it.
    :param missing: messages without embeddings of the next model.
    """

    active: str | None
    next: str | None = None
    missing: int = 0


def embedding_state(store: Store) -> EmbeddingState:
    """Return by which models a store is embedded."""
    with store.snapshot():
        active, begun = store.active_model(), store.next_model()
        name = active[1] if active else None
        if begun is None:
            return EmbeddingState(name)
        return EmbeddingState(name, begun[1], store.count_unembedded(model=begun[0]))


def status(store: Store) -> dict[str, Any]:
    """Return what keeps a store, how large it is, and what it holds: ``db status --json``."""
    size = store.size()
    facts: dict[str, Any] = {
        "location": store.location,
        "engine": store.engine() if size is not None else None,
        "bytes": size,
        "read_only": store.read_only,
        "unfinished_copy": store.get_property(UNFINISHED_COPY) is not None,
        "store": store.holdings(),
        "partitions": _largest_partitions(store),
    }
    if not store.files() and size is not None:
        from reservoir_cli.storage.postgres import admin

        facts |= admin.facts(_on_server(store))
    return facts


def _largest_partitions(store: Store) -> list[dict[str, Any]]:
    """Return the partitions with the most messages."""
    counts = Counter[str]()
    for partition, _, messages in store.places():
        counts[partition] += messages
    return [
        {"partition": partition, "messages": messages}
        for partition, messages in counts.most_common(_LARGEST)
    ]


def guard(store: Store) -> None:
    """Let users of a server see their partitions only.

    :raises UsageError: the store is not on a server.
    """
    server = _on_server(store)
    from reservoir_cli.storage.postgres import admin

    admin.guard(server)


def copy(source: str, target: str, progress: Progress) -> dict[str, int]:
    """Copy a whole store into an empty one, or resume an interrupted copy, and compare the two.

    :returns: what was copied, by its kind.
    :raises ReservoirError: there is no source, the target holds something else, or they differ.
    """
    from reservoir_cli.storage.sqlite.publishing import check_count

    with closing(open_store(source, create=False)) as old:
        if old.size() is None:
            raise StoreError(
                f"there is no store at {old.location}",
                hint="reservoir db status says where yours is",
            )
        with closing(open_store(target)) as new:
            copied = replicate.copy(old, new, progress)
    check_count(target, copied["messages"])
    return copied


def shard_statements() -> list[str]:
    """Return the statements that spread a store over the machines of a Citus cluster."""
    from reservoir_cli.storage.postgres import tables

    return tables.sharding()


def build_index(store: Store, partition: str, progress: Progress) -> float:
    """Build an approximate index on the embeddings of a partition.

    :returns: which share of the nearest embeddings it finds.
    :raises UsageError: the store is not on a server.
    """
    server = _on_server(store)
    from reservoir_cli.storage.postgres import admin

    return admin.index(server, partition, progress).recall


def drop_index(store: Store, partition: str) -> bool:
    """Remove the index of a partition; return whether there was one.

    :raises UsageError: the store is not on a server.
    """
    server = _on_server(store)
    from reservoir_cli.storage.postgres import admin

    return admin.drop_index(server, partition)


def _on_server(store: Store) -> "PostgresStore":
    """Return a store as one on a server.

    :raises UsageError: it is in a file, or not there yet.
    """
    if not is_on_a_server(store.location):
        raise UsageError(
            f"{store.location} is a file: this is for a store on a server",
            hint="name the server before the command: --db postgresql://USER@HOST/DATABASE",
        )
    from reservoir_cli.storage.postgres.store import PostgresStore

    if not isinstance(store, PostgresStore):
        raise UsageError(
            f"there is no store at {store.location} yet", hint="reservoir db migrate makes it"
        )
    return store
