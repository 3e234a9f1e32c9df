"""Vector blocks: the ranking data of up to 256 passages, packed into one row.

A question over a million messages reads these rows in one scan, and rows of messages only for the
best ones. A block belongs to one partition and instance. It is derived from ``messages`` and
``embeddings`` and can be rebuilt from them.

Vectors are stored as int8 codes, each with the scale that maps its greatest component to 127.

A block is never changed but replaced by one with a new id, so a process that has read it can tell
by its id whether it is still current.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from reservoir_cli.storage.portable_sql import batches, decoding, placeholders
from reservoir_cli.storage.sqlite.connection import Connection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIZE = 256
# The flags of a message: it contains a question mark, is outside of a conversation, has a vector.
ASKS, LOOSE, EMBEDDED = 1, 2, 4

#: The packed columns in the order of the table; the codes come last, because not all scans read
#: them.
COLUMNS: Mapping[str, str] = {
    "ids": "<i8",
    "created_at": "<i8",
    "threads": "<i8",
    "tokens": "<i4",
    "terms": "<i4",
    "flags": "u1",
    "scales": "<f4",
    "codes": "i1",
}
_NAMES = ", ".join(COLUMNS)

Place = tuple[str, str]


class Entries(NamedTuple):
    """The passages of a block; arrays of shape (n,) except ``codes``.

    :param ids: int64, the message of each passage; ids can repeat.
    :param created_at: int64, milliseconds since 1970.
    :param threads: int64, a key of the conversation, or of the instance outside of one.
    :param tokens: int32, as stored with the message.
    :param terms: int32, the number of words in the message.
    :param flags: uint8, of :data:`ASKS`, :data:`LOOSE` and :data:`EMBEDDED`.
    :param scales: float32; a vector is approximately its scale times its codes.
    :param codes: int8, shape (n, dimensions).
    """

    ids: NDArray[np.int64]
    created_at: NDArray[np.int64]
    threads: NDArray[np.int64]
    tokens: NDArray[np.int32]
    terms: NDArray[np.int32]
    flags: NDArray[np.uint8]
    scales: NDArray[np.float32]
    codes: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.ids)

    def arrays(self) -> list[NDArray[Any]]:
        """Return the columns in the order of the table."""
        return [getattr(self, name) for name in COLUMNS]

    def at(self, positions: slice | NDArray[np.bool_]) -> Entries:
        """Return the entries at some positions."""
        return _to_entries(array[positions] for array in self.arrays())

    def then(self, more: Entries) -> Entries:
        """Return these entries followed by others of the same dimensions."""
        import numpy as np

        pairs = zip(self.arrays(), more.arrays(), strict=True)
        return _to_entries(np.concatenate(pair) for pair in pairs)


def thread_key(partition: str, instance: str, conversation_id: str | None) -> int:
    """Hash the conversation of a message to a number, the same in every process."""
    names = (
        (partition, instance) if conversation_id is None else (partition, instance, conversation_id)
    )
    digest = hashlib.blake2b("\0".join(names).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def quantize(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Convert vectors to int8 codes and their scales.

    :param vectors: shape (n, dimensions).
    :returns: scales, shape (n,), and codes, shape (n, dimensions).
    """
    import numpy as np

    scales = np.abs(vectors).max(axis=1, initial=0.0) / 127
    divisors = np.where(scales > 0, scales, 1)[:, None]
    return scales.astype(np.float32), np.rint(vectors / divisors).astype(np.int8)


def append(
    connection: Connection,
    model_id: str,
    message_ids: Sequence[int],
    vectors: Mapping[int, NDArray[np.float32]],
) -> None:
    """Add messages that were just embedded, or that have no text to embed.

    :param vectors: of each message's passages, shape (passages, dimensions).
    """
    rows = sorted(_read_rows(connection, message_ids))
    for place, in_place in groupby(rows, key=lambda row: row[0]):
        _append(connection, place, model_id, _entries(list(in_place), vectors))


def remove(connection: Connection, place: Place, message_ids: Iterable[int]) -> None:
    """Remove messages of one partition and instance from its blocks."""
    import numpy as np

    removed = np.fromiter(message_ids, np.int64)
    rows = connection.execute(
        f"SELECT id, {_NAMES} FROM vector_chunks WHERE partition = ? AND instance = ?", place
    ).fetchall()
    for block_id, *blobs in rows:
        entries = _unpack(blobs)
        remains = ~np.isin(entries.ids, removed)
        if not remains.any():
            connection.execute("DELETE FROM vector_chunks WHERE id = ?", [block_id])
        elif not remains.all():
            _replace(connection, block_id, entries.at(remains))


def read_vectors(
    connection: Connection, model_id: str, message_ids: Sequence[int]
) -> dict[int, NDArray[np.float32]]:
    """Return the vectors of messages by id, shape (passages, dimensions) each."""
    import numpy as np

    vectors: dict[int, NDArray[np.float32]] = {}
    for batch in batches(message_ids):
        rows = connection.execute(
            f"""
            SELECT message_id, vector FROM embeddings
            WHERE model_id = ? AND message_id IN ({placeholders(batch)})
            ORDER BY message_id, passage
            """,
            [model_id, *batch],
        )
        for message_id, passages in groupby(rows, key=lambda row: row[0]):
            with decoding("vectors"):
                vectors[message_id] = np.stack([np.frombuffer(row[1], "<f4") for row in passages])
    return vectors


