"""Finding messages: by words, by meaning, or by both."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import numpy as np

from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Scope, StoredMessage, to_epoch_ms
from reservoir_cli.redaction import Mask
from reservoir_cli.retrieval import ranking
from reservoir_cli.retrieval.dates import date_scores, find_dates
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.base import Store

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

    def masked(self, mask: Mask) -> "Hit":
        """The hit as it may be printed."""
        return replace(
            self, message=mask.message(self.message), linked=tuple(mask.messages(self.linked))
        )

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
    wanted = _Wanted(scope, limit, threshold, link, deduplicate)
    with store.snapshot():
        if mode == "keyword":
            return _by_words(store, term, wanted)
        vector = embedder.encode_query(term) if embedder else None
        found = store.candidates(scope, None, term, vector)
        dates = date_scores(find_dates(term, now), found.created_at, now.tzinfo or UTC)
        scored = ranking.score(found, settings, to_epoch_ms(now), dates)
        return _by_score(store, scored, mode, wanted)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What hits are to be like; see :func:`search`."""

    scope: Scope
    limit: int
    threshold: float | None
    link: bool
    deduplicate: bool


def _by_words(store: Store, term: str, wanted: _Wanted) -> list[Hit]:
    """Hits for exactly what was typed."""
    order, all_words = store.keyword(term, wanted.scope, -1)
    scores = dict(order)
    rows = _rows(store, list(scores), wanted)
    return [
        Hit(
            row,
            rank,
            score=scores[row.id],
            bm25=scores[row.id],
            linked=_linked(store, row, wanted),
            all_words=all_words,
        )
        for rank, row in enumerate(rows, 1)
    ]


def _by_score(store: Store, scored: Scored, mode: Mode, wanted: _Wanted) -> list[Hit]:
    """Hits by similarity, or by cosine alone."""
    found = scored.candidates
    by_meaning = mode == "semantic"
    scores: ranking.Floats = found.cosine.astype(np.float64) if by_meaning else scored.similarity
    known = ~np.isnan(found.cosine)
    matches = known if by_meaning else known | (scored.bm25 > 0)
    if wanted.threshold is not None:
        matches &= (1 + np.nan_to_num(found.cosine, nan=-1)) / 2 > wanted.threshold
    places = np.flatnonzero(matches)
    # Equal contents may take up places; with them everything is put in order.
    count = len(places) if wanted.deduplicate else wanted.limit
    ranked = places[ranking.best(scores[places], count)]
    rows = _rows(store, found.ids[ranked].tolist(), wanted)
    at, _ = found.places(np.array([row.id for row in rows], np.int64))
    return [
        Hit(
            row,
            rank,
            score=float(scores[place]),
            similarity=float(scored.similarity[place]),
            cosine=float(found.cosine[place]) if known[place] else None,
            bm25=float(scored.bm25[place]),
            linked=_linked(store, row, wanted),
        )
        for rank, (row, place) in enumerate(zip(rows, at.tolist(), strict=True), 1)
    ]


def _rows(store: Store, numbers: list[int], wanted: _Wanted) -> list[StoredMessage]:
    """The first messages of an order, without those that say the same if that is asked for.

    Where several partitions of a server use one id, all who have it are told.
    """
    numbers = list(dict.fromkeys(numbers))
    chosen: list[StoredMessage] = []
    said: set[str] = set()
    limit = wanted.limit
    while numbers and len(chosen) < limit:
        some, numbers = numbers[: 2 * limit], numbers[2 * limit :]
        rows: dict[int, list[StoredMessage]] = {}
        for row in store.by_id(some, wanted.scope):
            rows.setdefault(row.id, []).append(row)
        for row in (row for number in some for row in rows.get(number, ())):
            if not wanted.deduplicate or row.content.strip() not in said:
                said.add(row.content.strip())
                chosen.append(row)
    return chosen[:limit]


def _linked(store: Store, row: StoredMessage, wanted: _Wanted) -> tuple[StoredMessage, ...]:
    if not wanted.link:
        return ()
    scope = Scope(row.partition, wanted.scope.instance)
    near = [row.id, *store.linked([row.id], 1, scope)]
    return tuple(each for each in store.with_partners(near, scope) if each.id != row.id)
