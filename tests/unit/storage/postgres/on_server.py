"""Helpers for tests of a store on a server."""

from datetime import UTC, datetime

import builders

from reservoir_cli.messages import Message, Scope, StoredMessage
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import load_counter

NOW = datetime(2026, 5, 9, 12, tzinfo=UTC)
COUNTER = load_counter("approximate")
EVERYWHERE = Scope(None)
HERE = Scope("p", "i")


def say(store: Store, *texts: str, scope: Scope = HERE) -> list[int]:
    messages = [Message("user", text, created_at=NOW, source="s") for text in texts]
    stored = store.add(scope, messages, counter=COUNTER, now=NOW)
    return [message.id for message in stored if message]


def contents(messages: list[StoredMessage]) -> list[str]:
    return [message.content for message in messages]


def embed(store: Store, embedder, threshold: float = 0.5) -> None:
    builders.embed(store, embedder, threshold=threshold)
