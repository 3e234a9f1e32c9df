"""Vectors in the store: packing them, and comparing all of a scope with a question.

The comparison is exact search in two steps: every passage by its int8 codes, then the nearest
messages by their float32 vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reservoir_cli.messages import Scope
from reservoir_cli.storage import reads
from reservoir_cli.storage.records import Passage
from reservoir_cli.storage.sql import batches, decoding, pack, placeholders
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


@dataclass(frozen=True, slots=True)
class Scan:
    """The passages of a scope in the order of their chunks; arrays of shape (n,).

    :param arrays: by the name of their column in :data:`vector_blocks.COLUMNS`.
    :param own: bool, whether it is of the instance that history comes from.
    :param cosine: float32, shape (n, vectors), with each vector asked for by the codes; NaN
        without a vector or a question.
    """

    arrays: dict[str, NDArray[np.generic]]
    own: NDArray[np.bool_]
    cosine: NDArray[np.float32]


def scan(
    connection: Connection,
    scope: Scope,
    own: str | None,
    model_id: str,
    asked: NDArray[np.float32] | None,
) -> Scan:
    """Read the chunks of a scope, and compare each passage with one or two vectors.

    One chunk after the other, so that a million codes need no memory of their own.

    :param own: the instance that history comes from.
    :param asked: shape (vectors, dimensions), each of length 1.
    """
    import numpy as np

    names = [name for name in vector_blocks.COLUMNS if name not in ("scales", "codes")]
    codes = ("scales", "codes") if asked is not None else ()
    where, values = reads.where_scope(scope)
    rows = connection.execute(
        f"""
        SELECT m.instance IS ?, m.n, {", ".join((*names, *codes))} FROM vector_chunks m
        WHERE m.model_id = ? AND {where}
        """,
        [own, model_id, *values],
    )
    owned, lengths, blobs, cosines = [], [], [], []
    width = 0 if asked is None else asked.shape[1]
    scratch = np.empty((vector_blocks.SIZE, width), np.float32)
    for is_own, length, *columns in rows:
        owned.append(is_own)
        lengths.append(length)
        blobs.append(columns[: len(names)])
        if asked is not None:
            cosines.append(_cosines(columns[-2], columns[-1], length, asked, scratch))
    columns = zip(*blobs, strict=True) if blobs else [()] * len(names)
    with decoding("blocks of vectors"):
        arrays = {
            name: np.frombuffer(b"".join(parts), vector_blocks.COLUMNS[name])
            for name, parts in zip(names, columns, strict=True)
        }
        vector_blocks.require_length(arrays.values(), sum(lengths))
        own_flags = np.repeat(np.array(owned, bool), lengths)
    vectors = 1 if asked is None else len(asked)
    nothing = np.full((len(own_flags), vectors), np.nan, np.float32)
    cosine = np.concatenate(cosines) if cosines else nothing
    cosine[(arrays["flags"] & vector_blocks.EMBEDDED) == 0] = np.nan
    return Scan(arrays, own_flags, cosine)


def _cosines(
    scales: bytes,
    codes: bytes,
    length: int,
    asked: NDArray[np.float32],
    scratch: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return the cosines of one chunk; numpy multiplies float32 far faster than int8.

    :param length: how many passages it has.
    """
    import numpy as np

    with decoding("blocks of vectors"):
        floats = scratch[:length]
        vector_blocks.require_length([floats], length)
        if len(codes) != floats.size:  # nothing in this chunk is embedded
            return np.full((length, len(asked)), np.nan, np.float32)
        np.copyto(floats.reshape(-1), np.frombuffer(codes, np.int8))
        factors = np.frombuffer(scales, "<f4").reshape(length, 1)
    cosines: NDArray[np.float32] = floats @ asked.T
    cosines *= factors
    return cosines


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
