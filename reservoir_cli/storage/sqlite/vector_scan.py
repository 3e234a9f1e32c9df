"""Compare all passages of a scope with a question, by their int8 codes.

A process that answers many questions keeps the blocks it has read. Each time it reads the ids of
all blocks, and what is in those that are new: a block is never changed, but replaced.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from reservoir_cli.messages import Scope
from reservoir_cli.storage import filter_conditions
from reservoir_cli.storage.portable_sql import batches, decoding, placeholders
from reservoir_cli.storage.sqlite import vector_blocks
from reservoir_cli.storage.sqlite.connection import Connection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    #: The codes of a block, int8, shape (n, dimensions), and their scales, shape (n, 1). Without
    #: dimensions if nothing in it is embedded.
    _Codes = tuple[NDArray[np.int8], NDArray[np.float32]]

#: The columns of a block but for its codes.
HEAD = tuple(name for name in vector_blocks.COLUMNS if name != "codes")
#: Bytes of codes that are kept between questions.
MOST_KEPT = 256 * 1024**2


class Blocks:
    """The blocks of a scope without their codes, in the order they were read.

    :param rows: of each its id, instance, number of passages, and the columns of :data:`HEAD`.
    """

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self.rows = rows

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The columns of all passages by name, each of shape (n,)."""
        import numpy as np

        columns = list(zip(*self.rows, strict=True))[3:] if self.rows else [()] * len(HEAD)
        with decoding("blocks of vectors"):
            arrays = {
                name: np.frombuffer(b"".join(parts), vector_blocks.COLUMNS[name])
                for name, parts in zip(HEAD, columns, strict=True)
            }
            vector_blocks.require_length(arrays.values(), sum(row[2] for row in self.rows))
        return arrays

    @cached_property
    def is_empty(self) -> NDArray[np.bool_]:
        """Whether each passage has no vector, shape (n,)."""
        flags: NDArray[np.uint8] = self.arrays["flags"]
        is_empty: NDArray[np.bool_] = (flags & vector_blocks.EMBEDDED) == 0
        return is_empty

    def of_instance(self, name: str | None) -> NDArray[np.bool_]:
        """Return whether each passage is of an instance, shape (n,)."""
        import numpy as np

        is_own = np.array([row[1] == name for row in self.rows], bool)
        return np.repeat(is_own, [row[2] for row in self.rows])


