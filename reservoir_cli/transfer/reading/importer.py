"""The base class of importers, and the records they yield, with ids, traces and conversations."""

import re
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from reservoir_cli.messages import THINKING, Conversation, Message, clean_text, content_hash
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import folder_name, text

_QUOTED = re.compile(r"""(?s)(['"]).*\1""")


@dataclass(frozen=True, slots=True)
class Vectors:
    """The embeddings of a message: the model's id, and start, end and vector of each passage."""

    model_id: str
    passages: tuple[tuple[int, int, tuple[float, ...]], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A message of a file, whose source and id make imports repeatable; ``None`` is unknown.

    :param folder: the working folder of the conversation, as the tool recorded it.
    :param parent: the id of the conversation for which a subagent's conversation was held.
    """

    message: Message
    partition: str | None = None
    instance: str | None = None
    conversation: Conversation | None = None
    vectors: Vectors | None = None
    folder: str | None = None
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part of a file that was skipped, with its position; the reason never quotes the file."""

    place: str
    reason: str

    @classmethod
    def invalid(cls, place: str, error: ValueError) -> "Skipped":
        """Return what an error skips; those of Python quote values of the file, ours do not."""
        return cls(place, _QUOTED.sub("…", str(error)))

    @staticmethod
    def if_invalid(
        place: str, records: Iterable["Record | Skipped"]
    ) -> Iterator["Record | Skipped"]:
        """Yield records up to a ValueError, which gives the reason why the rest is skipped."""
        try:
            yield from records
        except ValueError as error:
            yield Skipped.invalid(place, error)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A position in a file from which reading can be resumed.

    :param offset: the number of bytes before it.
    :param state: the importer's state there, small and serialisable as JSON; never the text of a
        message.
    :param complete: no turn is unfinished here.
    :param last: the end of the file; what follows the last complete one is an unfinished turn.
    """

    offset: int = 0
    state: dict[str, Any] | None = None
    complete: bool = True
    last: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder in which a program may keep its history; it need not exist.

    :param inside: only files below a folder of one of these names; none for all files.
    :param title: the program's name, if it is not that of the importer.
    :param nearby: whether the current folder and those above it were searched first.
    """

    path: Path
    endings: tuple[str, ...] = (".jsonl",)
    inside: tuple[str, ...] = ()
    title: str | None = None
    nearby: bool = False


class Importer(ABC):
    """Reads files of one format; all that Reservoir knows of the program that writes them.

    :cvar name: the name for ``--format``, and the source of the messages.
    :cvar title: the name of the program.
    :cvar instance: the default instance of the messages; ``None`` for the partition's own.
    :cvar endings: how the names of files end that no other program writes in the same folder. Such
        a file is read even if its content is not recognised.
    :cvar folders: names of folders in which only the program keeps such files.
    :cvar tables: sets of tables, and of columns as ``table.column``. A database has the format if
        it contains all of one set.
    :cvar version: increased when the same file would give other messages, to read it again.
    :cvar resumes_lines: whether ``resume`` also reads on in files of lines, not only in databases.
    :cvar names_are_dated: whether sessions are read in the order of their names, not times.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    instance: ClassVar[str | None] = None
    endings: ClassVar[tuple[str, ...]] = ()
    folders: ClassVar[tuple[str, ...]] = ()
    tables: ClassVar[tuple[frozenset[str], ...]] = ()
    version: ClassVar[int] = 1
    resumes_lines: ClassVar[bool] = False
    names_are_dated: ClassVar[bool] = False

    def detect(self, head: Head) -> bool:
        """Return whether a file with this beginning has the format."""
        return False

    def places(self) -> Iterator[Place]:
        """Yield where the program keeps its history on this machine."""
        yield from ()

    def is_repeated(self, file: File) -> bool:
        """Return whether another file holds the messages of a file."""
        return False

    @abstractmethod
    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield the messages of a file in order; raise Unreadable if the rest cannot be read."""

    def resume(self, file: File, start: Checkpoint) -> Iterator[Record | Skipped | Checkpoint]:
        """Yield the messages after a checkpoint, with new checkpoints among them; here, all.

        The last checkpoint is where to resume when the file has grown. It may precede the last
        messages, which are then yielded again.

        :param file: the bytes of a text file after ``start``; a whole database.
        :raises StartOver: the file must be read from its beginning.
        :raises Unreadable: the rest of the file cannot be read.
        """
        for item in self.read(file):
            yield item
            yield Checkpoint()
        yield Checkpoint(last=True)


class SourceIds:
    """Makes ids that depend on texts unique in a file: the second of a kind gets a number."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def unique(self, source_id: str) -> str:
        """Return an id, with a number if it was given before."""
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


class Thread:
    """A conversation, which sets its id, a trace and missing ids on its messages.

    Its metadata may be any values of the file; those that are no texts are left out.

    :param identity: without it, the conversation gets the id of its first message, and no metadata.
    :param folder: the working folder; it names the project, unless ``project`` does.
    :param parent: the id of the conversation whose subagent held it.
    :param identities: generates the missing ids, unique in a file if all conversations share it.
    """

    def __init__(
        self,
        source: str,
        identity: Any = None,
        *,
        title: Any = None,
        model: Any = None,
        folder: Any = None,
        project: Any = None,
        branch: Any = None,
        parent: Any = None,
        identities: SourceIds | None = None,
    ) -> None:
        self.source, self.trace = source, ""
        self.folder, self.parent = text(folder), text(parent)
        self.identities = identities or SourceIds()
        self.conversation = Conversation("", source=source)
        if name := text(identity):
            project = text(project) or folder_name(folder)
            about = Conversation(name, text(title), source, text(model), project, text(branch))
            self.conversation = about
        self.last_id = self.conversation.id

    def follow(self, source_id: str) -> None:
        """Set the id that the next message follows: a message's own, or the conversation's."""
        self.last_id = source_id

    def new_id(self, message: Message) -> str:
        """Return the id of the next message, which has none.

        It depends on the message and on the previous one, so a longer file adds only its end.
        """
        self.last_id = content_hash(message, self.last_id)
        return self.identities.unique(self.last_id)

    def update(
        self,
        *,
        identity: Any = None,
        title: Any = None,
        model: Any = None,
        folder: Any = None,
        branch: Any = None,
    ) -> None:
        """Update the metadata, as far as a value is a text; the first folder stays."""
        about = self.conversation
        self.folder = self.folder or text(folder)
        self.conversation = replace(
            about,
            id=text(identity) or about.id,
            title=text(title) or about.title,
            model=text(model) or about.model,
            project=about.project or folder_name(folder),
            branch=text(branch) or about.branch,
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
            yield Skipped.invalid(place, error)
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
