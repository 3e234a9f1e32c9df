"""Another model's vectors on a server, made beside the old ones until they are complete."""

from reservoir_cli.storage.postgres import locks, properties
from reservoir_cli.storage.postgres.connection import Connection

_AT_ONCE = 2_000
#: Stands behind the identity of a model whose vectors are made anew beside its own.
_AGAIN = "+"


def begin(connection: Connection, model_id: str, name: str) -> str:
    """Begin to build a model, or go on; what was built of yet another is given up.

    :returns: the identity under which its vectors are kept until it is active.
    """
    locks.everything(connection)
    active = properties.get(connection, properties.MODEL_ID)
    kept_as = model_id + _AGAIN if model_id == active else model_id
    if properties.get(connection, properties.NEXT_ID) != kept_as:
        connection.execute("DELETE FROM rebuilding")
        # Of a model given up, of the former one, and of any that somebody left who did not see
        # every message.
        connection.execute("DELETE FROM embeddings WHERE model_id IS DISTINCT FROM %s", [active])
        properties.drop(connection, properties.FORMER_ID)
        properties.put(connection, properties.NEXT_ID, kept_as)
        properties.put(connection, properties.NEXT_NAME, name)
    connection.execute(
        """
        INSERT INTO rebuilding (partition, message_id)
        SELECT m.partition, m.id FROM messages m WHERE NOT EXISTS (
            SELECT 1 FROM embeddings e WHERE e.partition = m.partition
            AND e.message_id = m.id AND e.model_id = %s
        ) ON CONFLICT DO NOTHING
        """,
        [kept_as],
    )
    return kept_as


def give_up(connection: Connection) -> None:
    """Forget a model that is being built, and its vectors."""
    locks.everything(connection)
    begun = properties.get(connection, properties.NEXT_ID)
    if begun is not None:
        connection.execute("DELETE FROM rebuilding")
        properties.drop(connection, properties.NEXT_ID, properties.NEXT_NAME)
        _clear_all(connection, begun)


def switch(connection: Connection, built: str) -> None:
    """Make the next model the active one; the old vectors are left to clear away.

    Messages that it lacks are pending from here on. Nothing happens if it was done already.

    :param built: the identity under which its vectors are kept.
    """
    locks.everything(connection)
    name = properties.get(connection, properties.NEXT_NAME)
    if name is None or properties.get(connection, properties.NEXT_ID) != built:
        return
    former = properties.get(connection, properties.MODEL_ID)
    connection.execute("DELETE FROM pending")
    connection.execute("INSERT INTO pending SELECT partition, message_id FROM rebuilding")
    connection.execute("DELETE FROM rebuilding")
    properties.drop(connection, properties.NEXT_ID, properties.NEXT_NAME)
    if built == f"{former}{_AGAIN}":
        # The new vectors of a model take the place of its old ones.
        connection.execute("DELETE FROM embeddings WHERE model_id = %s", [former])
        connection.execute(
            "UPDATE embeddings SET model_id = %s WHERE model_id = %s", [former, built]
        )
    elif former is not None:
        properties.put(connection, properties.FORMER_ID, former)
    properties.put(connection, properties.MODEL_ID, built.removesuffix(_AGAIN))
    properties.put(connection, properties.MODEL_NAME, name)
    note_dimensions(connection)


def note_dimensions(connection: Connection) -> None:
    """Note how long the vectors of the active model are; while there are none, the first decide."""
    row = connection.execute(
        "SELECT vector_dims(vector) FROM embeddings WHERE model_id = %s LIMIT 1",
        [properties.get(connection, properties.MODEL_ID)],
    ).fetchone()
    if row is None:
        properties.drop(connection, properties.DIMENSIONS)
    else:
        properties.put(connection, properties.DIMENSIONS, str(row[0]))


def clear_away(connection: Connection) -> bool:
    """Remove a portion of the former model's vectors.

    :returns: whether there is more.
    """
    former = properties.get(connection, properties.FORMER_ID)
    if former is None:
        return False
    more = _clear(connection, former)
    if not more:
        properties.drop(connection, properties.FORMER_ID)
    return more


def _clear_all(connection: Connection, model_id: str) -> None:
    while _clear(connection, model_id):
        pass


def _clear(connection: Connection, model_id: str) -> bool:
    """Remove a portion of a model's vectors; whether there may be more."""
    removed = connection.execute(
        """
        DELETE FROM embeddings e USING (
            SELECT partition, message_id, model_id, passage FROM embeddings
            WHERE model_id = %s LIMIT %s
        ) t WHERE e.partition = t.partition AND e.message_id = t.message_id
        AND e.model_id = t.model_id AND e.passage = t.passage
        """,
        [model_id, _AT_ONCE],
    ).rowcount
    return removed == _AT_ONCE
