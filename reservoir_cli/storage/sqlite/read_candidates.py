"""Gather every message of a scope with its ranking data, in order of time."""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from reservoir_cli.messages import DOCUMENT_SOURCES, Scope
from reservoir_cli.storage import portable_sql
from reservoir_cli.storage.keys import thread_key
from reservoir_cli.storage.portable_sql import decoding, placeholders
from reservoir_cli.storage.search import match_titles
from reservoir_cli.storage.search.candidates import (
    Candidates,
    Query,
    Uncompared,
    add_postings,
    sort,
)
from reservoir_cli.storage.sqlite import blocks as packed_blocks
from reservoir_cli.storage.sqlite.connection import Connection
from reservoir_cli.storage.sqlite.postings import correct_misspelt, read_postings
from reservoir_cli.storage.sqlite.vector_scan import Blocks, KeptBlocks, read_blocks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reservoir_cli.storage.search.match_titles import Titles

    Columns = dict[str, NDArray[Any]]  #: Data of messages by name; arrays of one length.


def gather(
    connection: Connection, query: Query, cache: QuestionCache | None, writes: int
) -> Uncompared:
    """Gather the messages of a scope for ranking.

    :param writes: a number that changes when the connection writes to the store.
    """
    import numpy as np

    scope, own = query.scope, query.own
    pending = _pending(connection, scope, own)
    scan = read_blocks(connection, query, cache.blocks if cache else None)
    build = cache.timeline if cache else build_timeline
    timeline = build(scan.blocks if scan else None, pending, own)
    ids, flags = timeline.columns["ids"], timeline.columns["flags"]
    candidates = Candidates(
        ids=ids,
        created_at=timeline.columns["created_at"],
        tokens=timeline.columns["tokens"],
        terms=timeline.columns["word_counts"],
        asks=(flags & packed_blocks.ASKS) > 0,
        own=timeline.columns["own"].copy(),
        thread=timeline.columns["threads"],
        loose=(flags & packed_blocks.LOOSE) > 0,
        cosine=np.full(len(ids), np.nan, np.float32),
        by_id=timeline.by_id,
        postings=(),
        absent=(),
        passages=timeline.passages,
        cache=timeline.cache,
    )
    documents, _ = candidates.positions(_documents(connection, scope, own))
    candidates.own[documents] = False
    read_titles = partial(cache.titles, writes) if cache else match_titles.read_titles
    candidates = add_postings(
        candidates,
        query,
        lambda text: read_postings(connection, candidates, scope, text),
        lambda stems: match_titles.find_titled(connection, candidates, scope, stems, read_titles),
        lambda absent: correct_misspelt(connection, candidates, query.question, absent),
    )
    if scan is None or scan.compare is None:
        return Uncompared(candidates)
    compare = scan.compare
    return Uncompared(candidates, lambda: timeline.best(compare(query.matrix())))


def _documents(connection: Connection, scope: Scope, own: str | None) -> NDArray[np.int64]:
    import numpy as np

    rows = connection.execute(
        f"""
        SELECT id FROM messages WHERE partition = ? AND instance = ?
        AND source IN ({placeholders(DOCUMENT_SOURCES)}) ORDER BY id
        """,
        [scope.partition, own, *DOCUMENT_SOURCES],
    )
    return np.array([row[0] for row in rows], np.int64)


