"""Build an optional approximate index over the vectors of a large partition.

Without it, a question is compared with every vector of the partition. With it, only the nearest
vectors that the index finds are compared; all others get the cosine of the last of those.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Scope
from reservoir_cli.storage import properties
from reservoir_cli.storage.postgres import vectors
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.postgres.tables import SCHEMA
from reservoir_cli.storage.postgres.transactions import Transactions
from reservoir_cli.util.progress import Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FOUND = 1_000  #: How many passages the index returns: the maximum of pgvector's ``ef_search``.
#: The recall is measured with this many stored vectors and their nearest neighbours.
_SAMPLES, _NEAREST = 50, 20


@dataclass(frozen=True, slots=True)
class Index:
    """An index over the vectors of a partition by one model.

    :param recall: the share of the true nearest neighbours that it found when it was built.
    """

    name: str
    model_id: str
    dimensions: int
    recall: float


def key(partition: str) -> str:
    """Return the key of the property that describes the index of a partition."""
    return properties.of_partition(properties.INDEX, partition)


def read(value: str) -> Index:
    """Decode an index from the value of its property."""
    return Index(**json.loads(value))


def build(store: Transactions, partition: str, progress: Progress) -> Index:
    """Build the index of a partition by the active model, and measure its recall.

    Others may write meanwhile.
    """
    planned = _plan(store, partition)
    progress("building the index", 0, 0)
    drop(store, partition, planned.name)
    with store.snapshot():
        literals = store._connection.execute(
            """
            SELECT quote_literal(?), quote_literal(?), quote_ident(n.nspname) FROM pg_extension e
            JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'
            """,
            [partition, planned.model_id],
        ).fetchone()
    assert literals is not None
    # Names are qualified, because no search_path is set outside of transactions.
    store.execute_alone(
        f"""
        CREATE INDEX CONCURRENTLY {planned.name} ON {SCHEMA}.embeddings USING hnsw
        ((vector::{literals[2]}.vector({planned.dimensions})) {literals[2]}.vector_ip_ops)
        WHERE partition = {literals[0]} AND model_id = {literals[1]}
        """
    )
    progress("measuring the index", 0, 0)
    with store.snapshot():
        store.lift_timeouts()
        recall = _measure_recall(store._connection, partition, planned)
    index = replace(planned, recall=recall)
    with store.write():
        properties.put(store._connection, key(partition), json.dumps(asdict(index)))
    return index


def _plan(store: Transactions, partition: str) -> Index:
    with store.snapshot():
        model_id = properties.get(store._connection, properties.MODEL_ID)
        if model_id is None:
            raise ReservoirError("nothing is embedded", hint="reservoir embed")
        dimensions = store._connection.number(
            """
            SELECT vector_dims(vector) FROM embeddings
            WHERE partition = ? AND model_id = ? LIMIT 1
            """,
            [partition, model_id],
        )
    if not dimensions:
        raise ReservoirError(f"nothing in {partition} is embedded", hint="reservoir embed")
    digest = hashlib.blake2b(partition.encode(), digest_size=8).hexdigest()
    return Index(f"embeddings_near_{digest}", model_id, dimensions, 0)


def drop(store: Transactions, partition: str, name: str | None = None) -> bool:
    """Remove the index of a partition; return whether there was one."""
    with store.write():
        description = properties.get(store._connection, key(partition))
        properties.drop(store._connection, key(partition))
    if name is None and description is not None:
        name = read(description).name
    if name is not None:
        store.execute_alone(f"DROP INDEX CONCURRENTLY IF EXISTS {SCHEMA}.{name}")
    return description is not None


def cosines(
    connection: Connection, partition: str, index: Index, vector: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find the passages nearest to a question; call it inside a transaction.

    :returns: the message of each passage and its cosine, both of shape (n,).
    """
    connection.execute("SELECT set_config('hnsw.ef_search', ?, true)", [str(FOUND)])
    columns = connection.arrays(
        {"ids": ("c.message_id", "i8"), "cosine": ("(-c.distance)::real", "f4")},
        f"""
        FROM (
            SELECT e.message_id, e.vector::vector({index.dimensions}) <#> ?::vector AS distance
            FROM embeddings e WHERE e.partition = ? AND e.model_id = ?
            ORDER BY e.vector::vector({index.dimensions}) <#> ?::vector LIMIT {FOUND}
        ) c
        """,
        [vectors.to_text(vector), partition, index.model_id, vectors.to_text(vector)],
    )
    return columns["ids"], columns["cosine"]


def _measure_recall(connection: Connection, partition: str, index: Index) -> float:
    import numpy as np

    sample = connection.with_vectors(
        """
        SELECT vector FROM embeddings WHERE partition = ? AND model_id = ?
        ORDER BY md5(message_id::text) LIMIT ?
        """,
        [partition, index.model_id, _SAMPLES],
    )
    hits = expected = 0
    for (vector,) in list(sample):
        ids, scanned = vectors.cosines(connection, Scope(partition), index.model_id, vector[None])
        cosine = scanned[:, 0]
        near, _ = cosines(connection, partition, index, vector)
        best = set(ids[np.lexsort((ids, -cosine))[:_NEAREST]].tolist())
        hits += len(best & set(near[:_NEAREST].tolist()))
        expected += len(best)
    return round(hits / expected, 4)
