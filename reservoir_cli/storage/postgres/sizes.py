"""Measure the size of a store on a server, by table, and on a cluster also by machine."""

from contextlib import suppress
from typing import Any

from reservoir_cli.errors import StoreError
from reservoir_cli.storage.postgres.tables import SCHEMA
from reservoir_cli.storage.postgres.transactions import Transactions

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
    """Return rows about shards; none without Citus or for a user who may not see them."""

    def read() -> list[Any]:
        has_citus = store._connection.number(
            "SELECT (to_regclass('pg_catalog.citus_shards') IS NOT NULL)::int"
        )
        return store._connection.rows(statement) if has_citus else []

    with suppress(StoreError):
        return store._run_read(read)
    return []
