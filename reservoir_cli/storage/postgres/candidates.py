"""Every message of a scope with what ranking needs, in order of time, from a server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reservoir_cli.messages import DOCUMENT_SOURCES, Scope
from reservoir_cli.storage import properties, reads
from reservoir_cli.storage.postgres import ann_index, keyword_search, vectors
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.postgres.stemmer import Stemmer
from reservoir_cli.storage.records import Candidates, Posting, Talk, TalkScores
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


def candidates(
    connection: Connection,
    stemmer: Stemmer,
    scope: Scope,
    own: str | None,
    question: str,
    model_id: str | None,
    vector: NDArray[np.float32] | None,
    talk: Talk | None = None,
) -> Candidates:
    """Gather a scope for ranking.

    :param own: the instance that history comes from.
    :param model_id: the model whose vectors are compared; ``None`` before the first.
    :param vector: of the question, by that model.
    :param talk: what was said just before; its vector is by that model, too.
    """
    import numpy as np

    where, values = reads.where_scope(scope)
    bound = [own, list(DOCUMENT_SOURCES), *values]
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
    if model_id is not None and vector is not None:
        asked = [vector] if talk is None or talk.vector is None else [vector, talk.vector]
        cosine = _compare(connection, found, scope, model_id, np.stack(asked))
        found.cosine[:], said = cosine[:, 0], np.ascontiguousarray(cosine[:, -1])

    def postings(text: str) -> tuple[tuple[Posting, ...], list[str]]:
        return keyword_search.postings(connection, stemmer, found, scope, text)

    stems, absent = postings(question)
    respelt, near = (
        keyword_search.respell(connection, stemmer, found, scope, question, absent)
        if absent
        else ((), ())
    )
    missing = len(absent) - len(near)
    answered = replace(found, postings=(*stems, *near), absent=missing, respelt=respelt)
    if talk is None:
        return answered
    turns = tuple((weight, postings(text)[0]) for weight, text in talk.turns)
    return replace(answered, talk=TalkScores(said, turns))


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
