"""Reading on in files that grow: from where the last reading ended, and with what it knew."""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from reservoir_cli.transfer.importers.base import Record, Skipped
from reservoir_cli.transfer.importers.input_files import File
from reservoir_cli.transfer.importers.json_stream import parse_line
from reservoir_cli.util.read_files import LARGEST

#: What an importer knows of a file before a place in it: small, and JSON.
State = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A place in a file from which it can be read on.

    :param offset: how many bytes lie before it.
    :param state: what the importer needs of those; never the text of a message.
    :param complete: no turn is unfinished here.
    :param last: nothing follows. If it is not complete, what came since the complete one before
        it is an unfinished turn.
    """

    offset: int = 0
    state: State | None = None
    complete: bool = True
    last: bool = False


class StartOver(Exception):
    """What follows can only be understood from the beginning of the file."""


@runtime_checkable
class Resumable(Protocol):
    """An importer that can read on.

    :param version: raised when the same file would give other messages; it is then read again.
    """

    name: str
    version: int
    #: It reads on in databases, and reads other files whole.
    only_databases: bool

    def resume(self, file: File, start: Checkpoint) -> Iterator[Record | Skipped | Checkpoint]:
        """Yield what follows a place, and now and then a place to go on from.

        The last one says from where to go on when the file has grown. That may be a place before
        what was yielded last, which then comes once more.

        :param file: of a text file only the bytes behind ``start``; a database has its path.
        :raises StartOver: the file has to be read from its beginning.
        :raises Unreadable: what follows cannot be read.
        """


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file.

    :param number: 1 for the first line of the file.
    :param offset: where it begins.
    :param end: where the next one begins.
    :param value: an object, or why it is none.
    """

    number: int
    offset: int
    end: int
    value: dict[str, Any] | Skipped

    @property
    def place(self) -> str:
        """What a person would look it up by."""
        return f"line {self.number}"


def lines(file: File, start: Checkpoint) -> Iterator[Line]:
    """Yield the lines of JSON Lines that hold anything.

    :param start: its state counts the lines before it as ``lines``.
    """
    end, number = start.offset, int((start.state or {}).get("lines", 0))
    with file.open() as stream:
        while text := stream.readline(LARGEST + 1):
            offset, number = end, number + 1
            end += len(text)
            rest = text
            while len(rest) > LARGEST and not rest.endswith(b"\n"):
                rest = stream.readline(LARGEST + 1)
                end += len(rest)
            text = text if offset else text.removeprefix(codecs.BOM_UTF8)
            if text.strip():
                value = parse_line(f"line {number}", text)
                if not isinstance(value, dict | Skipped):
                    value = Skipped(f"line {number}", "not a JSON object")
                yield Line(number, offset, end, value)
