"""What an importer is, and what it yields."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from reservoir_cli.messages import Conversation, Message
from reservoir_cli.transfer.importers.input_files import File

#: How a SQLite file begins.
SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Vectors:
    """A message's passages as a file has them: where each begins and ends, and its vector.

    :param model_id: identity of the model, as of :class:`reservoir_cli.embedding.Embedder`.
    """

    model_id: str
    passages: tuple[tuple[int, int, tuple[float, ...]], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A message as a file has it; ``None`` where the file does not say.

    :param message: ``source`` and ``source_id`` are set; they are what makes imports repeatable.
    :param folder: where the conversation was held, as the tool says it.
    """

    message: Message
    partition: str | None = None
    instance: str | None = None
    conversation: Conversation | None = None
    vectors: Vectors | None = None
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a file that is no message, and where it stands.

    :param reason: it never quotes what the file says.
    """

    place: str
    reason: str


class Importer(Protocol):
    """A format that can be read."""

    @property
    def name(self) -> str:
        """What ``--format`` calls it, and the source of its messages."""

    @property
    def instance(self) -> str | None:
        """Where its messages go unless told otherwise; ``None`` for the usual place."""

    def detect(self, head: str) -> bool:
        """Whether a file that begins like this is of the format."""

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield the messages of a file, in order.

        :raises Unreadable: what follows cannot be read.
        """


def has_key(head: str, *names: str) -> bool:
    """Whether a JSON text has one of these keys; the same words inside a string do not count."""
    return re.search(rf'"(?:{"|".join(names)})"\s*:', head) is not None


def is_json(head: str) -> bool:
    """Whether a text begins like a JSON object or array."""
    return head.lstrip()[:1] in ("{", "[")
