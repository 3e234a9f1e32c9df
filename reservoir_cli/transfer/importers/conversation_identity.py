"""What makes messages of a file a conversation: identities, traces, and its name."""

import uuid
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

from reservoir_cli.messages import Conversation, Message, content_hash
from reservoir_cli.transfer.importers.base import Record
from reservoir_cli.transfer.importers.content_blocks import THINKING


class SourceIds:
    """Ids for messages of a file whose format has none.

    An id depends on the message and on the one before it in its thread, so that a longer file
    adds only its tail; equal ids of a file are numbered, so that equal messages stay apart.
    """

    def __init__(self) -> None:
        self._previous: dict[Hashable, str] = {}
        self._seen: Counter[str] = Counter()

    def follow(self, thread: Hashable, source_id: str) -> None:
        """Go on behind a message that has an id of its own, or begin with that of the thread."""
        self._previous[thread] = source_id

    def last(self, thread: Hashable) -> str:
        """Return what the next message of a thread follows."""
        return self._previous.get(thread, "")

    def new(self, thread: Hashable, message: Message) -> str:
        """Return the id of the conversation's next message."""
        made = content_hash(message, self._previous.get(thread, ""))
        self._previous[thread] = made
        self._seen[made] += 1
        return made if self._seen[made] == 1 else f"{made}#{self._seen[made]}"


def source_ids(own: str, messages: Iterable[Message]) -> Iterator[tuple[str, Message]]:
    """Give ids to the messages that a record stands for.

    An id says what the message is in its record, so that a record that is read again when it has
    grown keeps the ids it had.

    :param own: the id of the record.
    """
    seen: Counter[str] = Counter()
    for message in messages:
        kind = ""
        if message.name == THINKING:
            kind = f"#{THINKING}"
        elif message.role == "tool":
            kind = f"#{message.tool_call_id}"
        seen[kind] += 1
        count = f"#{seen[kind]}" if seen[kind] > 1 else ""
        yield f"{own}{kind}{count}", message


def take_back(order: dict[str, None], first: str) -> list[str]:
    """Remove ids from the end of an ordered set up to and including one, and return them."""
    taken: list[str] = []
    while first in order:
        taken.append(order.popitem()[0])
    return taken


@dataclass
class Thread:
    """One conversation: its messages are told its name, and whose question they belong to.

    :param conversation: without one, it is named by its first message.
    """

    source: str
    conversation: Conversation | None = None
    trace: str = ""

    def record(self, message: Message, source_id: str, folder: str | None = None) -> Record:
        """Make the next message. From one question to the next, all share a trace.

        :param folder: where the conversation was held.
        """
        if self.conversation is None:
            self.conversation = Conversation(source_id, source=self.source)
        if message.role == "user" or not self.trace:
            self.trace = str(uuid.uuid5(uuid.NAMESPACE_OID, source_id))
        return Record(
            replace(
                message,
                trace_id=self.trace,
                source=self.source,
                source_id=source_id,
                conversation_id=self.conversation.id,
            ),
            conversation=self.conversation,
            folder=folder,
        )
