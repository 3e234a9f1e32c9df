"""Another model's vectors, made beside the old ones until they are complete.

Readers go on with the active model. ``rebuilding`` lists the messages that the next model still
lacks, as ``pending`` does for the active one; new messages stand in both.
"""

from reservoir_cli.errors import ReservoirError
from reservoir_cli.storage import properties
from reservoir_cli.storage.portable_sql import Connection

_AT_ONCE = 2_000
#: Stands behind the identity of a model whose vectors are being rebuilt beside its own.
_AGAIN = "+"


def model(connection: Connection, identity: str, name: str) -> tuple[str, str] | None:
    """Return (identity, name) of the model that two properties name."""
    rows = connection.execute(
        "SELECT key, value FROM properties WHERE key IN (?, ?)", [identity, name]
    )
    values = dict(rows.fetchall())
    return (values[identity], values[name]) if len(values) == 2 else None


def waiting_table(connection: Connection, model_id: str) -> str:
    """Return the table of messages without vectors of a model.

    :raises ReservoirError: vectors of it are of no use, as of a model given up meanwhile.
    """
    if model_id == properties.get(connection, properties.NEXT_ID):
        return "rebuilding"
    if properties.get(connection, properties.MODEL_ID) in (None, model_id):
        return "pending"
    raise ReservoirError(
        "the model of this store was changed meanwhile", hint="run the command again"
    )


def begin(connection: Connection, model_id: str, name: str) -> str:
    """Begin to build a model, or go on; what was built of yet another is given up.

    :returns: the identity under which its vectors are kept until it is active.
    """
    connection.lock(None)
    active = properties.get(connection, properties.MODEL_ID)
    kept_as = model_id + _AGAIN if model_id == active else model_id
    if properties.get(connection, properties.NEXT_ID) == kept_as:
        return kept_as
    connection.execute("DELETE FROM rebuilding")
    for table in connection.vector_tables:
        condition = f"NOT ({connection.null_safe('model_id')})"
        connection.execute(f"DELETE FROM {table} WHERE {condition}", [active])
    properties.drop(connection, properties.FORMER_ID)
    properties.put(connection, properties.NEXT_ID, kept_as)
    properties.put(connection, properties.NEXT_NAME, name)
    connection.execute(
        f"""
        INSERT INTO rebuilding ({connection.message_key})
        SELECT {connection.key_of_message} FROM messages m
        """
    )
    return kept_as


def give_up(connection: Connection) -> None:
    """Delete a model that is being built, and its vectors."""
    connection.lock(None)
    begun = properties.get(connection, properties.NEXT_ID)
    if begun is not None:
        connection.execute("DELETE FROM rebuilding")
        properties.drop(connection, properties.NEXT_ID, properties.NEXT_NAME)
        _delete_vectors(connection, begun)


def switch(connection: Connection, built: str) -> None:
    """Make the next model the active one; the old vectors are left to clear away.

    Messages that it lacks are pending from here on. Nothing happens if it was done already.

    :param built: the identity under which its vectors are kept.
    """
    connection.lock(None)
    name = properties.get(connection, properties.NEXT_NAME)
    if name is None or properties.get(connection, properties.NEXT_ID) != built:
        return
    former = properties.get(connection, properties.MODEL_ID)
    connection.execute("DELETE FROM pending")
    connection.execute("INSERT INTO pending SELECT * FROM rebuilding")
    connection.execute("DELETE FROM rebuilding")
    properties.drop(connection, properties.NEXT_ID, properties.NEXT_NAME)
    if built == f"{former}{_AGAIN}":
        # The new vectors of a model take the place of its old ones.
        _delete_vectors(connection, str(former))
        for table in connection.vector_tables:
            connection.execute(
                f"UPDATE {table} SET model_id = ? WHERE model_id = ?", [former, built]
            )
    elif former is not None:
        properties.put(connection, properties.FORMER_ID, former)
    properties.put(connection, properties.MODEL_ID, built.removesuffix(_AGAIN))
    properties.put(connection, properties.MODEL_NAME, name)


def clear_former(connection: Connection) -> bool:
    """Delete a batch of the former model's vectors.

    :returns: whether there are more.
    """
    former = properties.get(connection, properties.FORMER_ID)
    if former is None:
        return False
    if _delete_batch(connection, former):
        return True
    properties.drop(connection, properties.FORMER_ID)
    return False


def _delete_vectors(connection: Connection, model_id: str) -> None:
    for table in connection.vector_tables:
        connection.execute(f"DELETE FROM {table} WHERE model_id = ?", [model_id])


def _delete_batch(connection: Connection, model_id: str) -> bool:
    """Delete a batch of a model's vectors; return whether there may be more."""
    embeddings, *derived = connection.vector_tables
    for table in derived:
        connection.execute(f"DELETE FROM {table} WHERE model_id = ?", [model_id])
    key = connection.message_key
    deleted = connection.execute(
        f"""
        DELETE FROM {embeddings} WHERE model_id = ?
        AND ({key}) IN (SELECT {key} FROM {embeddings} WHERE model_id = ? LIMIT ?)
        """,
        [model_id, model_id, _AT_ONCE],
    ).rowcount
    return deleted >= _AT_ONCE
