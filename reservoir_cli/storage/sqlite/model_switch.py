"""Another model's vectors, made beside the old ones until they are complete.

Readers go on with the active model. ``rebuilding`` lists the messages that the next model still
lacks, as ``pending`` does for the active one; new messages stand in both.
"""

import sqlite3

from reservoir_cli.messages import StoredMessage
from reservoir_cli.storage.sqlite import properties, reads

_AT_ONCE = 2_000
#: Stands behind the identity of a model whose vectors are made anew beside its own.
_AGAIN = "+"


def begin(connection: sqlite3.Connection, model_id: str, name: str) -> str:
    """Begin to build a model, or go on; what was built of yet another is given up.

    :returns: the identity under which its vectors are kept until it is active.
    """
    active = properties.get(connection, properties.MODEL_ID)
    kept_as = model_id + _AGAIN if model_id == active else model_id
    if properties.get(connection, properties.NEXT_ID) == kept_as:
        return kept_as
    give_up(connection)
    if former := properties.get(connection, properties.FORMER_ID):
        _clear_all(connection, former)
        properties.drop(connection, properties.FORMER_ID)
    properties.put(connection, properties.NEXT_ID, kept_as)
    properties.put(connection, properties.NEXT_NAME, name)
    connection.execute("INSERT INTO rebuilding SELECT id FROM messages")
    return kept_as


def give_up(connection: sqlite3.Connection) -> None:
    """Forget a model that is being built, and its vectors."""
    begun = properties.get(connection, properties.NEXT_ID)
    if begun is not None:
        connection.execute("DELETE FROM rebuilding")
        properties.drop(connection, properties.NEXT_ID, properties.NEXT_NAME)
        _clear_all(connection, begun)


def lacking(connection: sqlite3.Connection, limit: int) -> list[StoredMessage]:
    """Messages that the next model has not embedded, as they came in."""
    rows = connection.execute(
        f"""
        SELECT {reads.COLUMNS} FROM rebuilding r CROSS JOIN messages m ON m.id = r.message_id
        ORDER BY r.message_id LIMIT ?
        """,
        [limit],
    )
    return [reads.to_message(row) for row in rows]


def switch(connection: sqlite3.Connection, built: str) -> None:
    """Make the next model the active one; the old vectors are left to clear away.

    Messages that it lacks are pending from here on. Nothing happens if it was done already.

    :param built: the identity under which its vectors are kept.
    """
    name = properties.get(connection, properties.NEXT_NAME)
    if name is None or properties.get(connection, properties.NEXT_ID) != built:
        return
    former = properties.get(connection, properties.MODEL_ID)
    connection.execute("DELETE FROM pending")
    connection.execute("INSERT INTO pending SELECT message_id FROM rebuilding")
    connection.execute("DELETE FROM rebuilding")
    properties.drop(connection, properties.NEXT_ID, properties.NEXT_NAME)
    if built == f"{former}{_AGAIN}":
        _rename(connection, built, str(former))
    elif former is not None:
        properties.put(connection, properties.FORMER_ID, former)
    properties.put(connection, properties.MODEL_ID, built.removesuffix(_AGAIN))
    properties.put(connection, properties.MODEL_NAME, name)


def _rename(connection: sqlite3.Connection, built: str, model_id: str) -> None:
    """The new vectors of a model take the place of its old ones."""
    for table in ("embeddings", "vector_chunks"):
        connection.execute(f"DELETE FROM {table} WHERE model_id = ?", [model_id])
        connection.execute(f"UPDATE {table} SET model_id = ? WHERE model_id = ?", [model_id, built])


def clear_away(connection: sqlite3.Connection) -> bool:
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


def _clear_all(connection: sqlite3.Connection, model_id: str) -> None:
    while _clear(connection, model_id):
        pass


def _clear(connection: sqlite3.Connection, model_id: str) -> bool:
    """Remove a portion of a model's vectors; whether there may be more."""
    connection.execute("DELETE FROM vector_chunks WHERE model_id = ?", [model_id])
    removed = connection.execute(
        """
        DELETE FROM embeddings WHERE rowid IN
        (SELECT rowid FROM embeddings WHERE model_id = ? LIMIT ?)
        """,
        [model_id, _AT_ONCE],
    ).rowcount
    return removed == _AT_ONCE
