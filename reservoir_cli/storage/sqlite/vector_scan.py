"""Compare all passages of a scope with a question by their int8 codes.

A warm store keeps the blocks in memory. For each question it reads the ids of all blocks, which an
index holds, and the contents of new ones: a block is never changed but replaced.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from reservoir_cli.messages import Scope
from reservoir_cli.storage import portable_sql
from reservoir_cli.storage.portable_sql import batches, decoding, placeholders
from reservoir_cli.storage.search.candidates import Query
from reservoir_cli.storage.search.quantize import Queries, encode_queries
from reservoir_cli.storage.sqlite import blocks as packed_blocks
from reservoir_cli.storage.sqlite.connection import Connection

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import numpy as np
    from numpy.typing import NDArray

    _Codes = NDArray[np.int8]  #: The codes of one or several blocks, shape (n, dimensions).
    _Groups = dict[tuple[int, ...], _Codes]  #: The codes of groups by the ids of their blocks.
    #: Takes the vectors of :meth:`Query.matrix`, and returns the cosines of all passages by their
    #: codes, shape (n, vectors); NaN for those without a vector.
    Compare = Callable[[NDArray[np.float32]], NDArray[np.float32]]

#: The columns of a block that ranking reads, except its codes.
HEAD = tuple(name for name in packed_blocks.COLUMNS if name not in ("starts", "ends", "codes"))
_ROW = ("id", "instance", "n", *HEAD)
_AT_ONCE = 8  #: How many blocks are compared at once if they are kept.
MOST_KEPT = 256 * 1024**2  #: The most bytes of codes that are kept between questions.


class Blocks:
    """The blocks of a scope without their codes, in the order they were read."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self.rows = rows

    @cached_property
    def ids(self) -> list[int]:
        """The ids of the blocks."""
        return [row[0] for row in self.rows]

    def column(self, name: str) -> NDArray[Any]:
        """Return a column of all passages, shape (n,)."""
        import numpy as np

        index = _ROW.index(name)
        with decoding("blocks of vectors"):
            values = np.frombuffer(
                b"".join([row[index] for row in self.rows]), packed_blocks.COLUMNS[name]
            )
            packed_blocks.require_length([values], sum(row[2] for row in self.rows))
        return values

    @cached_property
    def scales(self) -> NDArray[np.float32]:
        """What the codes are multiplied by, shape (n,)."""
        return self.column("scales")

    @cached_property
    def is_empty(self) -> NDArray[np.bool_]:
        """Whether each passage has no vector, shape (n,)."""
        is_empty: NDArray[np.bool_] = (self.column("flags") & packed_blocks.EMBEDDED) == 0
        return is_empty

    def of_instance(self, name: str | None) -> NDArray[np.bool_]:
        """Return whether each passage belongs to an instance, shape (n,)."""
        import numpy as np

        is_own = np.array([row[1] == name for row in self.rows], bool)
        return np.repeat(is_own, [row[2] for row in self.rows])


class KeptBlocks:
    """A cache of the blocks and codes of recently used scopes.

    The codes of a group of blocks are one array: with an array for each block, two threads that
    compare them would mostly wait for Python's lock.
    """

    def __init__(self, helper: Executor) -> None:
        self._helper = helper
        self._cache: dict[tuple[Scope, str], tuple[Blocks, _Groups]] = {}
        self._too_large: set[tuple[Scope, str]] = set()

    def read(
        self, connection: Connection, scope: Scope, model_id: str, width: int
    ) -> tuple[Blocks, list[_Codes]] | None:
        """Return the blocks of a scope and the codes of all groups; ``None`` if too large to keep.

        If no block has changed, the same :class:`Blocks` object is returned again.
        """
        if (scope, model_id) in self._too_large:
            return None
        blocks, groups = self._cache.pop((scope, model_id), (Blocks([]), {}))
        block_ids = [row[0] for row in _select(connection, scope, model_id, ["id"])]
        if block_ids != blocks.ids:
            kept_ids = set(blocks.ids).intersection(block_ids)
            size = sum(row[2] * width for row in blocks.rows if row[0] in kept_ids)
            missing = [block_id for block_id in block_ids if block_id not in kept_ids]
            for ids in batches(missing):
                lengths = f"SUM(LENGTH(codes)) FROM blocks WHERE id IN ({placeholders(ids)})"
                size += connection.execute(f"SELECT {lengths}", ids).fetchone()[0]
            if size > MOST_KEPT:
                self._too_large.add((scope, model_id))
                return None
            blocks, groups = _update(connection, block_ids, blocks, groups, width)
        self._cache[scope, model_id] = blocks, groups
        while sum(_size(groups) for _, groups in self._cache.values()) > MOST_KEPT:
            del self._cache[next(iter(self._cache))]
        return blocks, list(groups.values())

    def compare(self, groups: Sequence[_Codes], queries: Queries) -> list[NDArray[np.float32]]:
        """Return the products of all passages like :func:`_compare`, by two threads."""
        middle = len(groups) // 2
        second_half = self._helper.submit(_compare, groups[middle:], queries)
        return [*_compare(groups[:middle], queries), *second_half.result()]


def _size(groups: _Groups) -> int:
    return sum(codes.nbytes for codes in groups.values())


