"""Cache the embeddings of the latest questions, so that repeated ones are not embedded again."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from reservoir_cli.embedding.embedder import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_QUESTIONS = 16


class RememberedQuestions:
    """An embedder that caches the vectors of the latest questions in memory."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self.model_id = embedder.model_id
        self.dimensions = embedder.dimensions
        self.engine = embedder.engine
        self.encode_query = lru_cache(_MOST_QUESTIONS)(embedder.encode_query)
        self._embedder = embedder

    def encode_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return the embeddings of passages, in order, shape (len(texts), dimensions)."""
        return self._embedder.encode_documents(texts)

    def passages(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the character spans that a text is embedded as."""
        return self._embedder.passages(text)

    def knows(self, word: str) -> bool:
        """Return whether a word is in the model's vocabulary."""
        return self._embedder.knows(word)
