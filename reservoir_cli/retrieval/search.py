"""Find messages by words, by meaning, or by both.

Semantic search is imported only when needed: a search by words works without numpy.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, get_args

from reservoir_cli.embedding import Embedder
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Scope, StoredMessage, searchable_text
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval.search_hits import Hit, Wanted, read_linked, read_rows
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.filter_conditions import Filter
from reservoir_cli.storage.highlight import find_words
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Mode = Literal["hybrid", "keyword", "semantic"]
MODES: tuple[str, ...] = get_args(Mode)


def check_mode(mode: str, threshold: float | None) -> None:
    """Check a search mode and its threshold.

    :raises UsageError: the mode is unknown, or cannot have a threshold; or the threshold is not
        from 0 to 1.
    """
    if mode not in MODES:
        raise UsageError(f"unknown mode {mode!r}", hint=f"modes are {', '.join(MODES)}")
    if threshold is not None and not 0 <= threshold <= 1:
        raise UsageError(f"the threshold cannot be {threshold}", hint="it must be from 0 to 1")
    if mode == "keyword" and threshold is not None:
        raise UsageError(
            "a threshold cannot be used with a keyword search",
            hint="omit the threshold, or search by meaning as well",
        )


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

    :param embedder: ``None`` to search by words only.
    :param now: the time that dates such as ``yesterday`` are relative to, aware.
    :param threshold: list only hits above it, on the scale (1 + cosine)/2.
    :param link: add to each hit the messages linked to it, or of its trace.
    :param deduplicate: list only the best of hits with equal contents.
    :param where: list only messages that match; scores are those of the whole scope.
    :param passages: add the best passage of each hit, and the title of its conversation.
    :param redactor: redacts secrets in words that replaced misspelt ones; without it these are
        not named.
    """
    wanted = Wanted(scope, limit, threshold, link, deduplicate, where, redactor)
    with store.snapshot():
        if mode == "keyword":
            hits = _search_words(store, term, wanted)
            return _add_passages(store, hits, None) if passages else hits
        from reservoir_cli.retrieval import semantic_search  # it loads numpy

        vector = embedder.encode_query(term) if embedder else None
        by_meaning = mode == "semantic"
        query = embedder, vector
        hits = semantic_search.search(
            store, term, query, settings, now, wanted, by_meaning=by_meaning
        )
        return _add_passages(store, hits, vector) if passages else hits


def _search_words(store: Store, term: str, wanted: Wanted) -> list[Hit]:
    """Return hits for exactly the words that were typed."""
    order, all_words = store.keyword(term, wanted.scope, -1, wanted.where)
    scores = dict(order)
    rows = read_rows(store, list(scores), wanted)
    return [
        Hit(
            row,
            rank,
            score=scores[row.id],
            bm25=scores[row.id],
            linked=read_linked(store, row, wanted),
            all_words=all_words,
        )
        for rank, row in enumerate(rows, 1)
    ]


def _add_passages(
    store: Store, hits: Sequence[Hit], vector: "NDArray[np.float32] | None"
) -> list[Hit]:
    """Add to hits their best passages, and the titles of their conversations."""
    keys = [hit.message.key for hit in hits]
    passages = store.passages(keys) if vector is not None else {}
    titles = _read_titles(store, [hit.message for hit in hits])
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
    """Add to each hit the positions of the question's words in its text as printed.

    Of a long text, only those in one part.
    """
    texts = [searchable_text(hit.message) for hit in hits]
    passages = [hit.passage for hit in hits]
    word_spans = find_words(texts, term, typed=mode == "keyword", passages=passages)
    return [replace(hit, words=tuple(words)) for hit, words in zip(hits, word_spans, strict=True)]


def _nearest_passage(
    passages: Sequence[Passage], vector: "NDArray[np.float32] | None"
) -> tuple[int, int] | None:
    """Return the span of the passage nearest to the question, if there are several."""
    if vector is None or len(passages) < 2:
        return None
    nearest = max(passages, key=lambda passage: float(passage.vector @ vector))
    return nearest.start, nearest.end


def _read_titles(
    store: Store, messages: Sequence[StoredMessage]
) -> dict[tuple[str, str, str | None], str]:
    """Return the titles of conversations by (partition, instance, id)."""
    threads = {
        (message.partition, message.instance, message.conversation_id)
        for message in messages
        if message.conversation_id
    }
    conversations = store.known_conversations(threads)
    return {
        key: conversation.title for key, conversation in conversations.items() if conversation.title
    }
