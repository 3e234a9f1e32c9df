"""What a store knows of itself: one text a key.

What is about one partition has its name behind a colon: who may not see that partition, does not
see it either.
"""

from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.sqlite.properties import (
    FORGOTTEN_KEY,
    FORMER_ID,
    INDEX,
    MODEL_ID,
    MODEL_NAME,
    NEXT_ID,
    NEXT_NAME,
    UNFINISHED,
)

#: How long the vectors of the active model are: a member's are to be of that length.
DIMENSIONS = "embedding_dimensions"


def of_partition(key: str, partition: str) -> str:
    """The key of what is about one partition."""
    return f"{key}:{partition}"


def get(connection: Connection, key: str) -> str | None:
    """The value of a key; ``None`` if it has none."""
    row = connection.execute("SELECT value FROM properties WHERE key = %s", [key]).fetchone()
    return row[0] if row else None


def put(connection: Connection, key: str, value: str) -> None:
    """Give a key its value."""
    connection.execute(
        """
        INSERT INTO properties (key, value) VALUES (%s, %s)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value
        """,
        [key, value],
    )


def put_first(connection: Connection, key: str, value: str) -> None:
    """Give a key its value if it has none: of two who do so at once, the first one's holds."""
    connection.execute(
        "INSERT INTO properties (key, value) VALUES (%s, %s) ON CONFLICT (key) DO NOTHING",
        [key, value],
    )


def drop(connection: Connection, *keys: str) -> None:
    """Take keys away."""
    connection.execute("DELETE FROM properties WHERE key = ANY(%s)", [list(keys)])


__all__ = [
    "DIMENSIONS",
    "FORGOTTEN_KEY",
    "FORMER_ID",
    "INDEX",
    "MODEL_ID",
    "MODEL_NAME",
    "NEXT_ID",
    "NEXT_NAME",
    "UNFINISHED",
    "drop",
    "get",
    "of_partition",
    "put",
    "put_first",
]
