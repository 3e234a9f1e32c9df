"""What the owner of a database does: guard rows, spread tables over a cluster, build indexes."""

from collections.abc import Callable
from typing import Any

from reservoir_cli.errors import ReservoirError
from reservoir_cli.storage import properties
from reservoir_cli.storage.postgres import ann_index, schema
from reservoir_cli.storage.postgres.store import PostgresStore

#: The roles that a user of a guarded store is given, to read and write, or to read.
MEMBER, READER = "reservoir_member", "reservoir_reader"
_BOTH = f"{MEMBER}, {READER}"

#: The partitions of who asks. A function, not a sub-select: no policy of a cluster may have one.
_OWN = f"ANY ({schema.SCHEMA}.own_partitions())"
#: What a member may be the first to write, and only so, and nobody but the owner changes.
_FIRST = (
    f"key IN ('{properties.MODEL_ID}', '{properties.MODEL_NAME}') "
    f"OR (key = '{properties.FORGOTTEN_KEY}' AND value ~ '^[0-9a-f]{{64}}$') "
    f"OR (key = '{properties.DIMENSIONS}' AND value ~ '^[1-9][0-9]{{0,4}}$')"
)
#: Of what partition a property is; everything behind its first colon.
_OF_PARTITION = "substr(key, strpos(key, ':') + 1)"
#: What holds of the rows of a table beside their partition when a member writes them.
_WRITTEN = {
    "embeddings": f"{schema.SCHEMA}.is_active_model(model_id, vector_dims(vector))",
}


def guarding() -> list[str]:
    """Return the statements that let a user see only the partitions ``members`` names for them."""
    name = schema.SCHEMA
    found = [
        # Who may not make roles may still guard a store when they are there.
        f"DO $$ BEGIN IF to_regrole('{role}') IS NULL THEN CREATE ROLE {role} NOLOGIN; END IF; "
        "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        for role in (MEMBER, READER)
    ]
    found += [
        f"GRANT USAGE ON SCHEMA {name} TO {_BOTH}",
        *(
            f"GRANT SELECT ON {name}.{table} TO {_BOTH}"
            for table in (*schema.EVERYWHERE, *schema.SPREAD)
        ),
        f"GRANT INSERT ON {name}.forgotten TO {MEMBER}",
        *_policies("members", own_rows=f"FOR SELECT TO {_BOTH} USING (member = current_user)"),
        # Earlier versions granted more.
        f"REVOKE UPDATE, DELETE ON {name}.properties FROM {MEMBER}",
        f"DROP POLICY IF EXISTS own ON {name}.properties",
        f"GRANT INSERT ON {name}.properties TO {MEMBER}",
        *_policies(
            "properties",
            shared=f"FOR SELECT TO {_BOTH} USING "
            f"(strpos(key, ':') = 0 OR {_OF_PARTITION} = {_OWN})",
            first=f"FOR INSERT TO {MEMBER} WITH CHECK ({_FIRST})",
        ),
    ]
    for table in schema.SPREAD:
        written = f" AND {_WRITTEN[table]}" if table in _WRITTEN else ""
        found += [
            f"GRANT INSERT, UPDATE, DELETE ON {name}.{table} TO {MEMBER}",
            *_policies(
                table,
                own_partitions=f"TO {_BOTH} USING (partition = {_OWN}) "
                f"WITH CHECK (partition = {_OWN}{written})",
            ),
        ]
    return found


def _policies(table: str, **policies: str) -> list[str]:
    """Guard the rows of a table by policies, in place of those of the same names."""
    place = f"{schema.SCHEMA}.{table}"
    found = [f"ALTER TABLE {place} ENABLE ROW LEVEL SECURITY"]
    for name, policy in policies.items():
        found += [
            f"DROP POLICY IF EXISTS {name} ON {place}",
            f"CREATE POLICY {name} ON {place} {policy}",
        ]
    return found


def guard(store: PostgresStore) -> None:
    """Guard the rows of a store by partition, for users who are members; its owner sees all."""

    def apply() -> None:
        for statement in guarding():
            store._connection.execute(statement)

    store._written(apply)


def sharding() -> list[str]:
    """Return the statements that spread a store over a Citus cluster, by partition."""
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
    """Return the facts about a store that only a server has."""
    with store.snapshot():
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
        "indexes": [
            {"partition": key.partition(":")[2], "recall": ann_index.read(value).recall}
            for key, value in indexes
        ],
    }


def index(
    store: PostgresStore, partition: str, progress: Callable[[str, int, int], None]
) -> ann_index.Index:
    """Build an approximate index on the vectors of a partition.

    :raises ReservoirError: there is no vector in the partition.
    """
    active = store.active_model()
    if active is None:
        raise ReservoirError("nothing is embedded", hint="reservoir embed")
    return ann_index.build(store, partition, active[0], progress)


def drop_index(store: PostgresStore, partition: str) -> bool:
    """Remove it; whether there was one."""
    return ann_index.drop(store, partition)
