"""JSON documents and JSON Lines as one stream of objects, each with its place.

However long a file is, no more than one entry of it is in memory. An entry that does not parse,
is nested too deeply, or is too large is skipped, and reading goes on behind it.
"""

import codecs
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import Any, BinaryIO

from reservoir_cli.transfer.importers.base import Record, Skipped
from reservoir_cli.transfer.importers.input_files import File
from reservoir_cli.util.read_files import LARGEST

Entry = tuple[str, dict[str, Any]]

_NO_OBJECT = "not a JSON object"
_DOCUMENT = "the document"
_TOO_LARGE = f"larger than {LARGEST >> 20} MB"
_AT_ONCE = 1 << 20
_GAP = re.compile(r"[\s,]*")
#: What tells where a value ends: brackets, and strings, in which brackets mean nothing.
_SIGNS = re.compile(r'"|[\[{]+|[\]}]+')
_IN_STRING = re.compile(r'["\\]')
_DECODER = json.JSONDecoder()


def entries(file: File) -> Generator[Entry | Skipped, None, None]:
    """Yield the objects of a JSON array, a single object, or JSON Lines.

    Whatever is no object comes out as skipped; so does a torn last line.
    """
    with file.open() as stream:
        array = _first_character(stream) == b"["
    with file.open() as stream:
        found = _array(stream) if array else _lines(stream)
        for place, value in found:
            if isinstance(value, Skipped):
                yield value
            elif isinstance(value, dict):
                yield place, value
            else:
                yield Skipped(place, _NO_OBJECT)


def syntax_error(file: File) -> Skipped | None:
    """Return where and why the first entry of a file is not JSON; ``None`` if it is."""
    with closing(entries(file)) as found:
        first = next(found, None)
    return first if isinstance(first, Skipped) and first.reason != _NO_OBJECT else None


def read_each(
    file: File, read: Callable[[str, dict[str, Any]], Iterable[Record | Skipped]]
) -> Iterator[Record | Skipped]:
    """Yield what the entries of a file say, and the reasons for those that cannot be read.

    :param read: given an entry's place, and the entry.
    """
    for found in entries(file):
        if isinstance(found, Skipped):
            yield found
        else:
            yield from read(*found)


def _first_character(stream: BinaryIO) -> bytes:
    head = stream.read(_AT_ONCE).removeprefix(codecs.BOM_UTF8).lstrip()
    return head[:1]


def parse_line(place: str, line: bytes) -> Any:
    """Parse a value, or return why there is none.

    Bytes that are no UTF-8 become halves of surrogate pairs, which are replaced when they are
    stored, and counted.
    """
    if len(line) > LARGEST:
        return Skipped(place, _TOO_LARGE)
    try:
        return json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        return Skipped(place, _reason(error, in_document=place == _DOCUMENT))


def _reason(error: Exception, *, in_document: bool = False) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON in line {error.lineno}" if in_document else "not valid JSON"
    return "a number of too many digits"


# Lines, and single documents


def _lines(stream: BinaryIO) -> Iterator[tuple[str, Any]]:
    """JSON Lines; a document that is one line, or is laid out on several, is one entry."""
    lines = _numbered(stream)
    number, line = next(lines, (0, b""))
    if not number:
        return
    first = parse_line(f"line {number}", line)
    following = next(lines, None)
    if following is None:
        yield _DOCUMENT, _as_document(first)
        return
    second = parse_line(f"line {following[0]}", following[1])
    if isinstance(first, Skipped) and isinstance(second, Skipped):
        blank = (b"\n" * (number - 1), b"\n" * (following[0] - number - 1))
        yield _DOCUMENT, _document([blank[0], line, blank[1], following[1]], stream)
        return
    yield f"line {number}", first
    yield f"line {following[0]}", second
    for number, line in lines:
        yield f"line {number}", parse_line(f"line {number}", line)


def _as_document(value: Any) -> Any:
    """Return the value of the only line of a document, or why there is none."""
    if isinstance(value, Skipped):
        return Skipped(_DOCUMENT, f"{value.reason} in {value.place}")
    return value


