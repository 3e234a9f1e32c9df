"""Pack messages or passages by age, cosine, BM25 and a mixture: what anyone would try first.

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

NAMES = ("newest", "cosine", "BM25", "mixture", "passages")


class Baselines:
    """The plain rankings of some messages, in order of time."""

    def __init__(self, messages: Sequence[Message], embedder: CachedEmbedder) -> None:
        self._embedder, self._messages = embedder, tuple(messages)
        texts = [message.content for message in messages]
        spans = [list(embedder.passages(text)) or [(0, len(text))] for text in texts]
        parts = [
            text[start:end] for text, row in zip(texts, spans, strict=True) for start, end in row
        ]
        self._vectors = embedder.encode_documents([part or " " for part in parts])
        owner = np.repeat(np.arange(len(texts)), [len(row) for row in spans])
        self._whole = _Texts(texts, np.arange(len(texts)))
        self._parts = _Texts(parts, owner)

    def measure(
        self, question: Question, budgets: Sequence[int], stored: int | None = None
    ) -> dict[str, list[float]]:
        """Return by name the share of the evidence within each budget.

        :param stored: consider only so many of the first messages.
        """
        return {
            name: [self._found(name, priority, question, budget) for budget in budgets]
            for name, priority in self.priorities(question, stored).items()
        }

    def _found(self, name: str, priority: Floats, question: Question, budget: int) -> float:
        found = {message.source_id for message, _ in self.pack(name, priority, budget)}
        return len(question.evidence & found) / len(question.evidence)

    def priorities(self, question: Question, stored: int | None = None) -> dict[str, Floats]:
        """Return by name the priorities of the first messages, or of their passages."""
        stored = len(self._messages) if stored is None else stored
        owner = self._parts.owner
        parts = int(np.searchsorted(owner, stored))
        cosines = self._vectors[:parts].astype(np.float64) @ self._embedder.encode_query(
            question.text
        )
        best = np.full(stored, -1.0, np.float64)
        np.maximum.at(best, owner[:parts], cosines)
        words = content_words(question.text)
        message_words = self._whole.bm25(words, stored)
        part_words = self._parts.bm25(words, parts)
        return {
            "newest": np.arange(stored, dtype=np.float64),
            "cosine": best,
            "BM25": message_words,
            "mixture": 0.6 * min_max(best) + 0.4 * min_max(message_words),
            "passages": 0.6 * min_max(cosines) + 0.4 * min_max(part_words),
        }

    def pack(self, name: str, priority: Floats, budget: int) -> list[tuple[Message, str]]:
        """Return what fits into a budget, oldest first: messages with their text or a passage."""
        texts = self._parts if name == "passages" else self._whole
        kept = fill_budget(best_first(priority), texts.costs[: len(priority)], budget)
        return [(self._messages[texts.owner[at]], texts.texts[at]) for at in sorted(kept)]


class _Texts:
    """Texts with their costs and words, and the positions of the messages they belong to."""

    def __init__(self, texts: Sequence[str], owner: NDArray[np.intp]) -> None:
        self.texts, self.owner = texts, owner
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
