"""Resume reading files that grow, from their checkpoints."""

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from reservoir_cli.transfer.reading.decompressed_file import File
from reservoir_cli.transfer.reading.importer import Checkpoint, Skipped
from reservoir_cli.transfer.reading.json_stream import parse_line, read_lines

State = dict[str, Any]  # the state of an importer at a checkpoint: small, and serialisable as JSON


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
