"""Every message of a scope with what ranking needs, in order of time, from a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reservoir_cli.messages import DOCUMENT_SOURCES, Scope
from reservoir_cli.storage import filter_conditions, properties
from reservoir_cli.storage.candidates import Asked, Candidates, with_words
from reservoir_cli.storage.postgres import ann_index, keyword_search, vectors
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.postgres.stemmer import Stemmer
from reservoir_cli.storage.sqlite.candidates import in_order

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_COLUMNS = {
    "ids": ("m.id", "i8"),
    "created_at": ("m.created_at", "i8"),
    "thread": ("m.thread", "i8"),
    "tokens": ("m.tokens", "i4"),
    "terms": ("m.terms", "i4"),
    "asks": ("m.asks", "i2"),
    "loose": ("(m.conversation_id IS NULL)::int", "i4"),
    "own": ("(m.instance IS NOT DISTINCT FROM ? AND m.source <> ALL(?))::int", "i4"),
}


def candidates(connection: Connection, stemmer: Stemmer, asked: Asked) -> Candidates:
    """Gather a scope for ranking."""
    import numpy as np

    scope, matrix = asked.scope, asked.matrix()
    where, values = filter_conditions.where_scope(scope)
    bound = [asked.own, list(DOCUMENT_SOURCES), *values]
    columns = in_order(connection.arrays(_COLUMNS, f"FROM messages m WHERE {where}", bound))
    ids = columns["ids"]
    found = Candidates(
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
        absent=0,
        passages=np.ones(len(ids), np.int32),
    )
    said = found.cosine
    if asked.model_id is not None and matrix is not None:
        cosine = _compare(connection, found, scope, asked.model_id, matrix)
        found.cosine[:], said = cosine[:, 0], np.ascontiguousarray(cosine[:, -1])
    return with_words(
        found,
        asked,
        said,
        lambda text: keyword_search.postings(connection, stemmer, found, scope, text),
        lambda absent: keyword_search.respell(
            connection, stemmer, found, scope, asked.question, absent
        ),
    )


def _compare(
    connection: Connection,
    found: Candidates,
    scope: Scope,
    model_id: str,
    asked: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Compare messages with vectors, of several passages the best, and fill in their number.

    :param asked: shape (vectors, dimensions).
    :returns: shape (n, vectors).
    """
    import numpy as np

    joined = np.full((len(found.ids), len(asked)), np.nan, np.float32)
    index = None
    if scope.partition is not None and scope.instance is None:
        known = properties.get(connection, ann_index.key(scope.partition))
        index = ann_index.read(known) if known else None
    if index is None or index.model_id != model_id:
        of, cosine = vectors.cosines(connection, scope, model_id, asked)
        places, known_here = found.places(of)
        np.fmax.at(joined, places, cosine[known_here])
        found.passages[:] = np.maximum(1, np.bincount(places, minlength=len(found.ids)))
        return joined
    partition = str(scope.partition)
    waiting = connection.arrays(
        {"ids": ("p.message_id", "i8")},
        "FROM pending p WHERE p.partition = ?",
        [partition],
    )
    for number, vector in enumerate(asked):
        of, near = ann_index.cosines(connection, partition, index, vector)
        # The others have vectors too, farther away than these, but for those that are pending.
        joined[:, number] = near.min(initial=1)
        joined[found.places(waiting["ids"])[0], number] = np.nan
        places, known_here = found.places(of)
        np.fmax.at(joined[:, number], places, near[known_here])
        several, counts = vectors.passage_counts(connection, partition, model_id, np.unique(of))
        places, known_here = found.places(several)
        found.passages[places] = counts[known_here]
    return joined
