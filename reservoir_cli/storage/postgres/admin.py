"""Guard rows, and read statistics and sizes, as the owner of a database."""

import os
from contextlib import suppress
from typing import Any

from reservoir_cli.errors import StoreError
from reservoir_cli.storage import properties
from reservoir_cli.storage.postgres import ann_index, schema
from reservoir_cli.storage.postgres.row_security import guard_statements
from reservoir_cli.storage.postgres.store import PostgresStore
from reservoir_cli.storage.postgres.tables import SCHEMA
from reservoir_cli.storage.postgres.transactions import (
    Transactions,
    wait_for_locks,
)
from reservoir_cli.storage.transactions import writing
from reservoir_cli.util import timeouts

_TABLES = f"""
    SELECT c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid) FROM pg_class c
    WHERE c.relnamespace = '{SCHEMA}'::regnamespace AND c.relkind = 'r'
    ORDER BY pg_total_relation_size(c.oid) DESC, 1
"""
#: A view of Citus; its sizes include the indexes.
_SHARDS = f"""
    FROM pg_catalog.citus_shards s JOIN pg_class c ON c.oid = s.table_name
    WHERE c.relnamespace = '{SCHEMA}'::regnamespace GROUP BY 1 ORDER BY 3 DESC, 1
"""
_BY_TABLE = f"SELECT c.relname, count(*), sum(s.shard_size)::bigint {_SHARDS}"
_BY_MACHINE = (
    f"SELECT s.nodename || ':' || s.nodeport, count(*), sum(s.shard_size)::bigint {_SHARDS}"
)


@writing
def guard(store: PostgresStore) -> None:
    """Guard the rows of a store by partition, for users who are members; its owner sees all."""
    store.lift_timeouts()
    store._connection.execute(wait_for_locks(timeouts.CHANGE_OF_TABLES))
    # Members only read it.
    properties.put_first(store._connection, properties.FORGOTTEN_KEY, os.urandom(32).hex())
    for statement in guard_statements(store.server.path, is_cluster=store.server.is_cluster):
        store._connection.execute(statement)


def facts(store: PostgresStore) -> dict[str, Any]:
    """Return facts about a store that exist only on a server."""
    with store.snapshot():
        store.lift_timeouts()
        guarded = store._connection.number(
            "SELECT relrowsecurity::int FROM pg_class WHERE oid = 'messages'::regclass"
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
        **read_sizes(store),
        "indexes": [
            {"partition": key.partition(":")[2], "recall": ann_index.read(value).recall}
            for key, value in indexes
        ],
    }


def read_sizes(store: Transactions) -> dict[str, list[dict[str, Any]]]:
    """Return the bytes of each table and, on a cluster, the shards and bytes of each machine."""
    if shards := _shards(store, _BY_TABLE):
        tables = [{"table": name, "shards": count, "bytes": size} for name, count, size in shards]
    else:
        tables = [
            {"table": name, "bytes": size, "index_bytes": indexes}
            for name, size, indexes in store._run_read(lambda: store._connection.rows(_TABLES))
        ]
    machines = [
        {"machine": name, "shards": count, "bytes": size}
        for name, count, size in (_shards(store, _BY_MACHINE) if shards else [])
    ]
    return {"tables": tables, "machines": machines}


def _shards(store: Transactions, statement: str) -> list[Any]:
    def read() -> list[Any]:
        has_citus = store._connection.number(
            "SELECT (to_regclass('pg_catalog.citus_shards') IS NOT NULL)::int"
        )
        return store._connection.rows(statement) if has_citus else []

    with suppress(StoreError):
        return store._run_read(read)
    return []
