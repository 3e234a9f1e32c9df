"""Vectors on a server: exact search inside a partition, and everything else read of them."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.messages import Key, Scope
from reservoir_cli.storage.keys import by_partition
from reservoir_cli.storage.postgres import properties, reads
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
        [*map(written, asked), *values, model_id, asked.shape[1]],
        given=f"""
        WITH c AS MATERIALIZED (
            SELECT e.message_id, {products}
            FROM embeddings e WHERE {where} AND e.model_id = %s AND vector_dims(e.vector) = %s
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


def passages(
    connection: Connection, model_id: str, keys: Sequence[Key]
) -> dict[Key, list[Passage]]:
    """Return the passages of messages; one without vectors has none."""
    by_message: dict[Key, list[Passage]] = {}
    for partition, ids in by_partition(keys).items():
        for number, passage, start, end, vector in connection.execute(
            """
            SELECT message_id, passage, start, "end", vector FROM embeddings
            WHERE partition = %s AND message_id = ANY(%s::bigint[]) AND model_id = %s
            ORDER BY 1, 2
            """,
            [partition, ids, model_id],
            binary=True,
        ):
            by_message.setdefault(Key(partition, number), []).append(
                Passage(number, passage, start, end, read(vector))
            )
    return by_message


def add(
    connection: Connection,
    partition: str,
    model_id: str,
    by_message: Mapping[int, Sequence[Passage]],
) -> None:
    """Store passages of messages of one partition, by their message."""
    some = [(number, passage) for number, of_one in by_message.items() for passage in of_one]
    if not some:
        return
    if properties.get(connection, properties.DIMENSIONS) is None:
        dimensions = str(len(some[0][1].vector))
        properties.put_first(connection, properties.DIMENSIONS, dimensions)
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
            [number for number, _ in some],
            [passage.number for _, passage in some],
            [passage.start for _, passage in some],
            [passage.end for _, passage in some],
            [written(passage.vector) for _, passage in some],
            partition,
        ],
    )