def _pending(connection: Connection, scope: Scope, own: str | None) -> Columns:
    """Return the messages that have no vector yet, in the form of blocks.

    One row holds all of them: after a large import, a row per message takes twice as long.
    """
    import numpy as np

    where, values = portable_sql.where_scope(scope)
    *joined, partitions, instances, conversations = connection.execute(
        f"""
        SELECT group_concat(m.id), group_concat(m.created_at), group_concat(m.tokens),
        group_concat(m.word_count), group_concat(m.has_question_mark),
        group_concat(m.instance IS ?), group_concat(m.conversation_id IS NULL),
        json_group_array(m.partition),
        json_group_array(m.instance), json_group_array(m.conversation_id)
        FROM pending p CROSS JOIN messages m ON m.id = p.message_id WHERE {where}
        """,
        [own, *values],
    ).fetchone()
    with decoding("messages"):
        arrays = [np.fromstring(column or "", np.int64, sep=",") for column in joined]
        names = list(zip(*map(json.loads, (partitions, instances, conversations)), strict=True))
        keys = {name: thread_key(*name) for name in dict.fromkeys(names)}
        threads = np.array([keys[name] for name in names], np.int64)
        packed_blocks.require_length(arrays, len(threads))
    ids, created_at, tokens, terms, asks, owned, loose = arrays
    return {
        "ids": ids,
        "created_at": created_at,
        "threads": threads,
        "tokens": tokens.astype(np.int32),
        "word_counts": terms.astype(np.int32),
        "flags": (packed_blocks.ASKS * (asks != 0) + packed_blocks.LOOSE * loose).astype(np.uint8),
        "own": owned.astype(bool),
    }


class Timeline(NamedTuple):
    """The messages of a scope in order of time, the same for every question; shape (n,).

    :param order: the positions at which their passages were read, shape (passages,).
    :param first: the position of each message's first passage in this order.
    :param by_id: the positions of the messages in order of id.
    """

    columns: Columns
    order: NDArray[np.intp]
    first: NDArray[np.intp]
    by_id: NDArray[np.intp]
    passages: NDArray[np.int32]
    cache: dict[Hashable, Any]

    def best(self, cosine: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the best cosine of each message's passages, shape (n, vectors).

        :param cosine: of the embedded passages as they were read, shape (passages, vectors).
        """
        import numpy as np

        if missing := len(self.order) - len(cosine):
            unknown = np.full((missing, cosine.shape[1]), np.nan, np.float32)
            cosine = np.concatenate([cosine, unknown])
        ordered = cosine[self.order]
        if len(self.first) == len(ordered):
            return ordered
        best: NDArray[np.float32] = np.fmax.reduceat(ordered, self.first)
        return best


def build_timeline(blocks: Blocks | None, pending: Columns, own: str | None) -> Timeline:
    """Sort passages by time, and group them by message."""
    import numpy as np

    columns = pending
    if blocks:
        columns = {name: blocks.column(name) for name in pending if name != "own"}
        columns["own"] = blocks.of_instance(own)
        if len(pending["ids"]):
            columns = {name: np.concatenate([columns[name], pending[name]]) for name in pending}
    count = len(columns["ids"])
    columns = sort({**columns, "order": np.arange(count)})
    order, ids = columns.pop("order"), columns["ids"]
    first = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]])[:count])
    if len(first) < count:
        columns = {name: values[first] for name, values in columns.items()}
    by_id = np.argsort(columns["ids"], kind="stable")
    for values in (*columns.values(), by_id):
        values.flags.writeable = False
    passages = np.ones(count, np.int32)
    if len(first) < count:
        passages = np.diff(first, append=count).astype(np.int32)
    return Timeline(columns, order, first, by_id, passages, {})


class QuestionCache:
    """The data that a warm store keeps in memory between questions."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self.helper = ThreadPoolExecutor(1, "helper")
        self.blocks = KeptBlocks(self.helper)
        self._last: tuple[Blocks | None, list[bytes], str | None, Timeline] | None = None
        self._titles: tuple[tuple[object, ...], Titles] | None = None

    def timeline(self, blocks: Blocks | None, pending: Columns, own: str | None) -> Timeline:
        """Return :func:`build_timeline` of these, or the last one if nothing has changed."""
        packed = [values.tobytes() for values in pending.values()]
        last = self._last
        if last is None or last[0] is not blocks or last[1:3] != (packed, own):
            self._last = last = blocks, packed, own, build_timeline(blocks, pending, own)
        return last[-1]

    def titles(self, writes: int, connection: portable_sql.Connection, scope: Scope) -> Titles:
        """Return the titles of a scope: the last ones, if nothing was written meanwhile."""
        [[of_others]] = connection.execute("PRAGMA data_version").fetchall()
        state = connection, writes, of_others, scope
        if self._titles is None or self._titles[0] != state:
            self._titles = state, match_titles.read_titles(connection, scope)
        return self._titles[1]
