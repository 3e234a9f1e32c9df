"""Store vectors on a server, made from the codes that a file would hold, and compare them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reservoir_cli.messages import Scope
from reservoir_cli.storage import portable_sql, properties
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.postgres.connection import Connection, FloatArray
from reservoir_cli.storage.search.quantize import round_to_codes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_PASSAGE = 'passage, start, "end", vector'  #: The columns of a passage.


def to_text(vector: NDArray[np.float32]) -> str:
    """Return a vector as SQL text that keeps every bit."""
    return f"[{','.join(map(str, vector.tolist()))}]"


def cosines(
    connection: Connection, scope: Scope, model_id: str, queries: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Compare every passage of a scope with one or more vectors.

    The comparison is materialized, so that the planner cannot use an approximate index instead.

    :param queries: shape (vectors, dimensions), each of length 1 like the stored ones.
    :returns: the message of each passage, shape (n,), and its cosines, shape (n, vectors).
    """
    import numpy as np

    where, values = portable_sql.where_scope(scope, "e")
    names = [f"cosine{index}" for index in range(len(queries))]
    products = ", ".join(f"(-(e.vector <#> ?::vector))::real AS {name}" for name in names)
    columns = connection.arrays(
        {"ids": ("c.message_id", "i8"), **{name: (f"c.{name}", "f4") for name in names}},
        "FROM c",
        [*map(to_text, queries), *values, model_id, queries.shape[1]],
        before=f"""
        WITH c AS MATERIALIZED (
            SELECT e.message_id, {products}
            FROM embeddings e WHERE {where} AND e.model_id = ? AND vector_dims(e.vector) = ?
        )
        """,
    )
    return columns["ids"], np.stack([columns[name] for name in names], axis=1)


def passage_counts(
    connection: Connection, partition: str, model_id: str, ids: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the embedded messages among these, and the number of passages of each."""
    columns = connection.arrays(
        {"ids": ("c.message_id", "i8"), "passages": ("c.passages::int", "i4")},
        """
        FROM (
            SELECT e.message_id, count(*) AS passages
            FROM embeddings e WHERE e.partition = ? AND e.model_id = ?
            AND e.message_id = ANY(?::bigint[]) GROUP BY 1
        ) c
        """,
        [partition, model_id, ids.tolist()],
    )
    return columns["ids"], columns["passages"]


def add(
    connection: Connection,
    partition: str,
    model_id: str,
    by_message: Mapping[int, Sequence[Passage]],
) -> None:
    """Store passages of one partition."""
    import numpy as np

    passages = [passage for of_message in by_message.values() for passage in of_message]
    if not passages:
        return
    put_dimensions(connection, passages)
    stored = round_to_codes(np.stack([passage.vector for passage in passages]))
    instances = dict(
        portable_sql.select_messages(connection, "id, instance", partition, list(by_message))
    )
    ids = [message_id for message_id, of_message in by_message.items() for _ in of_message]
    connection.insert(
        "embeddings",
        f"partition, instance, message_id, model_id, {_PASSAGE}",
        [
            (partition, instances[message_id], message_id, model_id, *placed, FloatArray(vector))
            for message_id, (_, *placed, _), vector in zip(ids, passages, stored, strict=True)
            if message_id in instances
        ],
    )


def put_dimensions(connection: Connection, passages: Sequence[Passage]) -> None:
    """Store the dimensions of the first passages of a store."""
    for passage in passages[:1]:
        properties.put_first(connection, properties.DIMENSIONS, str(len(passage.vector)))


def read_passages(
    connection: Connection, partition: str, model_id: str, ids: Sequence[int]
) -> dict[int, list[Passage]]:
    """Return the passages of embedded messages by id."""
    passages: dict[int, list[Passage]] = {}
    for message_id, *passage in connection.with_vectors(
        """
        SELECT message_id, passage, start, "end", vector FROM embeddings
        WHERE partition = ? AND message_id = ANY(?::bigint[]) AND model_id = ? ORDER BY 1, 2
        """,
        [partition, list(ids), model_id],
    ):
        passages.setdefault(message_id, []).append(Passage(message_id, *passage))
    return passages


def read(
    connection: Connection, partition: str, model_id: str, ids: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
    """Return the message of each passage, ascending, and its vector; ``None`` without any."""
    import numpy as np

    by_message = read_passages(connection, partition, model_id, ids)
    passages = [passage for of_message in by_message.values() for passage in of_message]
    if not passages:
        return None
    numbers = np.array([passage.message_id for passage in passages], np.int64)
    return numbers, np.stack([passage.vector for passage in passages])


def dimensions(connection: Connection) -> int | None:
    """Return the dimensions of the active model's vectors; ``None`` if it has none yet."""
    size = properties.get(connection, properties.DIMENSIONS)
    return None if size is None else int(size)


def note_dimensions(connection: Connection) -> None:
    """Store the dimensions of the active model; drop them if it has no vectors yet."""
    sql = "SELECT vector_dims(vector) FROM embeddings WHERE model_id = ? LIMIT 1"
    size = connection.number(sql, [properties.get(connection, properties.MODEL_ID)])
    if size:
        properties.put(connection, properties.DIMENSIONS, str(size))
    else:
        properties.drop(connection, properties.DIMENSIONS)


def add_missing(connection: Connection, model_id: str) -> None:
    """Add all messages without vectors of the next model to ``rebuilding``, as members do not."""
    connection.execute(
        """
        INSERT INTO rebuilding (partition, message_id)
        SELECT m.partition, m.id FROM messages m WHERE NOT EXISTS (
            SELECT 1 FROM embeddings e WHERE e.partition = m.partition
            AND e.message_id = m.id AND e.model_id = ?
        ) ON CONFLICT DO NOTHING
        """,
        [model_id],
    )
