"""Resume reading files that grow: checkpoints, and the protocol of importers with them."""

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from reservoir_cli.transfer.reading.decompressed_file import File
from reservoir_cli.transfer.reading.importer import Record, Skipped
from reservoir_cli.transfer.reading.json_stream import parse_line, read_lines

State = dict[str, Any]  # the state of an importer at a checkpoint: small, and serialisable as JSON


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A position in a file from which reading can be resumed.

    :param offset: the number of bytes before it.
    :param state: the importer's state there; never the text of a message.
    :param complete: no turn is unfinished here.
    :param last: the end of the file; what follows the last complete one is an unfinished turn.
    """

    offset: int = 0
    state: State | None = None
    complete: bool = True
    last: bool = False


class StartOver(Exception):
    """Reading cannot be resumed: the file must be read from its beginning.

    Its message says why, if that is a fault.
    """


@contextmanager
def restoring() -> Iterator[None]:
    """Start over if the state of a checkpoint cannot be restored.

    :raises StartOver: the state has another form.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        raise StartOver("the state is damaged") from None


@runtime_checkable
class Resumable(Protocol):
    """An importer that can resume reading.

    :param version: increased when the same file would give other messages, to read it again.
    :param only_databases: resume only databases, and read other files from the beginning.
    """

    name: str
    version: int
    only_databases: bool

    def resume(self, file: File, start: Checkpoint) -> Iterator[Record | Skipped | Checkpoint]:
        """Yield the messages after a checkpoint, with new checkpoints among them.

        The last checkpoint is where to resume when the file has grown. It may precede the last
        messages, which are then yielded again.

        :param file: the bytes of a text file after ``start``; a whole database.
        :raises StartOver: the file must be read from its beginning.
        :raises Unreadable: the rest of the file cannot be read.
        """


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file: its number, its first and last position, and an object or a reason."""

    number: int
    offset: int
    end: int
    value: dict[str, Any] | Skipped

    @property
    def place(self) -> str:
        """The position as shown to the user."""
        return f"line {self.number}"


def lines(file: File, start: Checkpoint) -> Iterator[Line]:
    """Yield the non-blank lines after a checkpoint, whose state counts the ``lines`` before it."""
    with restoring():
        end, number = start.offset, int((start.state or {}).get("lines", 0))
    with file.open() as stream:
        for text, length in read_lines(stream):
            offset, number = end, number + 1
            end += length
            text = text if offset else text.removeprefix(codecs.BOM_UTF8)
            if text.strip():
                value = parse_line(f"line {number}", text)
                if not isinstance(value, dict | Skipped):
                    value = Skipped(f"line {number}", "not a JSON object")
                yield Line(number, offset, end, value)
