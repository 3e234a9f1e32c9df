"""Guard rows, build indexes and read statistics, as the owner of a database."""

from collections.abc import Callable
from typing import Any

from reservoir_cli.errors import ReservoirError
from reservoir_cli.storage import properties
from reservoir_cli.storage.postgres import ann_index, schema, sizes
from reservoir_cli.storage.postgres.row_security import guard_statements
from reservoir_cli.storage.postgres.store import PostgresStore


def guard(store: PostgresStore) -> None:
    """Guard the rows of a store by partition, for users who are members; its owner sees all."""

    def apply() -> None:
        store.lift_timeouts()
        for statement in guard_statements():
            store._connection.execute(statement)

    store._run_write(apply)


def facts(store: PostgresStore) -> dict[str, Any]:
    """Return facts about a store that exist only on a server."""
    with store.snapshot():
        store.lift_timeouts()
        guarded = store._connection.number(
            "SELECT relrowsecurity::int FROM pg_class WHERE oid = 'messages'::regclass",
        )
        outside = {
            table: store._connection.number(f"SELECT count(*) FROM {table} WHERE NOT ({check})")
            for table, check in schema.RANGES.items()
        }
        indexes = store._connection.rows(
            "SELECT key, value FROM properties WHERE starts_with(key, ?) ORDER BY 1",
            [properties.of_partition(properties.INDEX, "")],
        )
    return {
        "guarded": bool(guarded),
        "outside_ranges": sum(outside.values()),
        **sizes.read_sizes(store),
        "indexes": [
            {"partition": key.partition(":")[2], "recall": ann_index.read(value).recall}
            for key, value in indexes
        ],
    }


def index(
    store: PostgresStore, partition: str, progress: Callable[[str, int, int], None]
) -> ann_index.Index:
    """Build an approximate index over the vectors of a partition.

    :raises ReservoirError: there is no vector in the partition.
    """
    active = store.active_model()
    if active is None:
        raise ReservoirError("nothing is embedded", hint="reservoir embed")
    return ann_index.build(store, partition, active[0], progress)


def drop_index(store: PostgresStore, partition: str) -> bool:
    """Drop the index of a partition, and return whether there was one."""
    return ann_index.drop(store, partition)
