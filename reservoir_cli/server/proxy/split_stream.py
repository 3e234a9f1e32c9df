"""Take a stream apart into JSON values: server-sent events, lines of JSON, or one document."""

import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any

#: Bytes of an answer that are read along; a larger one passes all the same, but is not stored.
LARGEST = 32 << 20


class Unreadable(Exception):
    """An answer that cannot be read along."""


class Reader:
    """Reads an answer along, piece by piece.

    :param take: called with each JSON value.
    """

    def __init__(self, content_type: str, encoding: str, take: Callable[[Any], None]) -> None:
        self._take, self._buffer, self._size = take, bytearray(), 0
        self._inflate = _inflater(encoding)
        kind = content_type.partition(";")[0].strip().lower()
        self._events = kind == "text/event-stream"
        self._lines = self._events or "ndjson" in kind or "jsonl" in kind
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> None:
        """Read a piece as it came.

        :raises Unreadable: it is too much, or damaged.
        """
        try:
            piece = self._inflate(piece)
        except zlib.error:
            raise Unreadable from None
        self._size += len(piece)
        if self._size > LARGEST:
            raise Unreadable
        self._buffer += piece
        if self._lines:
            for line in self._whole_lines():
                self._line(line)

    def end(self) -> None:
        """Read what is left at the end."""
        rest, self._buffer = bytes(self._buffer), bytearray()
        if not self._lines:
            self._value(rest)
            return
        if rest:
            self._line(rest)
        if self._events:
            self._line(b"")

    def _whole_lines(self) -> Iterator[bytes]:
        """Take the lines that have ended off the buffer; one may end in CR, LF or both."""
        end = max(self._buffer.rfind(b"\n"), self._buffer.rfind(b"\r", 0, -1))
        if end < 0:
            return
        whole = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        yield from whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]

    def _line(self, line: bytes) -> None:
        if not self._events:
            self._value(line)
        elif not line:
            self._value(b"\n".join(self._data))
            self._data.clear()
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))

    def _value(self, data: bytes) -> None:
        if not data.strip() or data.strip() == b"[DONE]":
            return
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return
        self._take(value)


def _inflater(encoding: str) -> Callable[[bytes], bytes]:
    """Return what decodes an encoding that was sent although none was asked for."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return bytes
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise Unreadable
    machine = zlib.decompressobj(zlib.MAX_WBITS | 32)
    return lambda piece: machine.decompress(piece, LARGEST)
