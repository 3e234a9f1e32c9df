"""What the owner of a database does: guard rows, spread tables over a cluster, build indexes."""

from collections.abc import Callable
from typing import Any

from reservoir_cli.errors import ReservoirError
from reservoir_cli.store.postgres import nearest, queries, schema
from reservoir_cli.store.postgres.connection import errors
from reservoir_cli.store.postgres.store import PostgresStore

#: The role that a user of a guarded store is given.
MEMBER = "reservoir_member"


def guarding() -> list[str]:
    """The statements that let a user see the partitions only that ``members`` names for them."""
    name = schema.SCHEMA
    found = [
        f"DO $$ BEGIN CREATE ROLE {MEMBER} NOLOGIN; "
        "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$",
        f"GRANT USAGE ON SCHEMA {name} TO {MEMBER}",
        f"GRANT SELECT ON {name}.migrations, {name}.members TO {MEMBER}",
        f"GRANT SELECT, INSERT, UPDATE ON {name}.properties TO {MEMBER}",
        f"GRANT DELETE ON {name}.properties TO {MEMBER}",
        f"GRANT SELECT, INSERT ON {name}.forgotten TO {MEMBER}",
        f"ALTER TABLE {name}.members ENABLE ROW LEVEL SECURITY",
        f"DROP POLICY IF EXISTS own_rows ON {name}.members",
        f"CREATE POLICY own_rows ON {name}.members FOR SELECT TO {MEMBER} "
        "USING (member = current_user)",
    ]
    for table in schema.SPREAD:
        found += [
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name}.{table} TO {MEMBER}",
            f"ALTER TABLE {name}.{table} ENABLE ROW LEVEL SECURITY",
            f"DROP POLICY IF EXISTS own_partitions ON {name}.{table}",
            f"CREATE POLICY own_partitions ON {name}.{table} TO {MEMBER} USING (partition IN "
            f"(SELECT m.partition FROM {name}.members m WHERE m.member = current_user))",
        ]
    return found


def guard(store: PostgresStore) -> None:
    """Guard the rows of a store by partition, for users who are members; its owner sees all."""

    def apply() -> None:
        for statement in guarding():
            store._connection.execute(statement.encode())

    store._written(apply)


def sharding() -> list[str]:
    """The statements that spread a store over a Citus cluster, by partition."""
    name = schema.SCHEMA
    whole = [f"SELECT create_reference_table('{name}.{table}');" for table in schema.EVERYWHERE]
    first, *others = schema.SPREAD
    return [
        "CREATE EXTENSION IF NOT EXISTS citus;",
        *whole,
        f"SELECT create_distributed_table('{name}.{first}', 'partition');",
        *(
            f"SELECT create_distributed_table('{name}.{table}', 'partition', "
            f"colocate_with => '{name}.{first}');"
            for table in others
        ),
    ]


def facts(store: PostgresStore) -> dict[str, Any]:
    """What the server says of a store beyond what any store says."""
    with store.snapshot():
        guarded = queries.number(
            store._connection,
            "SELECT relrowsecurity::int FROM pg_class WHERE oid = 'messages'::regclass",
        )
        indexes = queries.rows(
            store._connection,
            "SELECT key, value FROM properties WHERE starts_with(key, 'index:') ORDER BY 1",
        )
    return {
        "guarded": bool(guarded),
        "indexes": [
            {"partition": key.partition(":")[2], "recall": nearest.read(value).recall}
            for key, value in indexes
        ],
    }


def index(
    store: PostgresStore, partition: str, progress: Callable[[str, int, int], None]
) -> nearest.Index:
    """Build an approximate index on the vectors of a partition.

    :raises ReservoirError: there is no vector in the partition.
    """
    active = store.active_model()
    if active is None:
        raise ReservoirError("nothing is embedded", hint="reservoir embed")
    with store._lock, errors(store.location):
        return nearest.build(store._connection, partition, active[0], progress)


def drop_index(store: PostgresStore, partition: str) -> bool:
    """Remove it; whether there was one."""
    with store._lock, errors(store.location):
        return nearest.drop(store._connection, partition)
