"""Finding messages: by words, by meaning, or by both."""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from reservoir_cli import ranking
from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Scope, StoredMessage
from reservoir_cli.store import Store
from reservoir_cli.window import Candidates

Mode = Literal["hybrid", "keyword", "semantic"]
MODES: tuple[str, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that was found.

    :param rank: 1 for the best.
    :param score: what hits are ordered by: similarity, BM25, or cosine.
    :param cosine: ``None`` when the message or the question has no vector.
    :param linked: messages tied to it by a synapse or its trace, if they were asked for.
    :param all_words: a keyword search found all the words in it, not just any.
    """

    message: StoredMessage
    rank: int
    score: float
    similarity: float | None = None
    cosine: float | None = None
    bm25: float | None = None
    linked: tuple[StoredMessage, ...] = ()
    all_words: bool = True

    def to_row(self) -> dict[str, Any]:
        """The hit as plain JSON values."""
        return {
            **self.message.to_row(),
            "rank": self.rank,
            "score": self.score,
            "similarity": self.similarity,
            "cosine": self.cosine,
            "bm25": self.bm25,
            "linked": [each.to_row() for each in self.linked],
        }


def search(
    store: Store,
    embedder: Embedder | None,
    term: str,
    scope: Scope,
    *,
    mode: Mode,
    limit: int,
    threshold: float | None = None,
    link: bool = False,
    deduplicate: bool = False,
) -> list[Hit]:
    """Find the messages that fit a term best.

    :param embedder: ``None`` searches by words alone.
    :param threshold: list only what lies above it, on the scale (1 + cosine)/2.
    :param link: add to each hit what is tied to it by a synapse or its trace.
    :param deduplicate: of equal contents keep the best.
    """
    vector = embedder.encode_query(term) if embedder else None
    with store.snapshot():
        found = store.candidates(scope, None, term, vector)
        all_words = True
        if mode == "keyword":
            ranked, all_words = store.keyword(term, scope, -1)
            scored = dict(ranked)
        else:
            scored = _scores(found, mode)
        hits = _hits(store, found, scored, scope, mode, threshold, deduplicate, limit)
        if link:
            hits = [_linked(store, each, scope) for each in hits]
    return [replace(each, all_words=all_words) for each in hits]


def _scores(found: Candidates, mode: Mode) -> dict[int, float]:
    """Ids and scores of what matches at all, best first; ties newest first."""
    if mode == "semantic":
        scores, matches = found.cosine, np.flatnonzero(~np.isnan(found.cosine))
    else:
        scores = ranking.similarity(found.cosine, found.bm25)  # type: ignore[assignment]
        matches = np.flatnonzero(scores > 0)
    best = matches[np.lexsort((-matches, -scores[matches]))]
    return {int(found.ids[place]): float(scores[place]) for place in best}


def _hits(
    store: Store,
    found: Candidates,
    scored: dict[int, float],
    scope: Scope,
    mode: Mode,
    threshold: float | None,
    deduplicate: bool,
    limit: int,
) -> list[Hit]:
    place_of = {int(number): place for place, number in enumerate(found.ids)}
    similarity = ranking.similarity(found.cosine, found.bm25)
    cosine = {number: _cosine(found, place_of[number]) for number in scored}
    if threshold is not None:
        scored = {
            number: score
            for number, score in scored.items()
            if (known := cosine[number]) is not None and (1 + known) / 2 > threshold
        }
    hits: list[Hit] = []
    said: set[str] = set()
    numbers = list(scored)
    while numbers and len(hits) < limit:
        some, numbers = numbers[: limit * 2], numbers[limit * 2 :]
        rows = {each.id: each for each in store.by_id(some, scope)}
        for number in some:
            message, place = rows[number], place_of[number]
            if len(hits) == limit or (deduplicate and message.content.strip() in said):
                continue
            said.add(message.content.strip())
            bm25 = scored[number] if mode == "keyword" else float(found.bm25[place])
            alike = None if mode == "keyword" else float(similarity[place])
            hits.append(Hit(message, len(hits) + 1, scored[number], alike, cosine[number], bm25))
    return hits


def _cosine(found: Candidates, place: int) -> float | None:
    value = float(found.cosine[place])
    return None if np.isnan(value) else value


def _linked(store: Store, hit: Hit, scope: Scope) -> Hit:
    number = hit.message.id
    tied = store.with_partners([number, *store.tied([number], 1, scope)], scope)
    return replace(hit, linked=tuple(each for each in tied if each.id != number))
