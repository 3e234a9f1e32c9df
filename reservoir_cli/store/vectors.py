"""Vectors in the store: packing them, and comparing all of a scope with a question."""

import sqlite3

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.messages import Scope
from reservoir_cli.store import queries


def pack(vector: NDArray[np.float32]) -> bytes:
    """A vector as it is stored: float32, little-endian."""
    return vector.astype("<f4", copy=False).tobytes()


def cosines(
    connection: sqlite3.Connection, scope: Scope, model_id: str, vector: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Compare a question with every message of a scope that has a vector.

    :param vector: shape (dimensions,), length 1.
    :returns: ids, ascending, shape (n,), and the cosine of each one's best passage, shape (n,).
    """
    where, values = queries.where_scope(scope)
    rows = connection.execute(
        f"""
        SELECT e.message_id, e.vector FROM embeddings e JOIN messages m ON m.id = e.message_id
        WHERE e.model_id = ? AND {where} ORDER BY e.message_id
        """,
        [model_id, *values],
    ).fetchall()
    if not rows:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    owners = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    matrix = np.frombuffer(b"".join(row[1] for row in rows), "<f4").reshape(len(rows), -1)
    scores = matrix @ vector
    ids, first = np.unique(owners, return_index=True)
    return ids, np.maximum.reduceat(scores, first)
