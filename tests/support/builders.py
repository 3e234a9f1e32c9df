"""Helpers that several test modules share; fixtures are in ``conftest.py``."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from reservoir_cli.embedding import Embedder, Engine
from reservoir_cli.messages import Key, Scope
from reservoir_cli.retrieval import indexing
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import Passage

NOW = datetime(2026, 5, 9, 12, tzinfo=UTC)
EVERYWHERE = Scope(None)


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
    threshold: float = 1.0,
    partition: str = "p",
) -> None:
    """Store the passages of messages of one partition."""
    by_message = {
        Key(partition, id_): [passage for passage in passages if passage.message_id == id_]
        for id_ in ids
    }
    store.add_passages(model_id, by_message, threshold)


def embed(store: Store, embedder: Embedder, scope: Scope = EVERYWHERE, **more: Any) -> int:
    """Embed pending messages, and return how many there were."""
    options = {"progress": lambda *_: None, "synapse_threshold": 0.85, **more}
    return indexing.embed_pending(store, embedder, scope, **options)
