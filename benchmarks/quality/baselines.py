"""Pack messages or passages by cosine, BM25 and their mixture: what anyone would try first.

A message costs ceil(characters / 4) + 4 tokens, and nothing is paid for a frame, the question or
the newest turns. A passage counts as its message.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from evidence import Floats, best_first, cost, fill_budget
from numpy.typing import NDArray
from rankings import Index, min_max
from sets import Question
from vectors import CachedEmbedder

from reservoir_cli import Message
from reservoir_cli.storage.search.fulltext import content_words, count_terms

NAMES = ("cosine", "BM25", "mixture", "passages")


class Baselines:
    """The plain rankings of some messages, in order of time."""

    def __init__(self, messages: Sequence[Message], embedder: CachedEmbedder) -> None:
        self._embedder, texts = embedder, [message.content for message in messages]
        spans = [list(embedder.passages(text)) or [(0, len(text))] for text in texts]
        parts = [
            text[start:end] for text, row in zip(texts, spans, strict=True) for start, end in row
        ]
        self._ids = [str(message.source_id) for message in messages]
        self._owner = np.repeat(np.arange(len(texts)), [len(row) for row in spans])
        self._vectors = embedder.encode_documents([part or " " for part in parts])
        self._messages, self._parts = _Texts(texts), _Texts(parts)

    def measure(
        self, question: Question, budgets: Sequence[int], stored: int | None = None
    ) -> dict[str, list[float]]:
        """Return by name the share of the evidence within each budget.

        :param stored: consider only so many of the first messages.
        """
        stored = len(self._ids) if stored is None else stored
        parts = int(np.searchsorted(self._owner, stored))
        cosines = self._vectors[:parts].astype(np.float64) @ self._embedder.encode_query(
            question.text
        )
        best = np.full(stored, -1.0, np.float64)
        np.maximum.at(best, self._owner[:parts], cosines)
        words = content_words(question.text)
        message_words = self._messages.bm25(words, stored)
        part_words = self._parts.bm25(words, parts)
        priorities = {
            "cosine": best,
            "BM25": message_words,
            "mixture": 0.6 * min_max(best) + 0.4 * min_max(message_words),
            "passages": 0.6 * min_max(cosines) + 0.4 * min_max(part_words),
        }
        return {
            name: self._found(name == "passages", priority, question, budgets)
            for name, priority in priorities.items()
        }

    def _found(
        self, by_part: bool, priority: Floats, question: Question, budgets: Sequence[int]
    ) -> list[float]:
        texts, order = self._parts if by_part else self._messages, best_first(priority)
        shares = []
        for budget in budgets:
            kept = fill_budget(order, texts.costs[: len(priority)], budget)
            owners = self._owner[kept].tolist() if by_part else kept
            found = question.evidence & {self._ids[owner] for owner in owners}
            shares.append(len(found) / len(question.evidence))
        return shares


class _Texts:
    """Texts with their costs and words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.costs = np.array([cost(text) for text in texts])
        self._lengths = np.array([count_terms(text) for text in texts], np.float64)
        self._index, self._counts = Index(texts), dict[str, NDArray[np.int64]]()

    def bm25(self, words: str, stored: int) -> Floats:
        """Return the BM25 of the first texts, as FTS5 computes it."""
        if words not in self._counts:
            self._counts = {words: self._index.counts(words)}
        counts, lengths = self._counts[words][:, :stored], self._lengths[:stored]
        norms = 1.2 * (0.25 + 0.75 * lengths / max(float(lengths.mean()), 1.0))
        scores = np.zeros(stored)
        for stem in counts:
            frequency = int((stem > 0).sum())
            idf = max(float(np.log((stored - frequency + 0.5) / (frequency + 0.5))), 1e-6)
            scores += idf * 2.2 * stem / (stem + norms)
        return scores


def collect(rows: Sequence[Mapping[str, list[float]]]) -> dict[str, Floats]:
    """Return the shares by name, each of shape (questions, budgets)."""
    return {name: np.array([row[name] for row in rows]) for name in NAMES}
