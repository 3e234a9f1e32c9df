"""Cache the embeddings of the latest questions, so that repeated ones are not embedded again."""

from functools import lru_cache

from reservoir_cli.embedding.embedder import Embedder

_MOST_QUESTIONS = 16


class RememberedQuestions:
    """An embedder that caches the vectors of the latest questions in memory."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self.model_id = embedder.model_id
        self.dimensions = embedder.dimensions
        self.engine = embedder.engine
        self.encode_query = lru_cache(_MOST_QUESTIONS)(embedder.encode_query)
        self.encode_documents = embedder.encode_documents
        self.passages = embedder.passages
        self.knows = embedder.knows
