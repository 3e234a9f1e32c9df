"""Store the exact vectors of passages, and compare the nearest messages by them.

The search has two steps: every passage is compared by its int8 codes (``vector_scan``), then the
nearest messages by their float32 vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.portable_sql import batches, decoding, pack, placeholders
from reservoir_cli.storage.sqlite import vector_blocks
from reservoir_cli.storage.sqlite.connection import Connection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: How many messages are compared again by their float32 vectors.
RESCORED = 200


def add(
    connection: Connection, partition: str, model_id: str, passages: Mapping[int, Sequence[Passage]]
) -> None:
    """Store passages, and add their messages to the vector blocks.

    :param passages: by the id of their message.
    """
    import numpy as np

    columns = 'message_id, model_id, passage, start, "end", vector'
    rows = [
        (message_id, model_id, passage.number, passage.start, passage.end, pack(passage.vector))
        for message_id, of_message in passages.items()
        for passage in of_message
    ]
    connection.insert("embeddings", columns, rows)
    vectors = {
        message_id: np.stack([passage.vector for passage in of_message])
        for message_id, of_message in passages.items()
        if of_message
    }
    vector_blocks.append(connection, model_id, sorted(passages), vectors)


def compare(
    connection: Connection, model_id: str, ids: NDArray[np.int64], queries: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Compare messages by their float32 vectors, each by its best passage.

    :param ids: shape (n,), of embedded messages.
    :param queries: shape (vectors, dimensions).
    :returns: the cosines, shape (n, vectors).
    """
    import numpy as np

    cosines = np.full((len(ids), len(queries)), -1, np.float32)
    position_of = {message_id: position for position, message_id in enumerate(ids.tolist())}
    for batch in batches(ids.tolist()):
        rows = connection.execute(
            f"""
            SELECT message_id, vector FROM embeddings
            WHERE model_id = ? AND message_id IN ({placeholders(batch)})
            """,
            [model_id, *batch],
        ).fetchall()
        with decoding("vectors"):
            vectors = np.frombuffer(b"".join(row[1] for row in rows), "<f4")
            matrix = vectors.reshape(len(rows), queries.shape[1])
        np.maximum.at(cosines, [position_of[row[0]] for row in rows], matrix @ queries.T)
    return cosines
