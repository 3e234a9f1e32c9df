"""What several modules of tests build upon; fixtures are in ``conftest.py``."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from reservoir_cli.embedding import Embedder, Engine
from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.messages import Key, Scope
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval import indexing
from reservoir_cli.settings import config
from reservoir_cli.settings.schema import Value
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import Passage
from reservoir_cli.transfer.ingest import Ingestor

NOW = datetime(2026, 5, 9, 12, tzinfo=UTC)
EVERYWHERE = Scope(None)


class Compass:
    """An embedder whose every question points along the first axis."""

    name = model_id = "compass"
    engine = Engine("compiled", "as ever", "folder")
    dimensions = 2

    def encode_query(self, text):
        return np.array([1, 0], np.float32)

    def encode_documents(self, texts):
        raise AssertionError("every message has its vector")


def add_passages(
    store: Store,
    model_id: str,
    ids: Sequence[int],
    passages: Sequence[Passage],
    threshold: float = 1.0,
    partition: str = "p",
) -> None:
    """Store the passages of messages of one partition."""
    by_message = {
        Key(partition, number): [each for each in passages if each.message_id == number]
        for number in ids
    }
    store.add_passages(model_id, by_message, threshold)


def embed(store: Store, embedder: Embedder, scope: Scope = EVERYWHERE, **more: Any) -> int:
    """Give what is pending its vectors; how many there were."""
    how = {"progress": lambda *_: None, "synapse_threshold": 0.85, **more}
    return indexing.embed_pending(store, embedder, scope, **how)


def ingestor(
    store: Store,
    embedder: Embedder | None = None,
    settings: Mapping[str, Value] | None = None,
    threshold: float = 0.85,
) -> Ingestor:
    """Return the way into a store, with the settings of this run."""

    def load_embedder() -> Embedder:
        if embedder is None:
            raise ModelUnavailableError("there is no model")
        return embedder

    known = config.load(None, {"redact": "off", **(settings or {})})
    indexer = indexing.Indexer(
        store,
        load_embedder,
        link_threshold=threshold,
        notify=lambda _: None,
        progress=lambda *_: None,
    )
    redactor = Redactor(lambda partition: str(known.lookup("redact", partition)[0]))
    return Ingestor(store, known, redactor, indexer)
