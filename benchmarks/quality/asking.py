"""Asking a store a benchmark's questions, through the public interface alone."""

import math
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from evidence import Floats, Question, Recall, Rows, shares
from rankings import Index, Ranking
from vectors import CachedEmbedder

from reservoir_cli import Message, Reservoir
from reservoir_cli.retrieval.dates import date_scores, find_dates
from reservoir_cli.storage.fulltext import content_words, count_terms

PARTITION = "benchmark"
#: A budget that everything fits into, so that every message comes with its scores.
_EVERYTHING = 900_000_000

Each = TypeVar("Each")
#: Messages by the instance they go to.
Conversations = Mapping[str, Sequence[Message]]


@contextmanager
def stored(
    conversations: Conversations, embedder: CachedEmbedder, **settings: Any
) -> Iterator[Reservoir]:
    """A store for the time of a measurement, a conversation an instance."""
    settings = {"embedding_model": embedder.name, **settings}
    with (
        tempfile.TemporaryDirectory() as folder,
        Reservoir.open(Path(folder) / "b.db", settings=settings, embedder=embedder) as reservoir,
    ):
        for name, messages in conversations.items():
            reservoir.ingest(messages, partition=PARTITION, instance=name)
        yield reservoir


def scored_rows(reservoir: Reservoir, question: Question) -> Rows:
    """Every message of a question's instance with the scores it has for the question."""
    window = reservoir.context(
        question.text, partition=PARTITION, instance=question.instance, budget=_EVERYTHING
    )
    rows = [message.to_row() for message in window.messages if message.id is not None]
    moments = {row["id"]: datetime.fromisoformat(row["created_at"]).timestamp() for row in rows}
    rows.sort(key=lambda row: (moments[row["id"]], row["id"]))
    times = np.array([moments[row["id"]] for row in rows])
    texts, words = [row["content"] for row in rows], content_words(question.text)
    index = _index(tuple(texts))
    return Rows(
        sessions=_sessions([row["conversation_id"] for row in rows]),
        created_at=times,
        asks=np.array(["?" in text for text in texts]),
        costs=np.array([cost(text) for text in texts]),
        evidence=np.array([row["source_id"] in question.evidence for row in rows]),
        terms=np.array([count_terms(text) for text in texts]),
        counts=index.counts(words),
        plain_bm25=index.scores(words),
        dates=_dates(question.text, times),
        **{
            name: np.array([row[name] for row in rows], np.float64)
            for name in ("cosine", "bm25", "similarity", "recency", "priority")
        },
    )


def cost(text: str) -> int:
    """Tokens of a message when it is packed by its priority: ceil(characters / 4) + 4."""
    return math.ceil(len(text) / 4) + 4


def ranking_recall(ranking: Ranking, asked: Iterable[Rows], budgets: Sequence[int]) -> Recall:
    """Recall when messages are packed by a ranking."""
    found = [shares(ranking(rows), rows, budgets) for rows in asked]
    by_budget, by_depth = zip(*found, strict=True)
    return Recall(np.array(by_budget), np.array(by_depth))


def printed_recall(
    reservoir: Reservoir, questions: Sequence[Question], budgets: Sequence[int]
) -> Recall:
    """Recall of the contexts that are really printed."""

    def share(question: Question, budget: int) -> float:
        window = reservoir.context(
            question.text, partition=PARTITION, instance=question.instance, budget=budget
        )
        kept = {message.source_id for message in window.messages}
        return len(kept & question.evidence) / len(question.evidence)

    told = progress(questions, "contexts as they are printed")
    by_budget = [[share(each, budget) for budget in budgets] for each in told]
    return Recall(np.array(by_budget), np.empty(0))


def progress(items: Sequence[Each], what: str) -> Iterator[Each]:
    """Items one by one, with a bar on a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(items, what, console=console, disable=not sys.stderr.isatty())


def _sessions(conversations: Sequence[Any]) -> tuple[Any, ...]:
    places: dict[Any, list[int]] = {}
    for place, name in enumerate(conversations):
        places.setdefault(name, []).append(place)
    return tuple(np.array(some) for some in places.values())


@lru_cache(maxsize=8)
def _index(texts: tuple[str, ...]) -> Index:
    return Index(texts)


def _dates(question: str, times: Floats) -> Floats:
    now = datetime.now().astimezone()
    moments = np.round(times * 1000).astype(np.int64)
    return date_scores(find_dates(question, now), moments, now.tzinfo or UTC)
