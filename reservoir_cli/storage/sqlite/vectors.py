"""Vectors in the store: packing them, and comparing the nearest with a question.

The comparison is exact search in two steps: every passage by its int8 codes (``scan``), then the
nearest messages by their float32 vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reservoir_cli.storage.portable_sql import batches, decoding, pack, placeholders
from reservoir_cli.storage.records import Passage
from reservoir_cli.storage.sqlite import vector_blocks
from reservoir_cli.storage.sqlite.connection import Connection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: How many messages are compared a second time, by their whole vectors.
RESCORED = 200


def add(
    connection: Connection,
    partition: str,
    model_id: str,
    passages: Mapping[int, Sequence[Passage]],
) -> None:
    """Store passages by their message, and pack what ranking reads of it."""
    import numpy as np

    columns = 'message_id, model_id, passage, start, "end", vector'
    rows = [
        (number, model_id, each.number, each.start, each.end, pack(each.vector))
        for number, of_message in passages.items()
        for each in of_message
    ]
    connection.insert("embeddings", columns, rows)
    vectors = {
        number: np.stack([each.vector for each in of_message])
        for number, of_message in passages.items()
        if of_message
    }
    vector_blocks.append(connection, model_id, sorted(passages), vectors)


def exact(
    connection: Connection,
    model_id: str,
    ids: NDArray[np.int64],
    asked: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Compare messages by their whole vectors, each by its best passage.

    :param ids: shape (n,), of messages that have vectors.
    :param asked: shape (vectors, dimensions).
    :returns: shape (n, vectors).
    """
    import numpy as np

    found = np.full((len(ids), len(asked)), -1, np.float32)
    place_of = {number: place for place, number in enumerate(ids.tolist())}
    for some in batches(ids.tolist()):
        rows = connection.execute(
            f"""
            SELECT message_id, vector FROM embeddings
            WHERE model_id = ? AND message_id IN ({placeholders(some)})
            """,
            [model_id, *some],
        ).fetchall()
        with decoding("vectors"):
            whole = np.frombuffer(b"".join(row[1] for row in rows), "<f4")
            matrix = whole.reshape(len(rows), asked.shape[1])
        np.maximum.at(found, [place_of[row[0]] for row in rows], matrix @ asked.T)
    return found
