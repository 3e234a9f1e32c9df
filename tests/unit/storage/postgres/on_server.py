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
#: What a user leaves open, with every right that they have: keys of locks, rows, tables.
HOSTILE = {
    "nils": [
        "SELECT pg_advisory_lock(1382250098, 0)",
        "SELECT pg_advisory_lock(classid::int, objid::int) FROM pg_locks "
        "WHERE locktype = 'advisory'",
        "SELECT * FROM reservoir.partition_locks WHERE partition = 'team' FOR UPDATE",
        "LOCK TABLE reservoir.partition_locks IN ROW EXCLUSIVE MODE",
        "LOCK TABLE reservoir.messages IN ROW EXCLUSIVE MODE",
        "SELECT reservoir.add_shared('tombstones', ARRAY[repeat('ab', 32)], NULL)",
        "SELECT * FROM reservoir.messages WHERE partition = 'team' FOR UPDATE",
        "INSERT INTO reservoir.pending VALUES ('nils', 5)",
    ],
    "pia": ["LOCK TABLE reservoir.messages IN ACCESS SHARE MODE", "SELECT pg_advisory_lock(7)"],
}


def say(store: Store, *texts: str, scope: Scope = HERE) -> list[int]:
    messages = [Message("user", text, created_at=NOW, source="s") for text in texts]
    stored = store.add(scope, messages, counter=COUNTER, now=NOW)
    return [message.id for message in stored if message]


def contents(messages: list[StoredMessage]) -> list[str]:
    return [message.content for message in messages]


def embed(store: Store, embedder, threshold: float = 0.5) -> None:
    builders.embed(store, embedder, threshold=threshold)
