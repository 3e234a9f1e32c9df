"""The properties of a store: a table of keys and texts.

The key of a partition's property ends with a colon and the partition's name: row security hides
it from members of a server who may not see the partition.
"""

from reservoir_cli.errors import StoreError
from reservoir_cli.storage.portable_sql import Connection

#: The model whose vectors are compared.
MODEL_ID, MODEL_NAME = "embedding_model_id", "embedding_model_name"
#: The next model, whose vectors are being built.
NEXT_ID, NEXT_NAME = "next_model_id", "next_model_name"
FORMER_ID = "former_model_id"  #: The former model, whose vectors are being deleted.
#: The dimensions of the active model's vectors, which every member's must have. On a server only.
DIMENSIONS = "embedding_dimensions"
FORGOTTEN_KEY = "forgotten_key"  #: The key of the fingerprints of forgotten messages.
#: Set while the file may still contain words of forgotten messages.
UNFINISHED = "unfinished_forgetting"
UNFINISHED_COPY = "unfinished_copy"  #: The source of an unfinished copy, and the last copied key.
INDEX = "index"  #: The description of a partition's approximate index. On a server only.


def of_partition(key: str, partition: str) -> str:
    """Return the key of a property of one partition."""
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
    """Set the value of a key unless it has one; the first of two writers wins.

    Without ON CONFLICT, for which a cluster locks the whole table; the second writer fails with a
    conflict, and its transaction runs again.
    """
    if get(connection, key) is None:
        connection.insert("properties", "key, value", [(key, value)])


def drop(connection: Connection, *keys: str) -> None:
    """Delete keys."""
    for key in keys:
        connection.execute("DELETE FROM properties WHERE key = ?", [key])


def unfinished_copy_error(mark: str, location: str) -> StoreError:
    """Return the error for a store that is an unfinished copy."""
    import json
    from shlex import quote

    try:
        source = quote(str(json.loads(mark)["source"]))
    except (ValueError, TypeError, LookupError):  # a damaged value
        source = "SOURCE"
    return StoreError(
        f"the store {location} is a copy that is not finished",
        hint=f"reservoir db copy {source} {quote(location)} resumes it",
    )


def refuse_unfinished(mark: str | None, location: str) -> None:
    """Refuse to write to or copy a store that is an unfinished copy."""
    if mark is not None:
        raise unfinished_copy_error(mark, location)
