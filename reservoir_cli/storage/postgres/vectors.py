"""Vectors on a server: exact search inside a partition, and everything else read of them."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.messages import Scope
from reservoir_cli.storage.postgres import reads
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.records import Passage

_Vector = NDArray[np.float32]


def written(vector: _Vector) -> str:
    """A vector as text, to the last bit."""
    return f"[{','.join(map(str, vector.tolist()))}]"


def read(blob: bytes) -> _Vector:
    """A vector as the server sends it in binary: two numbers of head, then its parts."""
    return np.frombuffer(blob, ">f4", offset=4).astype(np.float32)


def cosines(
    connection: Connection, scope: Scope, model_id: str, asked: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Compare every passage of a scope with one or more vectors.

    The comparison is materialized, so that no index that leaves some out can take its place.

    :param asked: shape (vectors, dimensions), each of length 1, as all that are stored.
    :returns: the message of each passage, shape (n,), and its cosines, shape (n, vectors).
    """
    where, values = reads.where_scope(scope, "e")
    names = [f"cosine{number}" for number in range(len(asked))]
    products = ", ".join(f"(-(e.vector <#> %s::vector))::real AS {name}" for name in names)
    found = reads.arrays(
        connection,
        {"ids": ("c.message_id", "i8"), **{name: (f"c.{name}", "f4") for name in names}},
        "FROM c",
        [*map(written, asked), *values, model_id],
        given=f"""
        WITH c AS MATERIALIZED (
            SELECT e.message_id, {products}
            FROM embeddings e WHERE {where} AND e.model_id = %s
        )
        """,
    )
    return found["ids"], np.stack([found[name] for name in names], axis=1)


def passage_counts(
    connection: Connection, partition: str, model_id: str, ids: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return some messages of a partition that have vectors, and in how many passages."""
    found = reads.arrays(
        connection,
        {"ids": ("e.message_id", "i8"), "passages": ("count(*)::int", "i4")},
        """
        FROM embeddings e WHERE e.partition = %s AND e.model_id = %s
        AND e.message_id = ANY(%s::bigint[]) GROUP BY 1
        """,
        [partition, model_id, ids.tolist()],
    )
    return found["ids"], found["passages"]


def passages(connection: Connection, model_id: str, ids: Sequence[int]) -> dict[int, list[Passage]]:
    """The passages of messages, by the message; one without vectors has none."""
    found = connection.execute(
        """
        SELECT e.message_id, e.passage, e.start, e."end", e.vector FROM messages m
        JOIN embeddings e ON e.partition = m.partition AND e.message_id = m.id
        WHERE m.id = ANY(%s::bigint[]) AND e.model_id = %s ORDER BY 1, 2
        """,
        [list(ids), model_id],
        binary=True,
    ).fetchall()
    return {
        number: [
            Passage(number, passage, start, end, read(vector))
            for _, passage, start, end, vector in some
        ]
        for number, some in groupby(found, key=lambda row: row[0])
    }


def add(
    connection: Connection,
    partition: str,
    model_id: str,
    some: Sequence[Passage],
) -> None:
    """Store passages of messages of one partition."""
    connection.execute(
        """
        INSERT INTO embeddings
        (partition, message_id, model_id, passage, instance, start, "end", vector)
        SELECT m.partition, m.id, %s, t.passage, m.instance, t.start, t."end", t.vector::vector
        FROM unnest(%s::bigint[], %s::int[], %s::int[], %s::int[], %s::text[])
        AS t (id, passage, start, "end", vector)
        JOIN messages m ON m.partition = %s AND m.id = t.id
        """,
        [
            model_id,
            [each.message_id for each in some],
            [each.number for each in some],
            [each.start for each in some],
            [each.end for each in some],
            [written(each.vector) for each in some],
            partition,
        ],
    )
