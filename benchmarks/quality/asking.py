"""Fill a store with a benchmark's messages and ask it questions, using the public API."""

import hashlib
import math
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from evidence import Floats, Rows, Span, answering_passage, is_covered
from rankings import Index
from sets import Collection, Question
from vectors import CachedEmbedder

from reservoir_cli import Message, Reservoir
from reservoir_cli.messages import Scope
from reservoir_cli.retrieval.question_dates import date_scores, find_dates
from reservoir_cli.settings.schema import SETTINGS
from reservoir_cli.storage.fulltext import STOP_WORDS, content_words, count_terms, indexed_text
from reservoir_cli.storage.schema import VERSION
from reservoir_cli.util.question_marks import has_question_mark

#: A budget in tokens that every message fits into, so that all are returned with their scores.
_EVERYTHING = 900_000_000
_WORD = re.compile(r"[^\W_]+")
#: A budget in tokens for questions of which only the relevance is needed.
_SMALL = 500
#: Characters that count as three quarters of a token; others count as a quarter.
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
#: The largest share of a scope's messages that may contain a rare word.
_RARE = 0.05
#: Settings under which a context shows every message with its priority.
_UNFILTERED = {"recall_floor": 0.0, "excerpts": "off"}

Item = TypeVar("Item")


@contextmanager
def open_reservoir(
    path: Path, embedder: CachedEmbedder, settings: Mapping[str, Any]
) -> Iterator[Reservoir]:
    """Open a store with the benchmark's embedder, ignoring unknown settings."""
    known = {key: value for key, value in settings.items() if key in SETTINGS}
    options = {"embedding_model": embedder.name, **known}
    with Reservoir.open(path, settings=options, embedder=embedder) as reservoir:
        yield reservoir


def fill_store(
    collections: Sequence[Collection],
    embedder: CachedEmbedder,
    settings: Mapping[str, Any],
    cache: Path,
) -> Path:
    """Store the messages of all collections, unless an earlier run did; return the store's path."""
    digest = hashlib.sha256(f"{VERSION} {embedder.model_id} {sorted(settings.items())}".encode())
    for collection in collections:
        digest.update(repr((collection.name, collection.messages)).encode())
        for file in collection.files:
            digest.update(file.read_bytes())
    path = cache / f"store-{digest.hexdigest()[:16]}.db"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            fresh = Path(folder) / "store.db"
            with open_reservoir(fresh, embedder, settings) as reservoir:
                for collection in progress(collections, "storing"):
                    store(reservoir, collection.name, collection.messages)
                    if collection.files:
                        reservoir.import_files(*collection.files)
                        reservoir.embed()
            fresh.replace(path)
    return path


def store(reservoir: Reservoir, name: str, messages: Sequence[Message]) -> None:
    """Store messages in the partition and instance of a collection."""
    for start in range(0, len(messages), 1_000):
        reservoir.ingest(messages[start : start + 1_000], partition=name, instance=name)


@contextmanager
def open_with_talk(
    path: Path, question: Question, embedder: CachedEmbedder, settings: Mapping[str, Any]
) -> Iterator[tuple[Reservoir, datetime]]:
    """Open a copy of a store in which a question's preceding talk is the newest conversation.

    :returns: the store, and the time of the question: a minute after the last turn.
    """
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        copy = Path(shutil.copy(path, Path(folder) / "store.db"))
        with open_reservoir(copy, embedder, settings) as reservoir:
            scope = Scope(question.partition, question.instance)
            newest = reservoir.view(scope, 1)[-1].created_at
            times = [
                newest + timedelta(days=1, minutes=minute) for minute in range(len(question.talk))
            ]
            turns = [
                Message(
                    role,
                    text,
                    created_at=created_at,
                    conversation_id="talk",
                    trace_id=f"talk {number // 2}",
                )
                for number, ((role, text), created_at) in enumerate(
                    zip(question.talk, times, strict=True)
                )
            ]
            reservoir.ingest(turns, partition=question.partition, instance=question.instance)
            yield reservoir, times[-1] + timedelta(minutes=1)


