"""The tables of a store on a server, by where a cluster keeps them. Nothing here needs psycopg."""

SCHEMA = "reservoir"
#: Tables that a cluster spreads by partition, those that every machine has whole.
SPREAD = (
    "messages",
    "words",
    "embeddings",
    "pending",
    "rebuilding",
    "synapses",
    "conversations",
    "context_runs",
    "summaries",
    "sources",
    "tags",
    "pins",
    "ledger",
    "ledger_messages",
)
EVERYWHERE = ("properties", "forgotten", "members", "migrations")


def sharding() -> list[str]:
    """Return the statements that spread a store over a Citus cluster, by partition."""
    whole = [f"SELECT create_reference_table('{SCHEMA}.{table}');" for table in EVERYWHERE]
    first, *others = SPREAD
    return [
        "CREATE EXTENSION IF NOT EXISTS citus;",
        *whole,
        f"SELECT create_distributed_table('{SCHEMA}.{first}', 'partition');",
        *(
            f"SELECT create_distributed_table('{SCHEMA}.{table}', 'partition', "
            f"colocate_with => '{SCHEMA}.{first}');"
            for table in others
        ),
    ]
