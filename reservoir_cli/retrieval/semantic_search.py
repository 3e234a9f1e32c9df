"""Find messages by similarity, or by cosine only."""

from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import to_epoch_ms
from reservoir_cli.retrieval import ranking
from reservoir_cli.retrieval.asked_before import find_echoes
from reservoir_cli.retrieval.check_corrections import correction_notes, drop_known_words
from reservoir_cli.retrieval.hits import Hit, SearchCriteria, read_linked, read_rows
from reservoir_cli.retrieval.question_dates import score_dates
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.search.candidates import Candidates
from reservoir_cli.storage.store import Store

_SOLE_SHARE = 3  # long messages that alone contain a word take at most one hit in three
_LONG = 2_000  # the number of words from which a message counts as long


def search(
    store: Store,
    embedder: Embedder | None,
    vector: NDArray[np.float32] | None,
    criteria: SearchCriteria,
    settings: Settings,
    now: datetime,
) -> list[Hit]:
    """Find hits by similarity, or by cosine with the term's vector only."""
    term, scope = criteria.term, criteria.scope
    candidates = store.candidates(scope, None, term, vector, criteria.where)
    candidates = drop_known_words(candidates, embedder)
    dates, empty_days = score_dates(term, now, candidates.created_at)
    by_session = ranking.sessions_of(candidates, settings)
    echoes = find_echoes(store, scope, candidates, by_session, term)
    dates = ranking.trust_dates(dates, candidates, echoes)
    scored = ranking.score(candidates, settings, to_epoch_ms(now), dates, echoes=echoes)
    hits = _read_hits(store, scored, criteria, _sole_positions(candidates), echoes)
    if criteria.mode == "semantic":
        return hits
    notes = (*correction_notes(candidates, store, scope, criteria.redactor), *empty_days)
    return [replace(hit, notes=notes) for hit in hits] if notes else hits


def _add_sole(ranked: NDArray[np.intp], sole: NDArray[np.intp], limit: int) -> NDArray[np.intp]:
    """Put long messages that alone have a word, and score low, in the place of the last hits."""
    # Without assume_unique, numpy would load its masked arrays, which takes 30 ms.
    missing = np.setdiff1d(sole, ranked, assume_unique=True)[: limit // _SOLE_SHARE]
    if not len(missing):
        return ranked
    return np.concatenate([ranked[: limit - len(missing)], missing])


def _sole_positions(candidates: Candidates) -> NDArray[np.intp]:
    single = [posting.positions for posting in candidates.postings if len(posting.positions) == 1]
    positions = np.array(sorted({int(position) for [position] in single}), np.intp)
    return positions[candidates.terms[positions] >= _LONG]


def _read_hits(
    store: Store,
    scored: Scored,
    criteria: SearchCriteria,
    sole: NDArray[np.intp],
    echoes: ranking.Echoes | None,
) -> list[Hit]:
    candidates, by_meaning = scored.candidates, criteria.mode == "semantic"
    scores: ranking.Floats = (
        candidates.cosine.astype(np.float64) if by_meaning else scored.similarity
    )
    has_vector = ~np.isnan(candidates.cosine)
    matches = has_vector if by_meaning else has_vector | (scored.bm25 > 0)
    if echoes is not None and not by_meaning:
        matches[echoes.positions] = True
    if candidates.matching is not None:
        matches &= candidates.matching
    if criteria.threshold is not None:
        matches &= (1 + np.nan_to_num(candidates.cosine, nan=-1)) / 2 > criteria.threshold
    positions = np.flatnonzero(matches)
    # Duplicates may fill the limit: to remove them, rank all matches.
    count = len(positions) if criteria.deduplicate else criteria.limit
    ranked = positions[ranking.best(scores[positions], count)]
    if not by_meaning:
        ranked = _add_sole(ranked, sole[matches[sole]], criteria.limit)
    rows = read_rows(store, candidates.ids[ranked].tolist(), criteria)
    row_positions, _ = candidates.positions(np.array([row.id for row in rows], np.int64))
    return [
        Hit(
            row,
            rank,
            score=float(scores[position]),
            similarity=float(scored.similarity[position]),
            cosine=float(candidates.cosine[position]) if has_vector[position] else None,
            bm25=float(scored.bm25[position]),
            linked=read_linked(store, row, criteria),
        )
        for rank, (row, position) in enumerate(zip(rows, row_positions.tolist(), strict=True), 1)
    ]
