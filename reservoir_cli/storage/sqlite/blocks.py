"""Blocks: the vectors of up to 256 passages with all that ranking needs, packed into one row.

A block belongs to one model, partition and instance. Its codes and offsets are the only record of
an embedding; its other columns repeat the messages'. A block is never changed but replaced by one
with a new id, so its id tells a process that has read it whether it is still current.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from reservoir_cli.messages import Channel
from reservoir_cli.storage.keys import thread_key
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.portable_sql import batches, decoding, placeholders
from reservoir_cli.storage.search.quantize import quantize, restore
from reservoir_cli.storage.sqlite.connection import Connection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIZE = 256
#: The flags of a passage: its message contains a question mark, is outside of a conversation, has
#: vectors; and it is the first one of its message, or the last one.
ASKS, LOOSE, EMBEDDED, FIRST, LAST = 1, 2, 4, 8, 16

#: The packed columns in the order of the table; the codes come last, because not all scans read
#: them.
COLUMNS: Mapping[str, str] = {
    "ids": "<i8",
    "created_at": "<i8",
    "threads": "<i8",
    "tokens": "<i4",
    "word_counts": "<i4",
    "flags": "u1",
    "scales": "<f4",
    "starts": "<i4",
    "ends": "<i4",
    "codes": "i1",
}
NAMES = ", ".join(COLUMNS)


class Entries(NamedTuple):
    """The passages of a block; arrays of shape (n,) except ``codes``.

    The passages of a message follow each other.

    :param ids: int64, the message of each passage; ids can repeat.
    :param created_at: int64, milliseconds since 1970.
    :param threads: int64, a key of the conversation, or of the instance outside of one.
    :param tokens: int32, as stored with the message.
    :param word_counts: int32, the number of words in the message.
    :param flags: uint8, of :data:`ASKS`, :data:`LOOSE`, :data:`EMBEDDED` and :data:`FIRST`.
    :param scales: float32; a vector is its scale times its codes.
    :param starts: int32, the offset of the passage's first character in the text.
    :param ends: int32, the offset after its last character.
    :param codes: int8, shape (n, dimensions).
    """

    ids: NDArray[np.int64]
    created_at: NDArray[np.int64]
    threads: NDArray[np.int64]
    tokens: NDArray[np.int32]
    word_counts: NDArray[np.int32]
    flags: NDArray[np.uint8]
    scales: NDArray[np.float32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    codes: NDArray[np.int8]

    @property
    def size(self) -> int:
        """The number of passages."""
        return len(self.ids)

    def at(self, positions: slice | NDArray[Any]) -> Entries:
        """Return the entries at some positions."""
        return Entries._make(array[positions] for array in self)

    def then(self, *more: Entries) -> Entries:
        """Return these entries followed by others of the same dimensions."""
        import numpy as np

        parts: Any = zip(self, *more, strict=True)
        return Entries._make(np.concatenate(arrays) for arrays in parts)

    def count_embedded(self) -> int:
        """Return the number of messages whose first vector is among these."""
        import numpy as np

        return int(np.count_nonzero((self.flags & (EMBEDDED | FIRST)) == EMBEDDED | FIRST))


def append(
    connection: Connection, model_id: str, passages: Mapping[int, Sequence[Passage]]
) -> None:
    """Add messages that were just embedded; those without a passage have no text to embed."""
    for channel, message_ids in by_channel(connection, list(passages)).items():
        entries = _entries({message_id: passages[message_id] for message_id in message_ids})
        _append(connection, channel, model_id, repeat_messages(connection, channel, entries)[0])


def remove(connection: Connection, channel: Channel, message_ids: Sequence[int]) -> None:
    """Remove messages of one partition and instance from its blocks."""
    import numpy as np

    removed = np.array(sorted(message_ids), np.int64)
    for block_id, entries in _read_some(connection, channel, removed):
        remains = ~_are_among(entries.ids, removed)
        if not remains.all():
            replace(connection, block_id, channel, entries.at(remains))


def renew(connection: Connection, message_ids: Sequence[int]) -> None:
    """Copy what blocks repeat of messages, such as their tokens, from the changed rows."""
    import numpy as np

    for channel, in_channel in by_channel(connection, message_ids).items():
        ids = np.array(in_channel, np.int64)
        for block_id, entries in _read_some(connection, channel, ids):
            if _are_among(entries.ids, ids).any():
                fresh, is_stored = repeat_messages(connection, channel, entries)
                replace(connection, block_id, channel, fresh.at(is_stored))


def move(connection: Connection, old: Channel, new: Channel) -> None:
    """Give the blocks of a partition and instance to another, to which its messages were moved."""
    for block_id, entries in _read_some(connection, old, None):
        fresh, is_stored = repeat_messages(connection, new, entries)
        replace(connection, block_id, new, fresh.at(is_stored))


def read(
    connection: Connection, channel: Channel, model_id: str, message_ids: Sequence[int]
) -> Entries | None:
    """Return the entries of embedded messages, in order of id; ``None`` without any."""
    import numpy as np

    ids, parts = np.array(sorted(message_ids), np.int64), list[Entries]()
    for _, entries in _read_some(connection, channel, ids, model_id):
        is_chosen = _are_among(entries.ids, ids) & ((entries.flags & EMBEDDED) > 0)
        if is_chosen.any():
            parts.append(entries.at(is_chosen))
    if not parts:
        return None
    with decoding("blocks of vectors"):  # a damaged store may mix lengths
        joined = parts[0].then(*parts[1:])
    return joined.at(np.argsort(joined.ids, kind="stable"))


def read_passages(
    connection: Connection, model_id: str, message_ids: Sequence[int]
) -> dict[int, list[Passage]]:
    """Return the passages of embedded messages by id."""
    passages: dict[int, list[Passage]] = {}
    for channel, in_channel in by_channel(connection, message_ids).items():
        entries = read(connection, channel, model_id, in_channel)
        if entries is None:
            continue
        vectors = restore(entries.scales, entries.codes)
        offsets = (entries.ids.tolist(), entries.starts.tolist(), entries.ends.tolist())
        for message_id, start, end, vector in zip(*offsets, vectors, strict=True):
            of_message = passages.setdefault(message_id, [])
            of_message.append(Passage(message_id, len(of_message), start, end, vector))
    return passages


def dimensions(connection: Connection, model_id: str | None) -> int | None:
    """Return the dimensions of a model's vectors; ``None`` if it has none yet."""
    row = connection.execute(
        "SELECT LENGTH(codes) / n FROM blocks WHERE model_id = ? AND embedded > 0 LIMIT 1",
        [model_id],
    ).fetchone()
    return int(row[0]) if row else None


