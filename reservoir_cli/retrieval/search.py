"""Find messages by words, by meaning, or by both; by words alone it works without numpy."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Scope, searchable_text
from reservoir_cli.retrieval.hits import Hit, SearchCriteria, read_linked, read_rows
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.search.highlight import find_words
from reservoir_cli.storage.search.match_titles import titled_with_all
from reservoir_cli.storage.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def search(
    store: Store,
    embedder: Embedder | None,
    criteria: SearchCriteria,
    settings: Settings,
    now: datetime,
) -> list[Hit]:
    """Find the messages that fit a term best.

    :param embedder: ``None`` to search by words only.
    :param now: the time that dates such as ``yesterday`` are relative to, aware.
    """
    if criteria.mode == "keyword":
        with store.snapshot():
            hits = _search_words(store, criteria)
            return _add_passages(store, hits, None) if criteria.passages else hits
    from reservoir_cli.retrieval import semantic_search  # it loads numpy

    # Before the snapshot, which would keep the log from being written back meanwhile.
    vector = embedder.encode_query(criteria.term) if embedder else None
    with store.snapshot():
        hits = semantic_search.search(store, embedder, vector, criteria, settings, now)
        return _add_passages(store, hits, vector) if criteria.passages else hits


def _search_words(store: Store, criteria: SearchCriteria) -> list[Hit]:
    """Return hits for exactly the words that were typed, then those whose title has them."""
    order, all_words = store.keyword(criteria.term, criteria.scope, -1, criteria.where)
    scores = dict(order)
    if len(scores) < criteria.limit:
        titled = {number: scores.get(number, 0.0) for number in _find_titled(store, criteria)}
        # If no message has all the words, a title that has them is the better hit.
        scores = {**scores, **titled} if all_words and scores else {**titled, **scores}
        all_words |= bool(titled)
    rows = read_rows(store, list(scores), criteria)
    return [
        Hit(
            row,
            rank,
            score=scores[row.id],
            bm25=scores[row.id],
            linked=read_linked(store, row, criteria),
            all_words=all_words,
        )
        for rank, row in enumerate(rows, 1)
    ]


def _find_titled(store: Store, criteria: SearchCriteria) -> list[int]:
    """Return the messages of conversations whose title contains all the words, oldest first."""
    rows = store.titled_conversations(criteria.scope)
    numbers = titled_with_all([title for *_, title in rows], criteria.term)
    ids: list[int] = []
    for partition, instance, conversation, _ in map(rows.__getitem__, numbers):
        if criteria.where.conversation_id in (None, conversation):
            where = replace(criteria.where, conversation_id=conversation)
            ids += store.find(Scope(partition, instance), where).ids
    return ids


def _add_passages(
    store: Store, hits: Sequence[Hit], vector: "NDArray[np.float32] | None"
) -> list[Hit]:
    keys = [hit.message.key for hit in hits]
    passages = store.passages(keys) if vector is not None else {}
    titles = store.titles([hit.message for hit in hits])
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


def with_words(hits: Sequence[Hit], term: str, mode: str) -> list[Hit]:
    """Add to each hit where the question's words are in its text, or in a part of a long one."""
    texts = [searchable_text(hit.message) for hit in hits]
    passages = [hit.passage for hit in hits]
    word_spans = find_words(texts, term, typed=mode == "keyword", passages=passages)
    return [replace(hit, words=tuple(words)) for hit, words in zip(hits, word_spans, strict=True)]


def _nearest_passage(
    passages: Sequence[Passage], vector: "NDArray[np.float32] | None"
) -> tuple[int, int] | None:
    if vector is None or len(passages) < 2:
        return None
    nearest = max(passages, key=lambda passage: float(passage.vector @ vector))
    return nearest.start, nearest.end