class Asker:
    """Ask the questions of one store.

    :param path: a filled store.
    :param settings: the settings to measure.
    """

    def __init__(self, path: Path, embedder: CachedEmbedder, settings: Mapping[str, Any]) -> None:
        self._path, self._embedder, self._settings = path, embedder, settings
        self._texts: dict[str, dict[str, str]] = {}

    def windows(self, question: Question, budgets: Sequence[int]) -> list[Any]:
        """Return the contexts of a question, one per budget."""
        with self._open_for(question, self._settings) as (reservoir, now):
            return [_ask(reservoir, question, budget, now) for budget in budgets]

    def rows(self, question: Question) -> Rows:
        """Return every message of a question's instance with its scores."""
        with self._open_for(question, {**self._settings, **_UNFILTERED}) as (reservoir, now):
            window = _ask(reservoir, question, _EVERYTHING, now)
        rows = [message.to_row() for message in window.messages]
        return _rows(question, rows, now, self._embedder)

    def unrelated(self, question: Question, partition: str, instance: str | None) -> float:
        """Return the relevance of a question that is unrelated to a partition."""
        moved = replace(question, partition=partition, instance=instance, talk=())
        with self._open_for(moved, self._settings) as (reservoir, _):
            return relevance(_ask(reservoir, moved, _SMALL, None))

    def printed(self, question: Question, budgets: Sequence[int]) -> dict[str, list[float]]:
        """Measure how much of a question's evidence is printed in contexts of these budgets.

        :returns: by name a value per budget: ``printed``, the share of evidence messages of which
            any part is printed; ``strict``, the share whose answering passage is; ``rare words``,
            the share of the answer's rare words; ``tokens``, the used share of the budget; and a
            single ``relevance``.
        """
        windows = self.windows(question, budgets)
        texts = self._all_texts(question.partition)
        needed = self._answering_spans(question, texts)
        rare = _rare_words(question, texts)
        measures: dict[str, list[float]] = {
            "printed": [],
            "strict": [],
            "rare words": [],
            "tokens": [],
        }
        for window in windows:
            rows = [message.to_row() for message in window.messages]
            spans = {row["source_id"]: row.get("spans") for row in rows if row["source_id"]}
            printed = [name for name in question.evidence if name in spans]
            exact = bool(question.quotations)
            strict = sum(
                all(is_covered(span, spans[name], exact) for span in needed[name])
                for name in printed
            )
            words = _words(" ".join(row["content"] for row in rows if row["id"] is not None))
            measures["printed"].append(len(printed) / len(question.evidence))
            measures["strict"].append(strict / len(question.evidence))
            measures["rare words"].append(len(rare & words) / len(rare) if rare else math.nan)
            measures["tokens"].append(window.used / window.budget.available)
        measures["relevance"] = [relevance(windows[0])]
        return measures

    @contextmanager
    def _open_for(self, question: Question, settings: Mapping[str, Any]) -> Iterator[Any]:
        if question.talk:
            with open_with_talk(self._path, question, self._embedder, settings) as store_and_time:
                yield store_and_time
        else:
            with open_reservoir(self._path, self._embedder, settings) as reservoir:
                yield reservoir, None

    def _all_texts(self, partition: str) -> dict[str, str]:
        """Return the texts of a partition by their source ids."""
        if partition not in self._texts:
            with open_reservoir(self._path, self._embedder, {}) as reservoir:
                rows = reservoir.view(Scope(partition), 0)
            self._texts[partition] = {str(row.source_id): row.content for row in rows}
        return self._texts[partition]

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
    time = {} if now is None else {"now": now}
    return reservoir.context(
        question.text,
        partition=question.partition,
        instance=question.instance,
        budget=budget,
        **time,
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


def cost(text: str) -> int:
    """Return the estimated tokens of a message: characters / 4 + 4."""
    return math.ceil((len(text) + 2 * len(_CJK.findall(text))) / 4) + 4


def progress(items: Sequence[Item], label: str) -> Iterator[Item]:
    """Yield items, and show a progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(items, label, console=console, disable=not sys.stderr.isatty())


def by_session(messages: Sequence[Message]) -> list[list[Message]]:
    """Group messages by conversation, in order."""
    return [list(group) for _, group in groupby(messages, lambda message: message.conversation_id)]


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
