"""Reading other tools' files: one format a file, chosen by what the file holds.

An importer yields records and knows nothing of the store; ``ingesting`` saves them. A bad record
is skipped with its place and never ends the run.
"""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import Conversation, Message, content_hash


@dataclass(frozen=True, slots=True)
class Record:
    """A message as a file has it; ``None`` where the file does not say.

    :param source: it becomes part of the message's identity, with ``message.source_id``.
    """

    message: Message
    partition: str | None = None
    instance: str | None = None
    conversation: Conversation | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a file that is no message, and where it stands."""

    place: str
    reason: str


class SourceIds:
    """Ids for messages of a file whose format has none.

    An id depends on the message and on the one before it in its thread, so that a longer file
    adds only its tail; equal ids of a file are numbered, so that equal messages stay apart.
    """

    def __init__(self) -> None:
        self._previous: dict[Hashable, str] = {}
        self._seen: Counter[str] = Counter()

    def follow(self, thread: Hashable, source_id: str) -> None:
        """Go on behind a message that has an id of its own."""
        self._previous[thread] = source_id

    def new(self, thread: Hashable, message: Message) -> str:
        """The id of a thread's next message."""
        made = content_hash(message, self._previous.get(thread, ""))
        self._previous[thread] = made
        self._seen[made] += 1
        return made if self._seen[made] == 1 else f"{made}#{self._seen[made]}"


class Importer(Protocol):
    """A format that can be read."""

    name: str

    def detect(self, head: str) -> bool:
        """Whether a file that begins like this is of the format."""

    def read(self, text: str) -> Iterator[Record | Skipped]:
        """The messages of a file, in its order."""


def importers() -> dict[str, Importer]:
    """All formats by name, the most particular first."""
    from reservoir_cli.importers import native, openai, plain

    return {each.name: each for each in (native.Native(), openai.OpenAI(), plain.Plain())}


def choose(text: str, form: str | None, where: str = "") -> Importer:
    """The importer for a text: the one named, or the first that knows it.

    :param where: the file's name; one that says JSON is not taken for plain text.
    :raises UsageError: there is no format of that name.
    :raises ReservoirError: it is a JSON file of no format that is known.
    """
    known = importers()
    if form is not None:
        if form not in known:
            raise UsageError(f"unknown format {form!r}", hint=f"formats are {', '.join(known)}")
        return known[form]
    head = text[:65_536]
    chosen = next(each for each in known.values() if each.detect(head))
    if chosen.name == "text" and text.strip() and where.lower().endswith((".json", ".jsonl")):
        raise ReservoirError(
            f"{where} is of no format that is known",
            hint=f"formats are {', '.join(known)}; --format text stores it as one message",
        )
    return chosen


def read_text(path: Path) -> tuple[str, bool]:
    """A file's text, and whether bytes that are not UTF-8 had to be replaced.

    :raises ReservoirError: it cannot be read, or is not text.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReservoirError(f"cannot read {path}: {error.strerror}") from None
    return decode(data, str(path))


def decode(data: bytes, where: str) -> tuple[str, bool]:
    """Bytes as text, and whether some of them were not UTF-8 and had to be replaced.

    :param where: the file's name, for the error.
    :raises ReservoirError: most of it is not text.
    """
    text = data.decode("utf-8-sig", "replace")
    replaced = text.count("\ufffd") + text.count("\0")
    if replaced > max(8, len(text) // 10):
        raise ReservoirError(f"{where} is not a text file")
    return text, replaced > 0 and (b"\0" in data or not _is_utf8(data))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
