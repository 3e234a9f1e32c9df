"""Finding messages: by words, by meaning, or by both."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Scope, StoredMessage, plain_text, to_epoch_ms
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval import filters, ranking
from reservoir_cli.retrieval.dates import date_scores, find_dates
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.retrieval.respelling import respelling_notes, without_known_words
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.highlight import find_words
from reservoir_cli.storage.records import Filter, Passage

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
    :param passage: where the part nearest to the question stands in the text, if it was asked for
        and the message has more than one.
    :param words: where words of the question stand in the text, if it was asked for.
    :param title: of its conversation, if it was asked for.
    :param notes: what a person should know about the search.
    """

    message: StoredMessage
    rank: int
    score: float
    similarity: float | None = None
    cosine: float | None = None
    bm25: float | None = None
    linked: tuple[StoredMessage, ...] = ()
    all_words: bool = True
    passage: tuple[int, int] | None = None
    words: tuple[tuple[int, int], ...] = ()
    title: str | None = None
    notes: tuple[str, ...] = ()

    def masked(self, mask: Redactor) -> "Hit":
        """Return the hit as it may be printed."""
        message = mask.message(self.message)
        return replace(
            self,
            message=message,
            linked=tuple(mask.messages(self.linked)),
            passage=self.passage if message is self.message else None,
            title=self.title and mask.text(message.partition, self.title),
        )

    def to_row(self) -> dict[str, Any]:
        """Return the hit as plain JSON values."""
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
    where: Filter = Filter(),  # noqa: B008 - it is frozen
    passages: bool = False,
    redactor: Redactor | None = None,
) -> list[Hit]:
    """Find the messages that fit a term best.

    :param embedder: ``None`` searches by words alone.
    :param now: what dates such as ``yesterday`` are counted from, aware.
    :param threshold: list only what lies above it, on the scale (1 + cosine)/2.
    :param link: add to each hit what is tied to it by a synapse or its trace.
    :param deduplicate: of equal contents keep the best.
    :param where: list only messages that pass; scores are those of the whole scope.
    :param passages: add the best passage of each hit, and the title of its conversation.
    :param redactor: hides the secrets of words that were searched for instead of misspelt ones;
        without it they are not named.
    """
    wanted = _Wanted(scope, limit, threshold, link, deduplicate, where, redactor)
    with store.snapshot():
        vector = embedder.encode_query(term) if embedder and mode != "keyword" else None
        if mode == "keyword":
            hits = _by_words(store, term, wanted)
        else:
            hits = _by_rank(store, term, (embedder, vector), settings, now, mode, wanted)
        return _with_passages(store, hits, vector) if passages else hits


def _by_rank(
    store: Store,
    term: str,
    asked: tuple[Embedder | None, NDArray[np.float32] | None],
    settings: Settings,
    now: datetime,
    mode: Mode,
    wanted: "_Wanted",
) -> list[Hit]:
    """Find hits by similarity, or by meaning alone.

    :param asked: the model, and the vector of the term.
    """
    embedder, vector = asked
    found = store.candidates(wanted.scope, None, term, vector, wanted.where)
    found = without_known_words(found, embedder)
    dates = date_scores(find_dates(term, now), found.created_at, now.tzinfo or UTC)
    scored = ranking.score(found, settings, to_epoch_ms(now), dates)
    hits = _by_score(store, filters.keep(scored, filters.passing(found)), mode, wanted)
    if mode == "semantic" or wanted.redactor is None:
        return hits
    notes = respelling_notes(found, store, wanted.scope, wanted.redactor)
    return [replace(hit, notes=notes) for hit in hits] if notes else hits


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What hits are to be like; see :func:`search`."""

    scope: Scope
    limit: int
    threshold: float | None
    link: bool
    deduplicate: bool
    where: Filter
    redactor: Redactor | None


def _by_words(store: Store, term: str, wanted: _Wanted) -> list[Hit]:
    """Hits for exactly what was typed."""
    order, all_words = store.keyword(term, wanted.scope, -1, wanted.where)
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
    """Return the first messages of an order, without repetitions if that is asked for.

    Where several partitions of a server use one id, all who have it are told.
    """
    numbers = list(dict.fromkeys(numbers))
    chosen: list[StoredMessage] = []
    said: set[str] = set()
    limit = wanted.limit
    while numbers and len(chosen) < limit:
        some, numbers = numbers[: 2 * limit], numbers[2 * limit :]
        rows: dict[int, list[StoredMessage]] = {}
        for row in _those_passing(store.by_id(some, wanted.scope), store, wanted):
            rows.setdefault(row.id, []).append(row)
        for row in (row for number in some for row in rows[number]):
            if not wanted.deduplicate or row.content.strip() not in said:
                said.add(row.content.strip())
                chosen.append(row)
    return chosen[:limit]


def _those_passing(rows: list[StoredMessage], store: Store, wanted: _Wanted) -> list[StoredMessage]:
    """Drop messages of other partitions that share an id with one that passes the filter."""
    if wanted.where == Filter() or wanted.scope.partition is not None:
        return rows
    passing = set(store.find(wanted.scope, wanted.where))
    return [row for row in rows if row.key in passing]


def _linked(store: Store, row: StoredMessage, wanted: _Wanted) -> tuple[StoredMessage, ...]:
    if not wanted.link:
        return ()
    scope = Scope(row.partition, wanted.scope.instance)
    near = [row.id, *store.linked([row.id], 1, scope)]
    return tuple(each for each in store.with_partners(near, scope) if each.id != row.id)


def _with_passages(
    store: Store, hits: Sequence[Hit], vector: NDArray[np.float32] | None
) -> list[Hit]:
    """Add to hits their best passages, and the titles of their conversations."""
    keys = [hit.message.key for hit in hits]
    passages = store.passages(keys) if vector is not None else {}
    titles = _titles(store, [hit.message for hit in hits])
    return [
        replace(
            hit,
            passage=_nearest_passage(passages.get(hit.message.key, ()), vector),
            title=titles.get(
                (hit.message.partition, hit.message.instance, hit.message.conversation_id)
            ),
        )
        for hit in hits
    ]


def with_words(hits: Sequence[Hit], term: str, mode: Mode) -> list[Hit]:
    """Add to hits where words of the question stand in their texts, as they are printed."""
    texts = [plain_text(hit.message) for hit in hits]
    found = find_words(texts, term, typed=mode == "keyword")
    return [replace(hit, words=tuple(words)) for hit, words in zip(hits, found, strict=True)]


def _nearest_passage(
    passages: Sequence[Passage], vector: NDArray[np.float32] | None
) -> tuple[int, int] | None:
    """Return where the passage nearest to the question stands, of several."""
    if vector is None or len(passages) < 2:
        return None
    nearest = max(passages, key=lambda passage: float(passage.vector @ vector))
    return nearest.start, nearest.end


def _titles(
    store: Store, messages: Sequence[StoredMessage]
) -> dict[tuple[str, str, str | None], str]:
    """Return the titles of conversations by (partition, instance, id)."""
    ids: dict[str, set[str]] = {}
    for message in messages:
        if message.conversation_id:
            ids.setdefault(message.partition, set()).add(message.conversation_id)
    return {
        (partition, *place): about.title
        for partition, numbers in ids.items()
        for place, about in store.known_conversations(partition, sorted(numbers)).items()
        if about.title
    }
