"""Read JSON documents and JSON Lines as a stream of objects with their positions.

One entry is in memory at a time; an invalid, too deep or too large one is skipped.
"""

import codecs
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO

from reservoir_cli.transfer.reading.decompressed_file import File, Unreadable
from reservoir_cli.transfer.reading.foreign_values import obj
from reservoir_cli.transfer.reading.importer import Record, Skipped
from reservoir_cli.util.read_files import LARGEST, open_regular

Entry = tuple[str, dict[str, Any]]

_NOT_OBJECT = "not a JSON object"
_DOCUMENT = "the document"
_TOO_LARGE = f"larger than {LARGEST >> 20} MB"
#: A line or value that does not end within this many bytes ends the reading of its file, so that
#: one without an end delays nothing else.
LONGEST_LINE = 4 * LARGEST
#: At most this many lines are searched for an object, if the first ones are damaged.
_MOST_DAMAGED = 100
_AT_ONCE, _SEARCHED_AT_ONCE = 1 << 20, 1 << 16
_LARGEST_SMALL = 4 << 20
_GAP = re.compile(r"[\s,]*")
#: The characters that determine where a value ends: brackets, and the quotes of strings.
_SIGNS = re.compile(r'"|[\[{]+|[\]}]+')
_IN_STRING = re.compile(r'["\\]')
_DECODER = json.JSONDecoder()


def entries(file: File) -> Generator[Entry | Skipped, None, None]:
    """Yield the objects of a JSON array, document or lines; other values as skipped."""
    with file.open() as stream:
        is_array = _first_character(stream) == b"["
    with file.open() as stream:
        values = _read_array(stream) if is_array else _read_lines(file, stream)
        for place, value in values:
            if isinstance(value, Skipped):
                yield value
            elif isinstance(value, dict):
                yield place, value
            else:
                yield Skipped(place, _NOT_OBJECT)


def syntax_error(file: File) -> Skipped | None:
    """Return where and why the first entry of a file is not JSON; ``None`` if it is."""
    with closing(entries(file)) as stream:
        first = next(stream, None)
    return first if isinstance(first, Skipped) and first.reason != _NOT_OBJECT else None


def read_entries(
    file: File, read: Callable[[str, dict[str, Any]], Iterable[Record | Skipped]]
) -> Iterator[Record | Skipped]:
    """Yield the records that ``read`` makes of each place and entry, and what is skipped.

    :param read: raises ValueError with the reason if the rest of an entry cannot be read.
    """
    for entry in entries(file):
        if isinstance(entry, Skipped):
            yield entry
            continue
        try:
            yield from read(*entry)
        except ValueError as error:
            yield Skipped.invalid(entry[0], error)


def readable_objects(file: File) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file that can be read."""
    with suppress(Unreadable, OSError):
        for entry in entries(file):
            if not isinstance(entry, Skipped):
                yield entry[1]


def read_small_object(path: Path | None) -> dict[str, Any]:
    """Return the JSON object in a small file; an empty one if it is a link or unreadable."""
    with suppress(ValueError, RecursionError):
        return obj(json.loads(read_small_file(path)))
    return {}


def read_small_file(path: Path | None) -> bytes:
    """Return the content of a small file; nothing if it is a link or unreadable."""
    if path is None or path.is_symlink():
        return b""
    with suppress(OSError), open_regular(path) as stream:
        return stream.read(_LARGEST_SMALL)
    return b""


def _first_character(stream: BinaryIO) -> bytes:
    head = stream.read(_AT_ONCE).removeprefix(codecs.BOM_UTF8).lstrip()
    return head[:1]


def parse_line(place: str, line: bytes) -> Any:
    """Parse a line of JSON; return a skipped record with the reason if it is not valid.

    Invalid bytes become unpaired surrogates, which are counted when the message is stored. NULs
    before the line, as a crash leaves them, are ignored.
    """
    if len(line) > LARGEST:
        return Skipped(place, _TOO_LARGE)
    try:
        return json.loads(line.lstrip(b"\0").decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        return Skipped(place, _explain_error(error, in_document=place == _DOCUMENT))


def _explain_error(error: Exception, *, in_document: bool = False) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON in line {error.lineno}" if in_document else "not valid JSON"
    return "a number with too many digits"


def _read_lines(file: File, stream: BinaryIO) -> Iterator[tuple[str, Any]]:
    """Yield the entries of JSON Lines; a document on one or several lines is one entry."""
    lines = _number_lines(stream)
    first = list(islice(lines, 2))
    parsed = [(f"line {number}", parse_line(f"line {number}", line)) for number, line in first]
    if len(parsed) == 1:
        yield _DOCUMENT, _document_value(parsed[0][1])
        return
    if parsed and isinstance(parsed[0][1], Skipped):
        # A line may be damaged, or the first of a document. One of a document may be a row, too.
        document = _read_document(file)
        if not isinstance(document, Skipped) or not _has_objects(file):
            yield _DOCUMENT, document
            return
    yield from parsed
    for number, line in lines:
        yield f"line {number}", parse_line(f"line {number}", line)


def _read_document(file: File) -> Any:
    with file.open() as stream:
        data = stream.read(LARGEST + 1).removeprefix(codecs.BOM_UTF8)
    return parse_line(_DOCUMENT, data)


def _has_objects(file: File) -> bool:
    with file.open() as stream:
        for line, _ in islice(read_lines(stream), _MOST_DAMAGED):
            if line.lstrip(b"\0").startswith(b"{") and isinstance(parse_line("", line), dict):
                return True
    return False


def _document_value(value: Any) -> Any:
    if isinstance(value, Skipped):
        return Skipped(_DOCUMENT, f"{value.reason} in {value.place}")
    return value


def _number_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    for number, (line, _) in enumerate(read_lines(stream), 1):
        line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if line.strip():
            yield number, line


def read_lines(stream: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield lines and lengths, truncated to ``LARGEST``; Unreadable beyond ``LONGEST_LINE``."""
    while line := stream.readline(LARGEST + 1):
        length = len(line)
        rest = line
        while len(rest) > LARGEST and not rest.endswith(b"\n"):
            rest = stream.readline(LARGEST + 1)
            length += len(rest)
            if length > LONGEST_LINE:
                raise Unreadable(f"a line of more than {LONGEST_LINE >> 20} MB")
        yield line, length


