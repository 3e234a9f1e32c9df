"""Turn text into embeddings: one protocol, and one implementation per engine.

``load`` finds, downloads or compiles a model; it imports all engines, and ``embedder`` none.
"""

from reservoir_cli.embedding.embedder import Embedder, Engine

__all__ = ["Embedder", "Engine"]
