"""What a store knows of itself: one text a key.

What is about one partition has its name behind a colon: a member of a guarded server who may not
see that partition does not see it either.
"""

from reservoir_cli.storage.portable_sql import Connection

#: The model whose vectors are compared.
MODEL_ID, MODEL_NAME = "embedding_model_id", "embedding_model_name"
#: The model whose vectors are being made beside them.
NEXT_ID, NEXT_NAME = "next_model_id", "next_model_name"
#: The model whose vectors are still to be removed.
FORMER_ID = "former_model_id"
#: The dimensions of the active model's vectors; a member's must have as many. On a server only.
DIMENSIONS = "embedding_dimensions"
#: The key of the fingerprints of forgotten messages.
FORGOTTEN_KEY = "forgotten_key"
#: Something was forgotten, and the file may still hold its words.
UNFINISHED = "unfinished_forgetting"
#: Describes the approximate index of a partition, which only a server has.
INDEX = "index"


def of_partition(key: str, partition: str) -> str:
    """Return the key of what is about one partition."""
    return f"{key}:{partition}"


def get(connection: Connection, key: str) -> str | None:
    """Return the value of a key; ``None`` if it has none."""
    row = connection.execute("SELECT value FROM properties WHERE key = ?", [key]).fetchone()
    return row[0] if row else None


def put(connection: Connection, key: str, value: str) -> None:
    """Set the value of a key."""
    connection.execute(
        """
        INSERT INTO properties (key, value) VALUES (?, ?)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value
        """,
        [key, value],
    )


def put_first(connection: Connection, key: str, value: str) -> None:
    """Set the value of a key that has none; of two writers the first one's holds."""
    connection.execute(
        "INSERT INTO properties (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
        [key, value],
    )


def drop(connection: Connection, *keys: str) -> None:
    """Delete keys."""
    for key in keys:
        connection.execute("DELETE FROM properties WHERE key = ?", [key])
