"""Helpers that several test modules share; fixtures are in ``conftest.py``."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reservoir_cli import ContextOptions, ContextWindow, Reservoir
from reservoir_cli.embedding import Embedder, Engine
from reservoir_cli.messages import Key, Scope, StoredMessage
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval.embed_messages import Indexer
from reservoir_cli.settings import config
from reservoir_cli.settings.setting import Value
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.store import Store
from reservoir_cli.transfer.ingest import Ingestor
from reservoir_cli.util.progress import Progress

NOW = datetime(2026, 5, 9, 12, tzinfo=UTC)
EVERYWHERE = Scope(None)

Adding = Callable[..., list[StoredMessage | None]]


class FakeEmbedder:
    """Return unit vectors derived from a hash of the text, without any meaning."""

    def __init__(self, name: str = "fake", model_id: str = "fake-8", dimensions: int = 8) -> None:
        self.name = name
        self.model_id = model_id
        self.dimensions = dimensions
        self.engine = Engine("reference", "for tests", "folder")

    def encode_query(self, text: str) -> NDArray[np.float32]:
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        vector = np.random.default_rng(int.from_bytes(digest)).standard_normal(self.dimensions)
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        empty = np.empty((0, self.dimensions), np.float32)
        return np.stack([self.encode_query(text) for text in texts]) if texts else empty

    def passages(self, text: str) -> list[tuple[int, int]]:
        return [(0, len(text))]

    def knows(self, word: str) -> bool:
        return False


class Compass:
    """An embedder whose questions all point along the first axis."""

    name = model_id = "compass"
    engine = Engine("compiled", "for tests", "folder")
    dimensions = 2

    def encode_query(self, text):
        return np.array([1, 0], np.float32)

    def encode_documents(self, texts):
        raise AssertionError("all messages are embedded already")


def add_passages(
    store: Store,
    model_id: str,
    ids: Sequence[int],
    passages: Sequence[Passage],
    partition: str = "p",
) -> None:
    """Store the passages of messages of one partition."""
    by_message = {
        Key(partition, id_): [passage for passage in passages if passage.message_id == id_]
        for id_ in ids
    }
    store.add_passages(model_id, by_message)


def indexer(store: Store, embedder: Embedder, threshold: float = 0.85, **options: Any) -> Indexer:
    """Return an indexer that links messages from a similarity on."""
    known = config.load(None, {"link_cosine": 2 * threshold - 1})
    return Indexer(store, known, embedder=embedder, **options)


def embed(
    store: Store,
    embedder: Embedder,
    scope: Scope = EVERYWHERE,
    threshold: float = 0.85,
    progress: Progress = lambda *_: None,
    **limits: int,
) -> int:
    """Embed pending messages; return how many."""
    return indexer(store, embedder, threshold, progress=progress).embed(scope, **limits)


def ingestor(
    store: Store,
    embedder: Embedder | None = None,
    settings: Mapping[str, Value] | None = None,
    threshold: float = 0.85,
) -> Ingestor:
    """Return an ingestor for a store, with the given settings."""
    defaults = {
        "redact": "off",
        "embedding_model": "nobody/absent",
        "link_cosine": 2 * threshold - 1,
    }
    known = config.load(None, {**defaults, **(settings or {})})
    redactor = Redactor(lambda partition: str(known.lookup("redact", partition)[0]))
    return Ingestor(store, known, redactor, Indexer(store, known, embedder=embedder, offline=True))


def context(reservoir: Reservoir, question: str, **options: Any) -> ContextWindow:
    """Build a context; settings may be given like the arguments of ``Reservoir.context``."""
    names = options.keys() & set(ContextOptions.__slots__)
    settings = ContextOptions(**{name: options.pop(name) for name in names})
    return reservoir.context(question, options=settings, **options)


def full_width(text: str) -> str:
    """Return a text in full-width characters, as keyboards for Japanese type them."""
    return text.translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