class KeptBlocks:
    """The blocks of the scopes that were asked last, with their codes."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Scope, str], tuple[Blocks, dict[int, _Codes]]] = {}
        self._too_large: set[tuple[Scope, str]] = set()

    def read(
        self, connection: Connection, scope: Scope, model_id: str, width: int
    ) -> tuple[Blocks, list[_Codes]] | None:
        """Return the blocks of a scope and their codes; ``None`` if they are too many to keep.

        Blocks that have not changed are the same object as the last time.

        :param width: the dimensions of a vector.
        """
        if (scope, model_id) in self._too_large:
            return None
        blocks, codes = self._kept.pop((scope, model_id), (Blocks([]), {}))
        places = _select(connection, scope, model_id, ()).fetchall()
        if places != [row[:3] for row in blocks.rows]:
            known = {row[:3]: row for row in blocks.rows}
            codes = {place[0]: codes[place[0]] for place in places if place in known}
            missing = [place[0] for place in places if place not in known]
            if _size(codes) + _unread_size(connection, missing) > MOST_KEPT:
                self._too_large.add((scope, model_id))
                return None
            for *head, packed in _read_blocks(connection, missing):
                row = tuple(head)
                known[row[:3]], codes[row[0]] = row, _decoded(row, packed, width)
            blocks = Blocks([known[place] for place in places])
        self._kept[scope, model_id] = blocks, codes
        while sum(_size(kept) for _, kept in self._kept.values()) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return blocks, [codes[row[0]] for row in blocks.rows]


def _size(codes: dict[int, _Codes]) -> int:
    return sum(integers.nbytes for integers, _ in codes.values())


def _unread_size(connection: Connection, numbers: Sequence[int]) -> int:
    """Return the bytes of the codes of blocks, without reading them."""
    return sum(
        connection.execute(
            f"SELECT SUM(LENGTH(codes)) FROM vector_chunks WHERE id IN ({placeholders(some)})", some
        ).fetchone()[0]
        for some in batches(numbers)
    )


def _read_blocks(connection: Connection, numbers: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    for some in batches(numbers):
        yield from connection.execute(
            f"SELECT id, instance, n, {', '.join(vector_blocks.COLUMNS)} FROM vector_chunks "
            f"WHERE id IN ({placeholders(some)})",
            some,
        )


def scan(
    connection: Connection,
    scope: Scope,
    model_id: str,
    asked: NDArray[np.float32] | None,
    kept: KeptBlocks | None = None,
) -> tuple[Blocks, NDArray[np.float32]]:
    """Read the blocks of a scope, and compare each passage with one or two vectors.

    One block after the other, so that a million codes need no memory of their own.

    :param asked: shape (vectors, dimensions), each of length 1.
    :param kept: the blocks that are kept between questions, if any are.
    :returns: the blocks, and the cosines by their codes, float32, shape (n, vectors); NaN without
        a vector or a question.
    """
    import numpy as np

    if asked is None:
        blocks = Blocks(_select(connection, scope, model_id, HEAD).fetchall())
        return blocks, np.full((len(blocks.arrays["ids"]), 1), np.nan, np.float32)
    width = asked.shape[1]
    if kept and (read := kept.read(connection, scope, model_id, width)):
        blocks, cosines = read[0], _compare(read[1], asked)
    else:
        blocks = Blocks([])
        cosines = _compare(_read(connection, scope, model_id, width, blocks.rows), asked)
    cosine = np.concatenate([np.empty((0, len(asked)), np.float32), *cosines])
    cosine[blocks.is_empty] = np.nan
    return blocks, cosine


def _read(
    connection: Connection, scope: Scope, model_id: str, width: int, rows: list[tuple[Any, ...]]
) -> Iterator[_Codes]:
    """Yield the codes of blocks one by one, and append the rest of them to a list."""
    for *row, codes in _select(connection, scope, model_id, (*HEAD, "codes")):
        rows.append(tuple(row))
        yield _decoded(rows[-1], codes, width)


def _select(
    connection: Connection, scope: Scope, model_id: str, columns: Sequence[str]
) -> sqlite3.Cursor:
    where, values = filter_conditions.where_scope(scope)
    return connection.execute(
        f"SELECT {', '.join(('m.id', 'm.instance', 'm.n', *columns))} FROM vector_chunks m "
        f"WHERE m.model_id = ? AND {where}",
        [model_id, *values],
    )


def _decoded(row: tuple[Any, ...], codes: bytes, width: int) -> _Codes:
    """Return the codes of a block.

    :param row: the rest of the block, the scales last.
    :param width: the dimensions of a vector.
    """
    import numpy as np

    length, scales = row[2], row[-1]
    with decoding("blocks of vectors"):
        integers = np.frombuffer(codes, np.int8)
        width = width if len(integers) == length * width else 0
        if length > vector_blocks.SIZE:
            raise ValueError("a block is too long")
        factors = np.frombuffer(scales, "<f4").reshape(length, 1)
    return integers[: length * width].reshape(length, width), factors


def _compare(blocks: Iterable[_Codes], asked: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Return the cosines of each block, shape (n, vectors).

    numpy multiplies float32 far faster than int8, and turns int8 into it faster by way of int16.
    """
    import numpy as np

    shorts = np.empty((vector_blocks.SIZE, asked.shape[1]), np.int16)
    scratch = np.empty(shorts.shape, np.float32)
    compared = []
    for integers, factors in blocks:
        count, width = integers.shape
        if width:
            np.copyto(shorts[:count], integers)
            np.copyto(scratch[:count], shorts[:count])
            cosines = scratch[:count] @ asked.T
            cosines *= factors
        else:
            cosines = np.full((count, len(asked)), np.nan, np.float32)
        compared.append(cosines)
    return compared