def _divide(groups: _Groups, lengths: Mapping[int, int]) -> Iterator[tuple[int, _Codes]]:
    for block_ids, codes in groups.items():
        start = 0
        for block_id in block_ids:
            yield block_id, codes[start : (start := start + lengths[block_id])]


def _update(
    connection: Connection, block_ids: Sequence[int], blocks: Blocks, groups: _Groups, width: int
) -> tuple[Blocks, _Groups]:
    """Return these blocks and their groups, reading only what earlier ones lack.

    Codes are read group by group: reading all of them first would hold them twice, and the
    allocator would keep that memory.
    """
    import numpy as np

    rows = {row[0]: row for row in blocks.rows}
    codes = dict(_divide(groups, {row[0]: row[2] for row in blocks.rows}))
    updated: _Groups = {}
    for start in range(0, len(block_ids), _AT_ONCE):
        group = tuple(block_ids[start : start + _AT_ONCE])
        if group in groups:
            updated[group] = groups[group]
            continue
        read = {block_id: codes[block_id] for block_id in group if block_id in codes}
        missing = [block_id for block_id in group if block_id not in read]
        for *columns, packed in _read_blocks(connection, missing):
            row = tuple(columns)
            rows[row[0]], read[row[0]] = row, _decode(row[2], packed, width)
        updated[group] = np.concatenate([read[block_id] for block_id in group])
    return Blocks([rows[block_id] for block_id in block_ids]), updated


def _read_blocks(connection: Connection, block_ids: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    for ids in batches(block_ids):
        yield from connection.execute(
            f"SELECT {', '.join((*_ROW, 'codes'))} FROM blocks WHERE id IN ({placeholders(ids)})",
            ids,
        )


class Scan(NamedTuple):
    """The blocks of a scope, whose passages can be compared with a question."""

    blocks: Blocks
    compare: Compare | None


def read_blocks(connection: Connection, query: Query, cache: KeptBlocks | None) -> Scan | None:
    """Read the blocks of a scope; ``None`` if the store has no model.

    Unless they are kept, they are compared while they are read, so that a million codes are never
    in memory together.

    :param cache: the blocks, if the store is warm.
    """
    scope, model_id = query.scope, query.model_id
    if model_id is None:
        return None
    if query.vector is None:
        return Scan(Blocks(_select(connection, scope, model_id, _ROW).fetchall()), None)
    width = query.vector.dimensions
    if cache and (read := cache.read(connection, scope, model_id, width)):
        blocks, groups = read

        def compare(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
            queries = encode_queries(vectors)
            return _to_cosines(blocks, cache.compare(groups, queries), queries)

        return Scan(blocks, compare)
    blocks = Blocks([])
    codes_read = _read(connection, scope, model_id, width, blocks.rows)
    queries = encode_queries(query.matrix())
    cosine = _to_cosines(blocks, _compare(codes_read, queries), queries)
    return Scan(blocks, lambda _: cosine)


def _to_cosines(
    blocks: Blocks, products: Sequence[NDArray[np.float32]], queries: Queries
) -> NDArray[np.float32]:
    import numpy as np

    parts = np.concatenate(products)
    count = len(queries.steps)
    cosine: NDArray[np.float32] = parts[:, :count] * (128 * queries.steps)
    cosine += parts[:, count:] * queries.steps
    cosine *= blocks.scales[:, None]
    cosine[blocks.is_empty] = np.nan
    return cosine


def _read(
    connection: Connection, scope: Scope, model_id: str, width: int, rows: list[tuple[Any, ...]]
) -> Iterator[_Codes]:
    for *row, codes in _select(connection, scope, model_id, (*_ROW, "codes")):
        rows.append(tuple(row))
        yield _decode(rows[-1][2], codes, width)


def _select(
    connection: Connection, scope: Scope, model_id: str, columns: Sequence[str]
) -> sqlite3.Cursor:
    where, values = portable_sql.where_scope(scope)
    return connection.execute(
        f"SELECT {', '.join(columns)} FROM blocks m WHERE m.model_id = ? AND {where}",
        [model_id, *values],
    )


def _decode(length: int, packed: bytes, width: int) -> _Codes:
    """Decode the codes of a block; zeros if nothing in it is embedded."""
    import numpy as np

    with decoding("blocks of vectors"):
        codes = np.frombuffer(packed, np.int8)
        if length > packed_blocks.SIZE:
            raise ValueError("a block is too long")
    if len(codes) != length * width:
        return np.zeros((length, width), np.int8)
    return codes.reshape(length, width)


def _compare(groups: Iterable[_Codes], queries: Queries) -> list[NDArray[np.float32]]:
    """Return the products of all codes, in arrays of shape (n, 2 · vectors), of which one is empty.

    numpy would convert all codes to float32 first, and take three times as long.
    """
    import numpy as np
    from simsimd import cdist

    none = np.empty((0, len(queries.codes)), np.float32)  # there may be no group
    products = (
        np.asarray(cdist(codes, queries.codes, "dot", out_dtype="float32"))
        for codes in groups
        if len(codes)  # simsimd refuses empty arrays, as in a damaged block
    )
    return [none, *products]
