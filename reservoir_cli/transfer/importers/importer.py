"""The protocol of importers, and the records they yield."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from reservoir_cli.messages import Conversation, Message
from reservoir_cli.transfer.importers.input_files import File

#: Brackets of objects, keys, and other strings, of which the last one of a line may be cut off.
_TOKEN = re.compile(r'(?P<line>^\{)|[{}]|"(?:(?P<key>[^"\\\n]*)"\s*:|(?:[^"\\\n]|\\.)*+"?)', re.M)
#: How a SQLite file begins.
SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Vectors:
    """The embeddings of a message in a file.

    :param model_id: identity of the model, as in :class:`reservoir_cli.embedding.Embedder`.
    :param passages: start, end and vector of each passage of the message.
    """

    model_id: str
    passages: tuple[tuple[int, int, tuple[float, ...]], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A message of a file; unknown fields are ``None``.

    :param message: has ``source`` and ``source_id``, which make imports repeatable.
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
    """A part of a file that was skipped, with its position.

    :param reason: never quotes the file.
    """

    place: str
    reason: str


class Importer(Protocol):
    """Reads files of one format."""

    @property
    def name(self) -> str:
        """Its name for ``--format``, and the source of its messages."""

    @property
    def instance(self) -> str | None:
        """The default instance of its messages; ``None`` for the partition's own."""

    def detect(self, head: str) -> bool:
        """Return whether a file with this beginning has the format."""

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield the messages of a file, in order.

        :raises Unreadable: the rest of the file cannot be read.
        """


def has_key(head: str, *names: str, depth: int = 2) -> bool:
    """Return whether a JSON text has one of the keys; the names inside strings do not count.

    :param depth: in how many objects, one inside the other, the key may be. Calls of tools and
        their results have keys of any name further inside.
    """
    if re.search(rf'"(?:{"|".join(names)})"\s*:', head) is None:  # the usual case
        return False
    opened = 0
    for token in _TOKEN.finditer(head):
        opened = 1 if token["line"] else opened + {"{": 1, "}": -1}.get(token[0], 0)
        if token["key"] in names and opened <= depth:
            return True
    return False


def is_json(head: str) -> bool:
    """Return whether a text begins like a JSON object or array."""
    return head.lstrip()[:1] in ("{", "[")
