"""Assign ids, traces and conversations to the messages of a file."""

import uuid
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

from reservoir_cli.messages import Conversation, Message, clean_text, content_hash
from reservoir_cli.transfer.reading.content_blocks import THINKING
from reservoir_cli.transfer.reading.foreign_values import folder_name
from reservoir_cli.transfer.reading.importer import Record, Skipped


class SourceIds:
    """Generates ids for messages of formats without ids.

    An id depends on the message and on the previous one, so a longer file adds only its end.
    """

    def __init__(self) -> None:
        self._previous: dict[Hashable, str] = {}
        self._seen: Counter[str] = Counter()

    def follow(self, thread: Hashable, source_id: str) -> None:
        """Set the id that the next message follows: a message's own, or the conversation's."""
        self._previous[thread] = source_id

    def last(self, thread: Hashable) -> str:
        """Return the id that the next message of a conversation follows."""
        return self._previous.get(thread, "")

    def new(self, thread: Hashable, message: Message) -> str:
        """Return the id of a conversation's next message."""
        source_id = content_hash(message, self._previous.get(thread, ""))
        self._previous[thread] = source_id
        self._seen[source_id] += 1
        return source_id if self._seen[source_id] == 1 else f"{source_id}#{self._seen[source_id]}"


def assign_ids(record_id: str, messages: Iterable[Message]) -> Iterator[tuple[str, Message]]:
    """Yield messages with ids that depend on their kind: they stay when the record grows."""
    seen: Counter[str] = Counter()
    for message in messages:
        kind = ""
        if message.name == THINKING:
            kind = f"#{THINKING}"
        elif message.role == "tool":
            kind = f"#{message.tool_call_id}"
        seen[kind] += 1
        count = f"#{seen[kind]}" if seen[kind] > 1 else ""
        yield f"{record_id}{kind}{count}", message


def pop_from(order: dict[str, None], first: str) -> list[str]:
    """Remove the given id and all after it from an ordered set, and return them."""
    removed: list[str] = []
    while first in order:
        removed.append(order.popitem()[0])
    return removed


@dataclass
class Thread:
    """A conversation, which sets its id, a trace and missing ids on its messages.

    :param about: the metadata; without an id, the conversation gets that of its first message.
    :param parent: the id of the conversation whose subagent held it.
    :param identities: generates the missing ids, unique in a file if all conversations share it.
    """

    source: str
    about: InitVar[Conversation | None] = None
    trace: str = ""
    folder: str | None = None
    parent: str | None = None
    identities: SourceIds = field(default_factory=SourceIds)
    conversation: Conversation = field(init=False)

    def __post_init__(self, about: Conversation | None) -> None:
        self.conversation = about or Conversation("", source=self.source)
        self.follow(self.conversation.id)  # an earlier conversation may have had the same id()

    def follow(self, source_id: str) -> None:
        """Set the id that the next message follows: a message's own, or the conversation's."""
        self.identities.follow(id(self), source_id)

    @property
    def last_id(self) -> str:
        """The id that the next message follows."""
        return self.identities.last(id(self))

    def new_id(self, message: Message) -> str:
        """Return the id of the next message, which has none."""
        return self.identities.new(id(self), message)

    def update(
        self, *, model: str | None = None, folder: Any = None, branch: str | None = None
    ) -> None:
        """Update the metadata with those of a message; the first folder names the project."""
        about = self.conversation
        self.conversation = replace(
            about,
            model=model or about.model,
            project=about.project or folder_name(folder),
            branch=branch or about.branch,
        )

    def convert(
        self,
        place: str,
        record_id: str | None,
        read: Callable[[], Iterable[Message]],
        folder: str | None = None,
    ) -> Iterator[Record | Skipped]:
        """Yield the records of what ``read`` returns, or why its ValueError skips it.

        :param record_id: its id; without one, the ids depend on the messages.
        :param folder: the working folder of the messages, if it differs from the conversation's.
        """
        try:
            messages = list(read())
        except ValueError as error:
            yield Skipped(place, str(error))
            return
        yield from self.records(record_id, messages, folder)

    def records(
        self, record_id: str | None, messages: Iterable[Message], folder: str | None = None
    ) -> Iterator[Record]:
        """Yield records of one record of the file; without its id, theirs depend on the text."""
        for source_id, message in assign_ids(record_id or "", messages):
            yield self.record(message, source_id if record_id else None, folder)

    def record(
        self, message: Message, source_id: str | None = None, folder: str | None = None
    ) -> Record:
        """Return the record of the next message, with a new trace for each question."""
        source_id = clean_text(source_id or "") or self.new_id(message)
        if not self.conversation.id:
            self.conversation = replace(self.conversation, id=source_id)
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
            folder=folder or self.folder,
            parent=self.parent,
        )
