"""Find messages by similarity, or by cosine only."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import to_epoch_ms
from reservoir_cli.retrieval import filtered_scores, ranking
from reservoir_cli.retrieval.dates import date_scores, find_dates
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.retrieval.respelling import respelling_notes, without_known_words
from reservoir_cli.retrieval.search_hits import Hit, Wanted, linked_with, rows_of
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.base import Store


def search(
    store: Store,
    term: str,
    asked: tuple[Embedder | None, NDArray[np.float32] | None],
    settings: Settings,
    now: datetime,
    wanted: Wanted,
    *,
    by_meaning: bool,
) -> list[Hit]:
    """Find hits by similarity, or by cosine only.

    :param asked: the model, and the vector of the term.
    :param by_meaning: order by cosine only.
    """
    embedder, vector = asked
    found = store.candidates(wanted.scope, None, term, vector, wanted.where)
    found = without_known_words(found, embedder)
    dates = date_scores(find_dates(term, now), found.created_at, now.tzinfo or UTC)
    scored = ranking.score(found, settings, to_epoch_ms(now), dates)
    hits = _by_score(
        store, filtered_scores.keep(scored, filtered_scores.passing(found)), wanted, by_meaning
    )
    if by_meaning or wanted.redactor is None:
        return hits
    notes = respelling_notes(found, store, wanted.scope, wanted.redactor)
    return [replace(hit, notes=notes) for hit in hits] if notes else hits


def _by_score(store: Store, scored: Scored, wanted: Wanted, by_meaning: bool) -> list[Hit]:
    """Return hits by similarity, or by cosine only."""
    found = scored.candidates
    scores: ranking.Floats = found.cosine.astype(np.float64) if by_meaning else scored.similarity
    known = ~np.isnan(found.cosine)
    matches = known if by_meaning else known | (scored.bm25 > 0)
    if wanted.threshold is not None:
        matches &= (1 + np.nan_to_num(found.cosine, nan=-1)) / 2 > wanted.threshold
    places = np.flatnonzero(matches)
    # Duplicates may fill the limit: to remove them, rank all matches.
    count = len(places) if wanted.deduplicate else wanted.limit
    ranked = places[ranking.best(scores[places], count)]
    rows = rows_of(store, found.ids[ranked].tolist(), wanted)
    at, _ = found.places(np.array([row.id for row in rows], np.int64))
    return [
        Hit(
            row,
            rank,
            score=float(scores[place]),
            similarity=float(scored.similarity[place]),
            cosine=float(found.cosine[place]) if known[place] else None,
            bm25=float(scored.bm25[place]),
            linked=linked_with(store, row, wanted),
        )
        for rank, (row, place) in enumerate(zip(rows, at.tolist(), strict=True), 1)
    ]
