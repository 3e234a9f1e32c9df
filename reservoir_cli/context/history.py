"""Decide which messages may be turns of history: those of a running session, or an instance's.

All others are recalled under their day and title, however new they are. The last turns before a
question are read, so that a follow-up question finds its subject.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.context.request import ContextRequest
from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Filter, Role, Scope, StoredMessage
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.search.candidates import Said, Talk
from reservoir_cli.storage.store import Store

_SAID = Filter(documents=False)  # documents are never turns
#: Weights of a user turn and its reply, relative to the question, and the factor of earlier ones.
_WEIGHTS, _EARLIER = {Role.USER: 0.5, Role.ASSISTANT: 0.3}, 0.5
_TURNS = 2  # how many user turns count
_MESSAGES_READ = 20  # how many of the newest messages are read to find the two
_LONGEST = 500  # the longest beginning of a turn that is embedded with the question, in characters

_Turn = TypeVar("_Turn", bound=StoredMessage | Said)


class HistorySource(NamedTuple):
    """Where history comes from."""

    instance: str  # the one whose newest messages are recent
    whole: bool  # whether all of its messages may be turns, not only those of a running session
    runs: bool  # whether its newest session is still running


def find_history(request: ContextRequest, settings: Settings, store: Store) -> HistorySource | None:
    """Return where history comes from; ``None`` for a recall, which has no history.

    With an instance that the caller names, with ``order = "tiers"``, and without a question, all
    messages of the instance may be turns. Otherwise only those of a running session may.
    """
    if request.recall_only:
        return None
    partition, instance = request.partition, request.instance
    whole = instance is not None or settings.order == "tiers" or not request.query.strip()
    if instance is None and (whole or settings.recall_scope == "instance"):
        own = store.last(Scope(partition, partition), 1, _SAID)
        instance = partition if own else store.newest_instance(partition) or partition
    newest = store.last(Scope(partition, instance), 1, _SAID)
    if not newest:
        return HistorySource(instance or partition, whole, runs=False)
    gap = timedelta(seconds=settings.session_gap)
    return HistorySource(newest[0].instance, whole, runs=request.now - newest[0].created_at <= gap)


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
    :param conversation: the session to consider; ``None`` for that of the newest message.
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
    stored = store.passages([message.key for _, message in turns])
    vectors = tuple(
        weight * _unit(np.mean([row.vector for row in passages], axis=0))
        for weight, message in turns
        if (passages := stored.get(message.key))
    )
    return Talk(tuple((weight, message.content) for weight, message in turns), vectors)


def embed_talk(
    said: Sequence[Said],
    question: str,
    embedder: Embedder | None,
    says_nothing: Callable[[str], bool],
) -> Talk | None:
    """Return the last turns of a session as its client has them, ``None`` without any."""
    turns = [
        (weight, turn.content[:_LONGEST])
        for weight, turn in _last_turns(said, question, says_nothing)
    ]
    if not turns:
        return None
    vectors = embedder.encode_documents([text for _, text in turns]) if embedder else ()
    weighted = (weight * vector for (weight, _), vector in zip(turns, vectors, strict=False))
    return Talk(tuple(turns), tuple(weighted))


def _last_turns(
    messages: Sequence[_Turn], question: str, says_nothing: Callable[[str], bool]
) -> list[tuple[float, _Turn]]:
    """Return the last user turns that have a subject and the last reply to each, with weights."""
    turns: list[tuple[float, _Turn]] = []
    reply: list[_Turn] = []
    count = 0
    for message in reversed(messages):
        text = message.content.strip()
        if not text or message.role not in _WEIGHTS:
            continue
        if message.role is Role.ASSISTANT:
            reply = reply or [message]
        elif text == question.strip() or says_nothing(text):
            reply = []
        else:
            factor = _EARLIER**count
            turns += [(factor * _WEIGHTS[turn.role], turn) for turn in (message, *reply)]
            reply, count = [], count + 1
            if count == _TURNS:
                break
    return turns or [(_WEIGHTS[turn.role], turn) for turn in reply]


def _unit(vector: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12))
