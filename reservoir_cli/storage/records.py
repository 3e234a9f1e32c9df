"""What a store takes and gives: values that pass between it and its callers."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from reservoir_cli.messages import Conversation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Filter:
    """Which messages of a scope are meant; ``None`` leaves a field open.

    :param text: they say this, word for word, in content or tool calls; case is ignored.
    :param session: they are of this conversation, or of a part of it: an id that goes on with
        a slash, as those of sub-agents do.
    :param source: the tool they came from.
    :param project: the folder that their conversation was about.
    :param tag: a name that a person gave them.
    :param pinned: only those that are pinned.
    :param secrets: only those in which secrets were found.
    :param documents: whether texts of a folder count as well.
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


#: Ids of texts that may be given by their beginnings.
IdField = Literal["trace_id", "conversation_id"]


class Passage(NamedTuple):
    """A part of a message that has a vector of its own.

    :param start: offset of its first character in the message's text.
    :param end: offset behind its last.
    :param vector: float32, shape (dimensions,), length 1.
    """

    message_id: int
    number: int
    start: int
    end: int
    vector: "NDArray[np.float32]"


class Problem(NamedTuple):
    """Something wrong with a store.

    :param detail: what it is, without any text of a message.
    :param repairable: ``repair`` mends it; else a backup is needed.
    """

    detail: str
    repairable: bool


#: Partition, instance, and conversation: ``None`` for what an instance has outside of any.
ThreadName = tuple[str, str, str | None]


class PlaceSummary(NamedTuple):
    """What a partition holds in one instance.

    :param bytes: of text, in UTF-8.
    """

    partition: str
    instance: str
    messages: int
    bytes: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A conversation, how many messages it has, and when they were said.

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
        """Its partition, its instance, and its id."""
        return self.partition, self.instance, self.conversation.id


class LedgerEntry(NamedTuple):
    """What the proxy added to one question.

    :param ordinal: the question's number in its conversation.
    :param question: a hash of the question and of those before it.
    :param masked: secrets are hidden in it.
    """

    ordinal: int
    question: str
    block: str
    tokens: int
    masked: bool = True
