"""Value types that a store and its callers exchange."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from reservoir_cli.messages import Conversation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on the messages of a scope; ``None`` matches every message.

    :param text: a literal text in their content or tool calls; case is ignored.
    :param session: the id of their conversation, or its beginning up to a slash: sub-agents
        append a slash and an id of their own.
    :param source: the tool they came from.
    :param project: the folder that their conversation was about.
    :param tag: a tag that a person gave them.
    :param pinned: only pinned messages.
    :param secrets: only messages in which secrets were found.
    :param documents: whether to include the documents of an ingested folder.
    """

    role: str | None = None
    trace_id: str | None = None
    conversation_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None
    source: str | None = None
    project: str | None = None
    tag: str | None = None
    pinned: bool = False
    secrets: bool = False
    documents: bool = True
    session: str | None = None


#: The text ids that may be abbreviated to a prefix.
IdField = Literal["trace_id", "conversation_id"]


class Passage(NamedTuple):
    """A part of a message with its own vector.

    :param start: the offset of its first character in the message's text.
    :param end: the offset after its last character.
    :param vector: float32, shape (dimensions,), length 1.
    """

    message_id: int
    number: int
    start: int
    end: int
    vector: "NDArray[np.float32]"


class Problem(NamedTuple):
    """A fault of a store.

    :param detail: a description, without any text of a message.
    :param repairable: whether ``repair`` fixes it; otherwise a backup is needed.
    """

    detail: str
    repairable: bool


#: Partition, instance and conversation: ``None`` for the messages outside of any conversation.
ThreadName = tuple[str, str, str | None]


class PlaceSummary(NamedTuple):
    """The number, size and times of the messages in one instance.

    :param bytes: the size of their texts in UTF-8.
    """

    partition: str
    instance: str
    messages: int
    bytes: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A conversation, the number of its messages, and the times of its first and last one.

    :param question: the beginning of its first question, if it has no title.
    """

    partition: str
    instance: str
    conversation: Conversation
    messages: int
    first: datetime
    last: datetime
    question: str | None = None

    @property
    def thread(self) -> ThreadName:
        """The conversation's partition, instance and id."""
        return self.partition, self.instance, self.conversation.id


class LedgerEntry(NamedTuple):
    """The block that the proxy added to a question.

    :param ordinal: the question's number in its conversation.
    :param question: a hash of the question and of all questions before it.
    :param masked: whether secrets in the block are redacted.
    """

    ordinal: int
    question: str
    block: str
    tokens: int
    masked: bool = True
