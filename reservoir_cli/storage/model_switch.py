"""Build the vectors of a new model beside the active one's, and switch when they are complete.

Readers keep using the active model. The table ``rebuilding`` lists the messages that the next
model has not embedded yet, as ``pending`` does for the active one; new messages are in both.
"""

from reservoir_cli.errors import ReservoirError
from reservoir_cli.storage import properties
from reservoir_cli.storage.portable_sql import Connection

_AT_ONCE = 2_000
#: The suffix of the active model's identity for a second set of its vectors being built.
_AGAIN = "+"


def read_model(connection: Connection, identity: str, name: str) -> tuple[str, str] | None:
    """Return (identity, name) of a model, given the keys of its two properties."""
    rows = connection.execute(
        "SELECT key, value FROM properties WHERE key IN (?, ?)", [identity, name]
    )
    values = dict(rows.fetchall())
    return (values[identity], values[name]) if len(values) == 2 else None


def waiting_table(connection: Connection, model_id: str) -> str:
    """Return the table of messages that a model has not embedded yet.

    :raises ReservoirError: the model is neither the active nor the next one any more.
    """
    if model_id == properties.get(connection, properties.NEXT_ID):
        return "rebuilding"
    if properties.get(connection, properties.MODEL_ID) in (None, model_id):
        return "pending"
    raise ReservoirError(
        "the model of this store was changed meanwhile", hint="run the command again"
    )


def begin(connection: Connection, model_id: str, name: str) -> str:
    """Begin or resume building a model; the vectors of any other unfinished model are deleted.

    :returns: the identity under which its vectors are stored until it is active.
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
    """Delete the next model and its vectors."""
    connection.lock(None)
    model_id = properties.get(connection, properties.NEXT_ID)
    if model_id is not None:
        connection.execute("DELETE FROM rebuilding")
        properties.drop(connection, properties.NEXT_ID, properties.NEXT_NAME)
        _delete_vectors(connection, model_id)


def switch(connection: Connection, built: str) -> None:
    """Make the next model the active one; :func:`clear_former` deletes the old vectors later.

    Messages that it has not embedded become pending. Do nothing if it is no longer the next one.

    :param built: the identity under which its vectors are stored.
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
        # The same model: its new vectors replace the old ones.
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