def contains(file: File, words: bytes) -> bool:
    """Return whether a file contains some bytes before a line that is too long to be read."""
    tail, length = b"", 0
    with file.open() as stream:
        while length <= LONGEST_LINE and (data := stream.read(_SEARCHED_AT_ONCE)):
            if words in tail + data:
                return True
            tail = data[-len(words) :]
            end = data.rfind(b"\n")
            length = len(data) - end if end >= 0 else length + len(data)
    return False


def _read_array(stream: BinaryIO) -> Iterator[tuple[str, Any]]:
    text = _TextBuffer(stream)
    text.skip(_GAP)
    text.position += 1
    number = 0
    while True:
        text.skip(_GAP)
        if text.is_at_end():
            yield "the end", Skipped("the end", "cut off: the array is not closed")
            return
        if text.buffer[text.position] == "]":
            break
        number += 1
        value = text.read_value(f"entry {number}")
        yield f"entry {number}", value
        if isinstance(value, Skipped) and text.is_at_end():
            return
    text.position += 1
    text.skip(_GAP)
    if not text.is_at_end():
        yield "the end", Skipped("the end", "data after the array is ignored")


class _TextBuffer:
    """A stream of text that keeps only its unread part in memory."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._final = False
        self.buffer = ""
        self.position = 0
        self._read_more()
        self.buffer = self.buffer.removeprefix("\ufeff")

    def is_at_end(self) -> bool:
        return self._final and self.position >= len(self.buffer)

    def _read_more(self) -> None:
        # Double the unread part each time: parsing it again costs twice its length at most.
        data = self._stream.read(max(_AT_ONCE, len(self.buffer) - self.position))
        self._final = not data
        self.buffer = self.buffer[self.position :] + self._decoder.decode(data, final=not data)
        self.position = 0

    def skip(self, pattern: re.Pattern[str]) -> None:
        while True:
            match = pattern.match(self.buffer, self.position)
            self.position = match.end() if match else self.position
            if self.position < len(self.buffer) or self._final:
                return
            self._read_more()

    def read_value(self, place: str) -> Any:
        depth, seen = 0, 0
        while True:
            try:
                value, end = _DECODER.raw_decode(self.buffer, self.position)
            except (ValueError, RecursionError) as error:
                depth, end, closed = self._find_end(depth, self.position + seen)
                if closed:
                    self.position = end
                    return Skipped(place, _explain_error(error))
                seen = end - self.position
            else:
                if end < len(self.buffer) or self._final:
                    self.position = end
                    return value
            if self._final:
                self.position = len(self.buffer)
                return Skipped(place, "cut off or damaged, up to the end of the file")
            if len(self.buffer) - self.position > LARGEST:
                self.position += seen
                self._skip_value(depth)
                return Skipped(place, _TOO_LARGE)
            self._read_more()

    def _find_end(self, depth: int, position: int) -> tuple[int, int, bool]:
        """Find the end of a value: return the open brackets, the position, and if it ended."""
        while match := _SIGNS.search(self.buffer, position):
            run, position = match[0], match.end()
            if run == '"':
                position = _end_of_string(self.buffer, position)
                if position < 0:
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

    def _skip_value(self, depth: int) -> None:
        """Move past a value without keeping it; one without an end ends the reading."""
        skipped, in_string, closed = len(self.buffer), False, False
        while not self._final and skipped <= LONGEST_LINE:
            depth, in_string, closed = self._skip_buffer(depth, in_string)
            if closed:
                return
            self._read_more()
            skipped += len(self.buffer) - self.position
        self._final, self.position = True, len(self.buffer)

    def _skip_buffer(self, depth: int, in_string: bool) -> tuple[int, bool, bool]:
        """Skip the buffer or value; return the open brackets, if in a string, and if it ended."""
        if not in_string:
            depth, self.position, closed = self._find_end(depth, self.position)
            if closed or self.position >= len(self.buffer):
                return depth, False, closed
            self.position += 1  # the quote of a string that does not end in the buffer
        end = _end_of_string(self.buffer, self.position)
        if end >= 0:
            self.position = end
            return self._skip_buffer(depth, False)
        # Keep a backslash with the character that it escapes.
        backslashes = len(self.buffer) - len(self.buffer.rstrip("\\"))
        self.position = max(self.position, len(self.buffer) - backslashes % 2)
        return depth, True, False


def _end_of_string(text: str, position: int) -> int:
    while match := _IN_STRING.search(text, position):
        if match[0] == '"':
            return match.end()
        position = match.end() + 1  # skip the escaped character
    return -1