def _numbered(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank; only the beginning of one that is too long."""
    number = 0
    while line := stream.readline(LARGEST + 1):
        number += 1
        part = line
        while len(part) > LARGEST and not part.endswith(b"\n"):
            part = stream.readline(LARGEST + 1)
        line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if line.strip():
            yield number, line


def _document(lines: list[bytes], stream: BinaryIO) -> Any:
    """Parse a text whose lines are not values by themselves as one document."""
    begun = b"".join(lines)
    return parse_line(_DOCUMENT, begun + stream.read(max(0, LARGEST + 1 - len(begun))))


# Arrays


def _array(stream: BinaryIO) -> Iterator[tuple[str, Any]]:
    """Yield the entries of an array."""
    text = _Text(stream)
    text.skip(_GAP)
    text.at += 1
    number = 0
    while True:
        text.skip(_GAP)
        if text.ended():
            yield "the end", Skipped("the end", "cut off: the array is not closed")
            return
        if text.buffer[text.at] == "]":
            break
        number += 1
        value = text.value(f"entry {number}")
        yield f"entry {number}", value
        if isinstance(value, Skipped) and text.ended():
            return
    text.at += 1
    text.skip(_GAP)
    if not text.ended():
        yield "the end", Skipped("the end", "what follows the array is not read")


class _Text:
    """A stream as text, of which only what has not been read yet is kept."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._final = False
        self.buffer = ""
        self.at = 0
        self._more()
        self.buffer = self.buffer.removeprefix("\ufeff")

    def ended(self) -> bool:
        """Whether nothing is left."""
        return self._final and self.at >= len(self.buffer)

    def _more(self) -> None:
        # As much again as is waiting: what is retried each time costs twice its length at most.
        data = self._stream.read(max(_AT_ONCE, len(self.buffer) - self.at))
        self._final = not data
        self.buffer = self.buffer[self.at :] + self._decoder.decode(data, final=not data)
        self.at = 0

    def skip(self, pattern: re.Pattern[str]) -> None:
        """Go behind what matches."""
        while True:
            match = pattern.match(self.buffer, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.buffer) or self._final:
                return
            self._more()

    def value(self, place: str) -> Any:
        """Read the next value, or return why there is none, and move past it."""
        depth, seen = 0, 0
        while True:
            try:
                value, end = _DECODER.raw_decode(self.buffer, self.at)
            except (ValueError, RecursionError) as error:
                depth, end, closed = self._closed(depth, self.at + seen)
                if closed:
                    self.at = end
                    return Skipped(place, _reason(error))
                seen = end - self.at
            else:
                if end < len(self.buffer) or self._final:
                    self.at = end
                    return value
            if self._final:
                self.at = len(self.buffer)
                return Skipped(place, "cut off or damaged, up to the end of the file")
            if len(self.buffer) - self.at > LARGEST:
                self.at += seen
                self._pass_over(depth)
                return Skipped(place, _TOO_LARGE)
            self._more()

    def _closed(self, depth: int, at: int) -> tuple[int, int, bool]:
        """Go on from a place to where so many open brackets are closed, if that is in sight.

        :returns: how many are open still, the place behind, and whether they are all closed.
        """
        while match := _SIGNS.search(self.buffer, at):
            run, at = match[0], match.end()
            if run == '"':
                at = _behind_string(self.buffer, at)
                if at < 0:
                    return depth, match.start(), False
            elif run[0] in "[{":
                depth += len(run)
            elif depth > len(run):
                depth -= len(run)
            elif depth == 0 and run[0] == "]":  # the end of the array itself
                return 0, match.start(), True
            else:
                return 0, match.start() + max(depth, 1), True
        return depth, len(self.buffer), False

    def _pass_over(self, depth: int) -> None:
        """Go behind a value without keeping it; a string that is too large ends the reading."""
        closed = False
        while not closed and not self._final and len(self.buffer) - self.at <= LARGEST:
            self._more()
            depth, self.at, closed = self._closed(depth, self.at)
        if not closed:
            self._final, self.at = True, len(self.buffer)


def _behind_string(text: str, at: int) -> int:
    """Return the position after a string from inside of it; -1 if its end is not in sight."""
    while match := _IN_STRING.search(text, at):
        if match[0] == '"':
            return match.end()
        at = match.end() + 1  # whatever is escaped
    return -1
