"""A request that passed through the proxy, with its answer."""

from dataclasses import dataclass
from datetime import datetime

from reservoir_cli.messages import Message, Scope

PARTIAL = "partial"  # tag of an incomplete answer


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer.

    :param messages: the messages of the request, with their identities as ``source_id``.
    :param reply: the answer with its identity; ``None`` without an answer.
    :param named: the client names its conversation.
    :param moves: it is stored where its conversation is.
    :param is_whole: the messages are the whole history; else the provider has the earlier ones.
    :param asked_at: when the request arrived; ``None`` if unknown.
    :param reported: tokens of the reply's text, if the provider reports them.
    :param is_stored: whether its messages are stored; else its tokens are compared at most.
    """

    scope: Scope
    conversation: str
    model: str | None
    messages: tuple[Message, ...]
    reply: Message | None
    partial: bool = False
    named: bool = True
    moves: bool = False
    is_whole: bool = True
    asked_at: datetime | None = None
    reported: int | None = None
    is_stored: bool = True