def by_channel(connection: Connection, message_ids: Sequence[int]) -> dict[Channel, list[int]]:
    """Return the ids of stored messages by partition and instance, ascending."""
    channels: dict[Channel, list[int]] = {}
    for batch in batches(sorted(message_ids)):
        listed, bound = connection.in_list("id", batch)
        for message_id, *channel in connection.execute(
            f"SELECT id, partition, instance FROM messages WHERE {listed} ORDER BY id", bound
        ):
            channels.setdefault((channel[0], channel[1]), []).append(message_id)
    return channels


def _are_among(ids: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each id is among some others, which are ascending and not empty."""
    among: NDArray[np.bool_] = others[others.searchsorted(ids).clip(max=len(others) - 1)] == ids
    return among


def _read_some(
    connection: Connection,
    channel: Channel,
    message_ids: NDArray[np.int64] | None,
    model_id: str | None = None,
) -> list[tuple[int, Entries]]:
    model, values = ("", []) if model_id is None else ("AND model_id = ?", [model_id])
    rows = connection.execute(
        "SELECT id, lowest, highest FROM blocks "
        f"WHERE partition = ? AND instance = ? {model} ORDER BY id",
        [*channel, *values],
    ).fetchall()
    chosen = [row[0] for row in rows]
    if message_ids is not None:
        after = message_ids.searchsorted([row[1] for row in rows]).tolist()
        through = message_ids.searchsorted([row[2] for row in rows], "right").tolist()
        chosen = [row[0] for row, low, high in zip(rows, after, through, strict=True) if low < high]
    read = f"SELECT {NAMES} FROM blocks WHERE id = ?"
    return [
        (block_id, unpack(connection.execute(read, [block_id]).fetchone())) for block_id in chosen
    ]


def _entries(passages: Mapping[int, Sequence[Passage]]) -> Entries:
    import numpy as np

    vectors = [passage.vector for of_message in passages.values() for passage in of_message]
    width = len(vectors[0]) if vectors else 0
    zeros = Passage(0, 0, 0, 0, np.zeros(width, np.float32))
    rows = [
        (
            message_id,
            (EMBEDDED if of_message else 0)
            | (FIRST if at == 0 else 0)
            | (LAST if at >= len(of_message) - 1 else 0),
            passage,
        )
        for message_id, of_message in passages.items()
        for at, passage in enumerate(of_message or [zeros])
    ]
    stacked = np.stack([passage.vector for *_, passage in rows])
    scales, codes = quantize(stacked)
    empty = np.zeros(len(rows), np.int64)
    return Entries(
        ids=np.array([row[0] for row in rows], np.int64),
        created_at=empty,
        threads=empty,
        tokens=empty.astype(np.int32),
        word_counts=empty.astype(np.int32),
        flags=np.array([row[1] for row in rows], np.uint8),
        scales=scales,
        starts=np.array([row[2].start for row in rows], np.int32),
        ends=np.array([row[2].end for row in rows], np.int32),
        codes=codes,
    )


def repeat_messages(
    connection: Connection, channel: Channel, entries: Entries, condition: str = ""
) -> tuple[Entries, NDArray[np.bool_]]:
    """Return entries with what they repeat of messages, as it is now.

    :returns: the entries, and for each whether there is such a message in the channel.
    """
    import numpy as np

    stored: dict[int, tuple[int, ...]] = {}
    keys: dict[str | None, int] = {}
    listed, bound = connection.in_list("id", list(dict.fromkeys(entries.ids.tolist())))
    for message_id, conversation, asks, *numbers in connection.execute(
        f"""
        SELECT id, conversation_id, has_question_mark, created_at, tokens, word_count FROM messages
        NOT INDEXED WHERE {listed} AND partition = ? AND instance = ? {condition}
        """,
        [*bound, *channel],
    ):
        with decoding("messages"):
            if conversation not in keys:
                keys[conversation] = thread_key(*channel, conversation)
        marks = (ASKS if asks else 0) | (LOOSE if conversation is None else 0)
        stored[message_id] = (marks, keys[conversation], *numbers)
    rows = [stored.get(message_id) for message_id in entries.ids.tolist()]
    is_stored = np.array([row is not None for row in rows], bool)
    with decoding("messages"):
        columns = np.array([row or (0,) * 5 for row in rows], np.int64).reshape(-1, 5).T
        if len(is_stored) and np.abs(columns[3:]).max() >= 2**31:
            raise OverflowError("a number of a message is too large")
    fresh = entries._replace(
        flags=(entries.flags & (EMBEDDED | FIRST | LAST)) | columns[0].astype(np.uint8),
        threads=columns[1],
        created_at=columns[2],
        tokens=columns[3].astype(np.int32),
        word_counts=columns[4].astype(np.int32),
    )
    return fresh, is_stored


def _append(connection: Connection, channel: Channel, model_id: str, fresh: Entries) -> None:
    tail = connection.execute(
        f"""
        SELECT id, {NAMES} FROM blocks
        WHERE partition = ? AND instance = ? AND model_id = ? ORDER BY id DESC LIMIT 1
        """,
        [*channel, model_id],
    ).fetchone()
    if tail is not None:
        last = unpack(tail[1:])
        room = SIZE - last.size
        if room > 0 and last.codes.shape[1] == fresh.codes.shape[1]:
            replace(connection, tail[0], channel, last.then(fresh.at(slice(room))))
            fresh = fresh.at(slice(room, None))
    for start in range(0, fresh.size, SIZE):
        values = _values(connection, channel, fresh.at(slice(start, start + SIZE)))
        names = ["model_id", *values]
        connection.execute(
            f"INSERT INTO blocks ({', '.join(names)}) VALUES ({placeholders(names)})",
            [model_id, *values.values()],
        )


def replace(connection: Connection, block_id: int, channel: Channel, entries: Entries) -> None:
    """Replace a block by one with other entries, or delete it if there are none."""
    if not entries.size:
        connection.execute("DELETE FROM blocks WHERE id = ?", [block_id])
        return
    values = _values(connection, channel, entries)
    columns = ", ".join(f"{name} = ?" for name in values)
    connection.execute(f"UPDATE blocks SET {columns} WHERE id = ?", [*values.values(), block_id])


def _values(connection: Connection, channel: Channel, entries: Entries) -> dict[str, Any]:
    [last] = connection.execute("SELECT MAX(id) FROM blocks").fetchone()
    return {
        # No block ever had this id: SQLite alone would reuse those of deleted blocks.
        "id": max(int(last or 0) + 1, time.time_ns()),
        "partition": channel[0],
        "instance": channel[1],
        "n": entries.size,
        "embedded": entries.count_embedded(),
        "lowest": int(entries.ids.min()),
        "highest": int(entries.ids.max()),
        **{
            name: getattr(entries, name).astype(form, copy=False).tobytes()
            for name, form in COLUMNS.items()
        },
    }


def unpack(blobs: Sequence[bytes]) -> Entries:
    """Return the entries of a block from its packed columns."""
    import numpy as np

    with decoding("blocks of vectors"):
        *columns, codes = (
            np.frombuffer(blob, form) for blob, form in zip(blobs, COLUMNS.values(), strict=True)
        )
        require_length(columns, len(columns[0]))
        if not 1 <= len(columns[0]) <= SIZE:
            raise ValueError("a block has no passages or too many")
        return Entries._make([*columns, codes.reshape(len(columns[0]), -1)])


def require_length(columns: Iterable[NDArray[Any]], length: int) -> None:
    """Check the length of the columns of a block."""
    if any(len(column) != length for column in columns):
        raise ValueError("columns of a block differ in length")
