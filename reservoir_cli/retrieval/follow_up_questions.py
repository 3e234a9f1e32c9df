"""Read the messages just before a question, so that a follow-up question finds its subject."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.message_filter import Filter
from reservoir_cli.messages import Role, Scope, StoredMessage
from reservoir_cli.storage.candidates import Talk
from reservoir_cli.storage.store import Store

#: The weights of the last user turn and the last reply, relative to the question.
_WEIGHTS = {Role.USER: 0.5, Role.ASSISTANT: 0.3}
#: How many of the newest messages are read to find the two.
_MESSAGES_READ = 20


def read_running_talk(
    store: Store,
    scope: Scope,
    question: str,
    now: datetime,
    session_gap: float,
    conversation: str | None = None,
) -> Talk | None:
    """Return the last turns of the session if it is still running, else ``None``.

    :param scope: the instance that history comes from.
    :param session_gap: seconds without a message after which a session ends.
    :param conversation: the session to consider; ``None`` for that of the newest message.
        Documents belong to none.
    """
    where = Filter(conversation_id=conversation, documents=False)
    newest = store.last(scope, _MESSAGES_READ, where)
    if not newest or now - newest[-1].created_at > timedelta(seconds=session_gap):
        return None
    turns: dict[Role, StoredMessage] = {}
    for message in newest:
        if message.conversation_id == newest[-1].conversation_id and _is_turn(message, question):
            turns[message.role] = message
    if not turns:
        return None
    weighted = tuple((_WEIGHTS[role], message.content) for role, message in turns.items())
    return Talk(weighted, tuple(_read_vectors(store, turns)))


def _is_turn(message: StoredMessage, question: str) -> bool:
    text = message.content.strip()
    return message.role in _WEIGHTS and bool(text) and text != question.strip()


def _read_vectors(store: Store, turns: dict[Role, StoredMessage]) -> Iterator[NDArray[np.floating]]:
    """Yield the stored vectors of turns, as long as their weights, skipping turns without one."""
    stored = store.passages([message.key for message in turns.values()])
    for role, message in turns.items():
        if passages := stored.get(message.key):
            mean = np.mean([row.vector for row in passages], axis=0)
            yield _WEIGHTS[role] * (mean / max(float(np.linalg.norm(mean)), 1e-12))