def count_problems(connection: Connection, model_id: str) -> int:
    """Count the messages that are missing from a model's blocks, or wrongly in them."""
    import numpy as np

    blobs = connection.execute("SELECT ids FROM vector_chunks WHERE model_id = ?", [model_id])
    packed = np.frombuffer(b"".join(row[0] for row in blobs if len(row[0]) % 8 == 0), "<i8")
    rows = connection.execute("SELECT id FROM messages EXCEPT SELECT message_id FROM pending")
    expected = np.fromiter((row[0] for row in rows), np.int64)
    # A block with a column of the wrong length cannot be unpacked.
    widths = " OR ".join(
        f"LENGTH({name}) != n * {np.dtype(form).itemsize}"
        for name, form in COLUMNS.items()
        if name != "codes"
    )
    torn = connection.execute(
        f"SELECT SUM(n) FROM vector_chunks WHERE n < 1 OR LENGTH(codes) % n OR {widths}"
    ).fetchone()
    return len(np.setxor1d(packed, expected)) + abs(int(torn[0] or 0))


def _read_rows(
    connection: Connection, message_ids: Sequence[int]
) -> Iterator[tuple[Place, int, int, int, int, int, int]]:
    """Yield (place, id, time, thread, tokens, terms, flags) of messages, EMBEDDED not set."""
    for batch in batches(message_ids):
        for message_id, partition, instance, conversation, *rest in connection.execute(
            f"""
            SELECT id, partition, instance, conversation_id, created_at, tokens, terms, asks
            FROM messages WHERE id IN ({placeholders(batch)})
            """,
            batch,
        ):
            created_at, tokens, terms, asks = rest
            flags = (ASKS if asks else 0) | (LOOSE if conversation is None else 0)
            with decoding("messages"):
                thread = thread_key(partition, instance, conversation)
            yield (partition, instance), message_id, created_at, thread, tokens, terms, flags


def _entries(
    rows: Sequence[tuple[Place, int, int, int, int, int, int]],
    vectors: Mapping[int, NDArray[np.float32]],
) -> Entries:
    """Return the entries for rows of messages; one without a vector has a passage of zeros."""
    import numpy as np

    width = next((passages.shape[1] for passages in vectors.values()), 0)
    zeros = np.zeros((1, width), np.float32)
    passages = [vectors.get(row[1], zeros) for row in rows]
    counts = [len(of_message) for of_message in passages]
    flags = [row[6] | (EMBEDDED if row[1] in vectors else 0) for row in rows]
    _, ids, created_at, threads, tokens, terms, _ = zip(*rows, strict=True)
    scales, codes = quantize(np.concatenate(passages))
    columns = (ids, created_at, threads, tokens, terms, flags)
    with decoding("messages"):
        arrays = [
            np.array(values, form) for values, form in zip(columns, COLUMNS.values(), strict=False)
        ]
    repeated = [np.repeat(values, counts) for values in arrays]
    return _to_entries([*repeated, scales, codes])


def _append(connection: Connection, place: Place, model_id: str, fresh: Entries) -> None:
    """Fill the last block of a partition and instance, then add new blocks."""
    tail = connection.execute(
        f"""
        SELECT id, {_NAMES} FROM vector_chunks
        WHERE model_id = ? AND partition = ? AND instance = ? ORDER BY id DESC LIMIT 1
        """,
        [model_id, *place],
    ).fetchone()
    if tail is not None:
        last = _unpack(tail[1:])
        room = SIZE - len(last)
        if room > 0 and last.codes.shape[1] == fresh.codes.shape[1]:
            _replace(connection, tail[0], last.then(fresh.at(slice(room))))
            fresh = fresh.at(slice(room, None))
    for start in range(0, len(fresh), SIZE):
        block = fresh.at(slice(start, start + SIZE))
        connection.execute(
            f"""
            INSERT INTO vector_chunks (id, model_id, partition, instance, n, {_NAMES})
            VALUES ({placeholders([*range(5), *COLUMNS])})
            """,
            [_new_id(connection), model_id, *place, len(block), *_pack(block)],
        )


def _replace(connection: Connection, block_id: int, entries: Entries) -> None:
    columns = ", ".join(f"{name} = ?" for name in COLUMNS)
    connection.execute(
        f"UPDATE vector_chunks SET id = ?, n = ?, {columns} WHERE id = ?",
        [_new_id(connection), len(entries), *_pack(entries), block_id],
    )


def _new_id(connection: Connection) -> int:
    """Return an id that no block ever had: SQLite alone would reuse those of deleted blocks."""
    last = connection.execute("SELECT MAX(id) FROM vector_chunks").fetchone()[0] or 0
    return max(int(last) + 1, time.time_ns())


def _pack(entries: Entries) -> list[bytes]:
    return [
        array.astype(form, copy=False).tobytes()
        for array, form in zip(entries.arrays(), COLUMNS.values(), strict=True)
    ]


def _unpack(blobs: Sequence[bytes]) -> Entries:
    import numpy as np

    with decoding("blocks of vectors"):
        arrays = [
            np.frombuffer(blob, form) for blob, form in zip(blobs, COLUMNS.values(), strict=True)
        ]
        *columns, codes = arrays
        require_length(columns, len(columns[0]))
        return _to_entries([*columns, codes.reshape(len(columns[0]), -1)])


def require_length(columns: Iterable[NDArray[Any]], length: int) -> None:
    """Check the length of the columns of a block.

    :raises ValueError: a column has another length.
    """
    if any(len(column) != length for column in columns):
        raise ValueError("columns of a block differ in length")


def _to_entries(arrays: Iterable[NDArray[Any]]) -> Entries:
    return Entries(**dict(zip(COLUMNS, arrays, strict=True)))
