"""Read the messages just before a question, so that a follow-up question finds its subject."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.embedding import Embedder
from reservoir_cli.message_filter import Filter
from reservoir_cli.messages import Role, Scope, StoredMessage
from reservoir_cli.storage.candidates import Talk
from reservoir_cli.storage.store import Store

#: The weights of the last user turn and its reply, relative to the question.
_WEIGHTS = {Role.USER: 0.5, Role.ASSISTANT: 0.3}
#: How many of the newest messages are read to find the two.
_MESSAGES_READ = 20
#: The longest beginning of a turn that is embedded with the question, in characters.
_LONGEST = 1_000


class Said(NamedTuple):
    """A turn of the reader's session, as its client has it."""

    role: Role
    content: str


_Turn = TypeVar("_Turn", StoredMessage, Said)


def read_running_talk(
    store: Store,
    scope: Scope,
    question: str,
    now: datetime,
    session_gap: float,
    conversation: str | None = None,
    says_nothing: Callable[[str], bool] = lambda _: False,
) -> Talk | None:
    """Return the last turns of the session if it is still running, else ``None``.

    :param scope: the instance that history comes from.
    :param session_gap: seconds without a message after which a session ends.
    :param conversation: the session to consider; ``None`` for that of the newest message.
        Documents belong to none.
    :param says_nothing: whether a user's turn has no subject; then the turns before it count.
    """
    where = Filter(conversation_id=conversation, documents=False)
    newest = store.last(scope, _MESSAGES_READ, where)
    if not newest or now - newest[-1].created_at > timedelta(seconds=session_gap):
        return None
    same = [row for row in newest if row.conversation_id == newest[-1].conversation_id]
    turns = _last_turns(same, question, says_nothing)
    if not turns:
        return None
    weighted = tuple((_WEIGHTS[message.role], message.content) for message in turns)
    return Talk(weighted, tuple(_read_vectors(store, turns)))


def embed_talk(
    said: Sequence[Said],
    question: str,
    embedder: Embedder | None,
    says_nothing: Callable[[str], bool],
) -> Talk | None:
    """Return the last turns of a session as its client has them, ``None`` without any.

    :param embedder: ``None`` to compare words only.
    """
    turns = [
        (_WEIGHTS[turn.role], turn.content[:_LONGEST])
        for turn in _last_turns(said, question, says_nothing)
    ]
    if not turns:
        return None
    vectors = embedder.encode_documents([text for _, text in turns]) if embedder else ()
    weighted = (weight * vector for (weight, _), vector in zip(turns, vectors, strict=False))
    return Talk(tuple(turns), tuple(weighted))


def _last_turns(
    messages: Sequence[_Turn], question: str, says_nothing: Callable[[str], bool]
) -> list[_Turn]:
    """Return the last user turn that has a subject, and the last reply to it."""
    reply: list[_Turn] = []
    for message in reversed(messages):
        text = message.content.strip()
        if not text or message.role not in _WEIGHTS:
            continue
        if message.role is Role.ASSISTANT:
            reply = reply or [message]
        elif text == question.strip() or says_nothing(text):
            reply = []
        else:
            return [message, *reply]
    return reply


def _read_vectors(store: Store, turns: Sequence[StoredMessage]) -> Iterator[NDArray[np.floating]]:
    """Yield the stored vectors of turns, as long as their weights, skipping turns without one."""
    stored = store.passages([message.key for message in turns])
    for message in turns:
        if passages := stored.get(message.key):
            mean = np.mean([row.vector for row in passages], axis=0)
            yield _WEIGHTS[message.role] * (mean / max(float(np.linalg.norm(mean)), 1e-12))
