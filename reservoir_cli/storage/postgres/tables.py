"""The tables of a store on a server and their distribution on a cluster, without psycopg."""

from reservoir_cli.storage.schema import TABLES

SCHEMA = "reservoir"
#: The tables that a cluster replicates; ``SPREAD`` has those it distributes by partition, the first
#: one being that which others refer to.
REPLICATED = ("properties", "tombstones", "members", "migrations")
SPREAD = (
    *(table for table in TABLES if table not in REPLICATED),
    "words",
    "embeddings",
    "partition_locks",
)


#: The functions that a cluster has on every machine, and the one that it calls where the partition
#: is.
_SHARED = ("own_partitions()", "is_active_model(text, integer)", "add_shared(text, text[], text)")
_DELETE = "delete_rows(text, text, json)"
_NESTED = "citus.allow_nested_distributed_execution = on"


def sharding_statements() -> list[str]:
    """Return the statements that distribute a store over a Citus cluster by partition."""
    reference = [f"SELECT create_reference_table('{SCHEMA}.{table}');" for table in REPLICATED]
    first, *others = SPREAD
    truncating = [
        f"SELECT truncate_local_data_after_distributing_table('{SCHEMA}.{table}');"
        for table in (*REPLICATED, *SPREAD)
    ]
    return [
        "CREATE EXTENSION IF NOT EXISTS citus;",
        *reference,
        # Policies and members call them on every machine, inside of other queries, where they read
        # the copies of that machine only.
        *(f"ALTER FUNCTION {SCHEMA}.{function} SET {_NESTED};" for function in (*_SHARED, _DELETE)),
        *(f"SELECT create_distributed_function('{SCHEMA}.{function}');" for function in _SHARED),
        "-- A user who may update a column could lock a whole table with this function.\n"
        "SELECT run_command_on_all_nodes('REVOKE EXECUTE ON FUNCTION "
        "pg_catalog.lock_shard_resources(integer, bigint[]) FROM PUBLIC');",
        f"SELECT create_distributed_table('{SCHEMA}.{first}', 'partition');",
        *(
            f"SELECT create_distributed_table('{SCHEMA}.{table}', 'partition', "
            f"colocate_with => '{SCHEMA}.{first}');"
            for table in others
        ),
        # In the transaction of its caller, on the machine of the partition.
        f"SELECT create_distributed_function('{SCHEMA}.{_DELETE}', 'of_partition', "
        f"colocate_with => '{SCHEMA}.{first}', force_delegation => true);",
        "-- Delete the rows that the tables had on the coordinator, forgotten text included.\n"
        + truncating[0],
        *truncating[1:],
    ]
