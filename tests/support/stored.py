"""Helpers for tests of a store."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from behind import behind

from reservoir_cli.messages import Scope, StoredMessage
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import load_counter

HOUR = timedelta(hours=1)
HERE = Scope("p", "i")
EVERYWHERE = Scope(None)
COUNTER = load_counter("approximate")

Adding = Callable[..., list[StoredMessage | None]]


def contents(messages: Sequence[StoredMessage | None]) -> list[str]:
    return [message.content for message in messages if message is not None]


def ids_of(messages: Sequence[StoredMessage | None]) -> list[int]:
    return [message.id for message in messages if message is not None]


def delete(store: Store, message: StoredMessage | None) -> None:
    """Delete a message without the store's knowledge, as another process would."""
    assert message is not None
    behind(store.location, "DELETE FROM messages WHERE id = ?", [message.id])
