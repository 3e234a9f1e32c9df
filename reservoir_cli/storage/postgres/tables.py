"""The tables of a store on a server and their distribution on a cluster, without psycopg."""

from reservoir_cli.storage.schema import TABLES

SCHEMA = "reservoir"
#: The tables that a cluster replicates; ``SPREAD`` has those it distributes by partition, the first
#: one being that which others refer to.
EVERYWHERE = ("properties", "tombstones", "members", "migrations")
SPREAD = (*(table for table in TABLES if table not in EVERYWHERE), "words", "embeddings")


def sharding_statements() -> list[str]:
    """Return the statements that distribute a store over a Citus cluster by partition."""
    reference = [f"SELECT create_reference_table('{SCHEMA}.{table}');" for table in EVERYWHERE]
    first, *others = SPREAD
    return [
        "CREATE EXTENSION IF NOT EXISTS citus;",
        *reference,
        f"SELECT create_distributed_table('{SCHEMA}.{first}', 'partition');",
        *(
            f"SELECT create_distributed_table('{SCHEMA}.{table}', 'partition', "
            f"colocate_with => '{SCHEMA}.{first}');"
            for table in others
        ),
    ]
