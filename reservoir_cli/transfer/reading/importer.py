"""The base class of importers, and the records they yield."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from reservoir_cli.messages import Conversation, Message
from reservoir_cli.transfer.reading.head import Head
from reservoir_cli.transfer.reading.input_files import File
from reservoir_cli.transfer.reading.places import Place

SQLITE = b"SQLite format 3\0"  # how a SQLite file begins


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
    """

    name: ClassVar[str]
    title: ClassVar[str]
    instance: ClassVar[str | None] = None
    endings: ClassVar[tuple[str, ...]] = ()
    folders: ClassVar[tuple[str, ...]] = ()
    tables: ClassVar[tuple[frozenset[str], ...]] = ()

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
