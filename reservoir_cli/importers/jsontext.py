"""JSON documents and JSON Lines as one stream of objects, each with its place.

However long a file is, no more than one entry of it is in memory. An entry that does not parse,
is nested too deeply, or is too large is skipped, and reading goes on behind it.
"""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from reservoir_cli.importers import File, Skipped

Entry = tuple[str, dict[str, Any]]

#: The longest entry, in bytes: a conversation, or a line.
LARGEST = 64 << 20
_TOO_LARGE = f"larger than {LARGEST >> 20} MB"
_AT_ONCE = 1 << 20
_GAP = re.compile(r"[\s,]*")
#: Everything up to the next bracket that stands outside of a string, without and with it.
_PLAIN = re.compile(r'[^"\[\]{}]*+(?:"(?:[^"\\]++|\\.)*+"[^"\[\]{}]*+)*+', re.DOTALL)
_BRACKET = re.compile(_PLAIN.pattern + r"([\[\]{}])", re.DOTALL)
_DECODER = json.JSONDecoder()


def entries(file: File) -> Iterator[Entry | Skipped]:
    """The objects of a JSON array, a single object, or JSON Lines.

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
                yield Skipped(place, "not a JSON object")


def _first_character(stream: BinaryIO) -> bytes:
    head = stream.read(_AT_ONCE).removeprefix(codecs.BOM_UTF8).lstrip()
    return head[:1]


def _parsed(place: str, line: bytes) -> Any:
    """A value, or why there is none.

    Bytes that are no UTF-8 become halves of surrogate pairs, which are replaced when they are
    stored, and counted.
    """
    if len(line) > LARGEST:
        return Skipped(place, _TOO_LARGE)
    try:
        return json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        return Skipped(place, _reason(error))


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return "not valid JSON"
    return "a number of too many digits"


# Lines, and single documents


def _lines(stream: BinaryIO) -> Iterator[tuple[str, Any]]:
    """JSON Lines; a document that is one line, or is laid out on several, is one entry."""
    lines = _numbered(stream)
    number, line = next(lines, (0, b""))
    if not number:
        return
    first = _parsed(f"line {number}", line)
    following = next(lines, None)
    if following is None:
        yield "the document", _renamed(first, "the document")
        return
    second = _parsed(f"line {following[0]}", following[1])
    if isinstance(first, Skipped) and isinstance(second, Skipped):
        yield "the document", _document([line, following[1]], stream)
        return
    yield f"line {number}", first
    yield f"line {following[0]}", second
    for number, line in lines:
        yield f"line {number}", _parsed(f"line {number}", line)


def _renamed(value: Any, place: str) -> Any:
    return Skipped(place, value.reason) if isinstance(value, Skipped) else value


def _numbered(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that hold anything; of one that is too long only the beginning."""
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
    """What begins with lines that are nothing by themselves: one document, or nothing."""
    begun = b"".join(lines)
    return _parsed("the document", begun + stream.read(max(0, LARGEST + 1 - len(begun))))


# Arrays


def _array(stream: BinaryIO) -> Iterator[tuple[str, Any]]:
    """The entries of an array, one after the other."""
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
        # As much again as is waiting: what is tried anew each time costs twice its length at most.
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
        """The next value, or why there is none; afterwards it stands behind it."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self.buffer, self.at)
            except (ValueError, RecursionError) as error:
                closed = self._end_of_value()
                if closed is not None:
                    self.at = closed
                    return Skipped(place, _reason(error))
            else:
                if end < len(self.buffer) or self._final:
                    self.at = end
                    return value
            if self._final:
                self.at = len(self.buffer)
                return Skipped(place, "cut off or damaged, up to the end of the file")
            if len(self.buffer) - self.at > LARGEST:
                self._pass_over()
                return Skipped(place, _TOO_LARGE)
            self._more()

    def _end_of_value(self) -> int | None:
        """Where the brackets of the next value are closed, if that is in sight."""
        depth, at = self._closed(0, self.at)
        return at if depth == 0 else None

    def _closed(self, depth: int, at: int) -> tuple[int, int]:
        """Go on to where so many open brackets are closed; how many are left, and where.

        :param depth: 0 where the first bracket is still to come; then at least 1 is left.
        """
        while match := _BRACKET.match(self.buffer, at):
            depth += 1 if match[1] in "[{" else -1
            at = match.end()
            if depth < 0 and match[1] == "]":  # the end of the array itself
                return 0, match.start(1)
            if depth <= 0:
                return 0, at
        plain = _PLAIN.match(self.buffer, at)
        return max(depth, 1), plain.end() if plain else at

    def _pass_over(self) -> None:
        """Go behind a value without keeping it; a string that is too large ends the reading."""
        depth, self.at = self._closed(0, self.at)
        while depth > 0 and not self._final and len(self.buffer) - self.at <= LARGEST:
            self._more()
            depth, self.at = self._closed(depth, self.at)
        if depth > 0:
            self._final, self.at = True, len(self.buffer)
