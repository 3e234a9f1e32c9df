"""Finding messages: by words, by meaning, or by both."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import numpy as np

from reservoir_cli import ranking
from reservoir_cli.dates import date_scores, find_dates
from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Scope, StoredMessage, to_epoch_ms
from reservoir_cli.settings import Settings
from reservoir_cli.store import Store
from reservoir_cli.window import Candidates, Scored

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
    settings: Settings,
    now: datetime,
    *,
    mode: Mode,
    limit: int,
    threshold: float | None = None,
    link: bool = False,
    deduplicate: bool = False,
) -> list[Hit]:
    """Find the messages that fit a term best.

    :param embedder: ``None`` searches by words alone.
    :param now: what dates such as ``yesterday`` are counted from, aware.
    :param threshold: list only what lies above it, on the scale (1 + cosine)/2.
    :param link: add to each hit what is tied to it by a synapse or its trace.
    :param deduplicate: of equal contents keep the best.
    """
    vector = embedder.encode_query(term) if embedder else None
    with store.snapshot():
        found = store.candidates(scope, None, term, vector)
        dates = date_scores(find_dates(term, now), found.created_at, now.tzinfo or UTC)
        scored = ranking.score(found, settings, to_epoch_ms(now), dates)
        if mode == "keyword":
            ranked, all_words = store.keyword(term, scope, -1)
            order = dict(ranked)
        else:
            order, all_words = _order(scored, mode), True
        if threshold is not None:
            near = found.ids[(1 + np.nan_to_num(found.cosine, nan=-1)) / 2 > threshold]
            above = {int(number) for number in near}
            order = {number: value for number, value in order.items() if number in above}
        rows = _rows(store, list(order), scope, limit, deduplicate)
        place_of = {int(number): place for place, number in enumerate(found.ids)}
        hits = [
            Hit(
                row,
                rank,
                order[row.id],
                None if mode == "keyword" else float(scored.similarity[place_of[row.id]]),
                _cosine(found, place_of[row.id]),
                order[row.id] if mode == "keyword" else float(scored.bm25[place_of[row.id]]),
                _linked(store, row.id, scope) if link else (),
                all_words,
            )
            for rank, row in enumerate(rows, 1)
        ]
    return hits


def _order(scored: Scored, mode: Mode) -> dict[int, float]:
    """Ids and scores of what matches at all, best first; ties newest first."""
    found = scored.candidates
    if mode == "semantic":
        scores: ranking.Floats = found.cosine.astype(np.float64)
        matches = np.flatnonzero(~np.isnan(scores))
    else:
        scores = scored.similarity
        matches = np.flatnonzero(~np.isnan(found.cosine) | (scored.bm25 > 0))
    best = matches[np.lexsort((-matches, -scores[matches]))]
    return {int(found.ids[place]): float(scores[place]) for place in best}


def _rows(
    store: Store, numbers: list[int], scope: Scope, limit: int, deduplicate: bool
) -> list[StoredMessage]:
    """The first messages of an order, without those that say the same if that is asked for."""
    chosen: list[StoredMessage] = []
    said: set[str] = set()
    while numbers and len(chosen) < limit:
        some, numbers = numbers[: 2 * limit], numbers[2 * limit :]
        rows = {each.id: each for each in store.by_id(some, scope)}
        for row in (rows[number] for number in some):
            if not deduplicate or row.content.strip() not in said:
                said.add(row.content.strip())
                chosen.append(row)
    return chosen[:limit]


def _cosine(found: Candidates, place: int) -> float | None:
    value = float(found.cosine[place])
    return None if np.isnan(value) else value


def _linked(store: Store, number: int, scope: Scope) -> tuple[StoredMessage, ...]:
    tied = store.with_partners([number, *store.tied([number], 1, scope)], scope)
    return tuple(each for each in tied if each.id != number)
