"""Gather every message of a scope with its ranking data from a server, in order of time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from reservoir_cli.messages import DOCUMENT_SOURCES
from reservoir_cli.storage import portable_sql, properties
from reservoir_cli.storage.postgres import ann_index, keyword_search, vectors
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.search import match_titles
from reservoir_cli.storage.search.candidates import (
    Candidates,
    Query,
    Uncompared,
    add_postings,
    sort,
)
from reservoir_cli.storage.search.quantize import encode_queries

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_COLUMNS = {
    "ids": ("m.id", "i8"),
    "created_at": ("m.created_at", "i8"),
    "thread": ("m.thread", "i8"),
    "tokens": ("m.tokens", "i4"),
    "terms": ("m.word_count", "i4"),
    "asks": ("m.has_question_mark", "i4"),
    "loose": ("(m.conversation_id IS NULL)::int", "i4"),
    "own": ("(m.instance IS NOT DISTINCT FROM ? AND m.source <> ALL(?))::int", "i4"),
}


def gather(connection: Connection, query: Query) -> Uncompared:
    """Gather the messages of a scope for ranking."""
    import numpy as np

    scope = query.scope
    where, values = portable_sql.where_scope(scope)
    bound = [query.own, list(DOCUMENT_SOURCES), *values]
    columns = sort(connection.arrays(_COLUMNS, f"FROM messages m WHERE {where}", bound))
    ids = columns["ids"]
    candidates = Candidates(
        ids=ids,
        created_at=columns["created_at"],
        tokens=columns["tokens"],
        terms=columns["terms"],
        asks=columns["asks"] > 0,
        own=columns["own"] > 0,
        thread=columns["thread"],
        loose=columns["loose"] > 0,
        cosine=np.full(len(ids), np.nan, np.float32),
        by_id=np.argsort(ids, kind="stable"),
        postings=(),
        absent=(),
        passages=np.ones(len(ids), np.int32),
        cache={},
    )
    candidates = add_postings(
        candidates,
        query,
        lambda text: keyword_search.read_postings(connection, candidates, scope, text),
        lambda stems: match_titles.find_titled(connection, candidates, scope, stems),
        lambda absent: keyword_search.correct_misspelt(
            connection, candidates, scope, query.question, absent
        ),
    )
    if query.model_id is None or query.vector is None:
        return Uncompared(candidates)
    return Uncompared(candidates, partial(_compare, connection, candidates, query, query.model_id))


def _compare(
    connection: Connection, candidates: Candidates, query: Query, model_id: str
) -> NDArray[np.float32]:
    """Compare messages with a question, each by its best passage, and fill in ``passages``."""
    import numpy as np

    # As exact as in a file, so that both stores give the same answers.
    scope, queries = query.scope, encode_queries(query.matrix()).restore()
    joined = np.full((len(candidates.ids), len(queries)), np.nan, np.float32)
    index = None
    if scope.partition is not None and scope.instance is None:
        description = properties.get(connection, ann_index.key(scope.partition))
        index = ann_index.read(description) if description else None
    if index is None or index.model_id != model_id:
        ids, cosine = vectors.cosines(connection, scope, model_id, queries)
        positions, is_candidate = candidates.positions(ids)
        np.fmax.at(joined, positions, cosine[is_candidate])
        candidates.passages[:] = np.maximum(
            1, np.bincount(positions, minlength=len(candidates.ids))
        )
        return joined
    partition = str(scope.partition)
    waiting = connection.arrays(
        {"ids": ("p.message_id", "i8")}, "FROM pending p WHERE p.partition = ?", [partition]
    )
    for column, vector in enumerate(queries):
        ids, near = ann_index.cosines(connection, partition, index, vector)
        # All other embedded messages are at most as near as the last of these.
        joined[:, column] = near.min(initial=1)
        joined[candidates.positions(waiting["ids"])[0], column] = np.nan
        positions, is_candidate = candidates.positions(ids)
        np.fmax.at(joined[:, column], positions, near[is_candidate])
        embedded, counts = vectors.passage_counts(connection, partition, model_id, np.unique(ids))
        positions, is_candidate = candidates.positions(embedded)
        candidates.passages[positions] = counts[is_candidate]
    return joined
