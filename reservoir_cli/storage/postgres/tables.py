"""The tables of a store on a server and their distribution on a cluster, without psycopg."""

SCHEMA = "reservoir"
#: The tables that a cluster distributes by partition; ``EVERYWHERE`` has those it replicates.
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
