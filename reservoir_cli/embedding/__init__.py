"""Turn text into embeddings: one protocol, and one implementation per engine."""

from reservoir_cli.embedding.embedder import Embedder, Engine

__all__ = ["Embedder", "Engine"]
