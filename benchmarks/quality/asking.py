"""Ask a benchmark's questions, using the public API, and measure what comes back."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np
from evidence import Floats, Rows, Span, answering_passage, cost, is_covered
from rankings import Index
from sets import Question
from stores import Stores
from vectors import CachedEmbedder

from reservoir_cli import Reservoir
from reservoir_cli.messages import Scope
from reservoir_cli.retrieval.question_dates.nearness import date_scores
from reservoir_cli.retrieval.question_dates.parser import find_dates
from reservoir_cli.storage.search.fulltext import (
    STOP_WORDS,
    content_words,
    count_terms,
    indexed_text,
)
from reservoir_cli.util.unicode_text import has_question_mark

_WORD = re.compile(r"[^\W_]+")
#: A budget in tokens that every message fits into, so that all are returned with their scores.
_EVERYTHING = 900_000_000
#: A budget in tokens for questions of which only the relevance is needed.
_SMALL = 500
#: The largest share of a scope's messages that may contain a rare word.
_RARE = 0.05
#: Settings under which a context shows every message with its priority.
_UNFILTERED = {"recall_floor": 0.0, "excerpts": "off"}

#: What is measured of a context.
MEASURED = ("printed", "strict", "rare words", "tokens", "refused")


class Asker:
    """Ask the questions of some stores.

    :param through: ``context``, or ``recall``, as hooks and agents ask.
    """

    def __init__(self, stores: Stores, embedder: CachedEmbedder, through: str = "context") -> None:
        self._stores, self._embedder, self._through = stores, embedder, through
        self._texts: dict[str, dict[str, str]] = {}

    def rows(self, question: Question) -> Rows:
        """Return every message of a question's instance with its scores."""
        with self._stores.at(question, _UNFILTERED) as (reservoir, now):
            window = _ask(reservoir, question, _EVERYTHING, now)
        rows = [message.to_row() for message in window.messages]
        return _rows(question, rows, now, self._embedder)

    def relevance(self, question: Question, place: Question | None = None) -> tuple[float, bool]:
        """Return how well a question fits a store, and whether ``recall`` refuses it.

        :param place: a question whose store and scope are asked instead; ``None`` for its own.
        """
        if place is not None:
            question = replace(place, text=question.text, talk=())
        with self._stores.at(question) as (reservoir, now):
            window = _ask(reservoir, question, _SMALL, now)
            outcome = self._recall(reservoir, question, 1_500, now)
        skipped = getattr(outcome, "reason", None)
        return relevance(window), skipped == "nothing found"

    def first_hit(self, question: Question) -> float:
        """Return whether the best hit of a search is evidence."""
        with self._stores.at(question) as (reservoir, _):
            hits = reservoir.search(
                question.text, limit=1, partition=question.partition, instance=question.instance
            )
        return float(any(hit.message.source_id in question.evidence for hit in hits))

    def printed(self, question: Question, budgets: Sequence[int]) -> dict[str, list[float]]:
        """Measure how much of a question's evidence is printed within these budgets.

        :returns: by name a value per budget: ``printed``, the share of evidence messages of which
            any part is printed; ``strict``, the share whose answering passage is; ``rare words``,
            the share of the answer's rare words; ``tokens``, the used share of the budget; and
            ``refused``, whether nothing was found.
        """
        texts = self._all_texts(question)
        needed = self._answering_spans(question, texts)
        rare = _rare_words(question, texts)
        measures: dict[str, list[float]] = {name: [] for name in MEASURED}
        with self._stores.at(question) as (reservoir, now):
            for budget in budgets:
                rows, used, is_refused = self._printed_rows(reservoir, question, budget, now)
                spans = {row["source_id"]: row.get("spans") for row in rows if row["source_id"]}
                printed = [name for name in question.evidence if name in spans]
                exact = bool(question.quotations)
                strict = sum(
                    all(is_covered(span, spans[name], exact) for span in needed.get(name, ()))
                    for name in printed
                )
                words = _words(" ".join(row["content"] for row in rows if row["id"] is not None))
                measures["printed"].append(len(printed) / len(question.evidence))
                measures["strict"].append(strict / len(question.evidence))
                measures["rare words"].append(len(rare & words) / len(rare) if rare else math.nan)
                measures["tokens"].append(used / budget)
                measures["refused"].append(float(is_refused))
        return measures

    def _printed_rows(
        self, reservoir: Any, question: Question, budget: int, now: datetime | None
    ) -> tuple[list[dict[str, Any]], int, bool]:
        """Return the printed messages, their tokens, and whether nothing was found."""
        if self._through == "context":
            window = _ask(reservoir, question, budget, now)
            rows = [message.to_row() for message in window.messages]
            return rows, window.used, window.nothing_found
        outcome = self._recall(reservoir, question, budget, now)
        row = outcome.to_row()
        return row["messages"], row["tokens"], row["skipped"] == "nothing found"

    def _recall(self, reservoir: Any, question: Question, budget: int, now: datetime | None) -> Any:
        return reservoir.recall(
            question.text,
            partition=question.partition,
            budget=budget,
            exclude_conversation=self._stores.running_conversation(question),
            now=now,
            recorded=False,
        )

    def _all_texts(self, question: Question) -> dict[str, str]:
        """Return the texts of a question's partition by their source ids."""
        collection = self._stores.collection(question)
        if not collection.files:
            return {str(row.source_id): row.content for row in collection.messages}
        if question.partition not in self._texts:
            with self._stores.at(question) as (reservoir, _):
                rows = reservoir.view(Scope(question.partition), 0)
            self._texts[question.partition] = {str(row.source_id): row.content for row in rows}
        return self._texts[question.partition]

    def _answering_spans(
        self, question: Question, texts: Mapping[str, str]
    ) -> dict[str, list[Span | None]]:
        """Return the positions of the answer in each evidence message."""
        spans: dict[str, list[Span | None]] = {}
        for name in question.evidence & texts.keys():
            text = texts[name]
            quotes = [quote for quote in question.quotations if quote in text]
            if quotes:
                spans[name] = [
                    (text.index(quote), text.index(quote) + len(quote)) for quote in quotes
                ]
            else:
                passages = self._embedder.passages(text)
                words = [_words(text[start:end]) for start, end in passages]
                best = answering_passage(words, _words(question.answer or question.text))
                spans[name] = [_strip(text, passages[best])]
        return spans


