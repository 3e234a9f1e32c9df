"""What a store knows of itself: one text a key."""

import sqlite3

#: The model whose vectors are compared.
MODEL_ID, MODEL_NAME = "embedding_model_id", "embedding_model_name"
#: The model whose vectors are being made beside them.
NEXT_ID, NEXT_NAME = "next_model_id", "next_model_name"
#: The model whose vectors are still to be removed.
FORMER_ID = "former_model_id"
#: What marks of forgotten messages are made with.
FORGOTTEN_KEY = "forgotten_key"
#: Something was forgotten, and the file may still hold its words.
UNFINISHED = "unfinished_forgetting"
#: What is told of the approximate index of a partition, which only a server has.
INDEX = "index"


def get(connection: sqlite3.Connection, key: str) -> str | None:
    """The value of a key; ``None`` if it has none."""
    row = connection.execute("SELECT value FROM properties WHERE key = ?", [key]).fetchone()
    return row[0] if row else None


def put(connection: sqlite3.Connection, key: str, value: str) -> None:
    """Give a key its value."""
    connection.execute("INSERT OR REPLACE INTO properties (key, value) VALUES (?, ?)", [key, value])


def drop(connection: sqlite3.Connection, *keys: str) -> None:
    """Take keys away."""
    connection.executemany("DELETE FROM properties WHERE key = ?", [(key,) for key in keys])