def relevance(window: Any) -> float:
    """Return how well a question matches the store; NaN if the program does not report it."""
    return float(getattr(window, "relevance", math.nan))


def _ask(reservoir: Reservoir, question: Question, budget: int, now: datetime | None) -> Any:
    return reservoir.context(
        question.text,
        partition=question.partition,
        instance=question.instance,
        budget=budget,
        now=now,
    )


def _rows(
    question: Question,
    printed: Sequence[Mapping[str, Any]],
    now: datetime | None,
    embedder: CachedEmbedder,
) -> Rows:
    rows = [row for row in printed if row["id"] is not None]
    seconds = {row["id"]: datetime.fromisoformat(row["created_at"]).timestamp() for row in rows}
    rows.sort(key=lambda row: (seconds[row["id"]], row["id"]))
    times = np.array([seconds[row["id"]] for row in rows])
    texts, words = [row["content"] for row in rows], content_words(question.text)
    index = _index(tuple(texts))
    return Rows(
        evidence_count=len(question.evidence),
        sessions=_sessions([(row["instance"], row["conversation_id"]) for row in rows]),
        created_at=times,
        asks=np.array([has_question_mark(text) for text in texts]),
        costs=np.array([cost(text) for text in texts]),
        evidence=np.array([row["source_id"] in question.evidence for row in rows]),
        terms=np.array([count_terms(text) for text in texts]),
        passages=np.array([_count_passages(embedder, text) for text in texts]),
        counts=index.counts(words),
        plain_bm25=index.scores(words),
        dates=_dates(question.text, times, now or datetime.now(UTC)),
        **{
            name: np.array([row[name] for row in rows], np.float64)
            for name in ("cosine", "bm25", "similarity", "recency", "priority")
        },
    )


@lru_cache(maxsize=50_000)
def _count_passages(embedder: CachedEmbedder, text: str) -> int:
    return len(embedder.passages(text))


@lru_cache(maxsize=50_000)
def _words(text: str) -> frozenset[str]:
    """Return the words of a text without stop words."""
    return frozenset(_WORD.findall(indexed_text(text.lower()))) - STOP_WORDS


def _rare_words(question: Question, texts: Mapping[str, str]) -> frozenset[str]:
    """Return the words of the answer that occur in its evidence and in few other messages."""
    if not question.answer:
        return frozenset()
    answer = _words(question.answer)
    common = [answer & _words(text) for text in texts.values()]
    counts = {word: sum(word in words for words in common) for word in answer}
    evidence = frozenset().union(*(_words(texts.get(name, "")) for name in question.evidence))
    limit = max(3, _RARE * len(texts))
    return frozenset(word for word in answer & evidence if counts[word] <= limit)


def _strip(text: str, span: Span) -> Span:
    start, end = span
    inside = text[start:end]
    return start + len(inside) - len(inside.lstrip()), end - len(inside) + len(inside.rstrip())


def _sessions(conversations: Sequence[Any]) -> tuple[Any, ...]:
    positions: dict[Any, list[int]] = {}
    for position, name in enumerate(conversations):
        positions.setdefault(name, []).append(position)
    return tuple(np.array(group) for group in positions.values())


@lru_cache(maxsize=4)
def _index(texts: tuple[str, ...]) -> Index:
    return Index(texts)


def _dates(question: str, times: Floats, now: datetime) -> Floats:
    local = now.astimezone()
    milliseconds = np.round(times * 1000).astype(np.int64)
    return date_scores(find_dates(question, local), milliseconds, local.tzinfo or UTC)
