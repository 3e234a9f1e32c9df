"""Split a stream into JSON values: server-sent events, JSON lines, or a single document."""

import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any

#: The largest answer in bytes that is read; a larger one is still relayed, but not stored.
MAX_BYTES = 32 << 20
#: Bytes of a stream without a type that are searched for an event.
_SNIFFED = 1_000


class Unreadable(Exception):
    """An answer that cannot be parsed."""


class Reader:
    """Parse an answer chunk by chunk.

    :param on_value: called with each JSON value.
    :ivar is_done: whether the mark ``[DONE]`` was read, which ends a whole answer.
    """

    def __init__(self, content_type: str, encoding: str, on_value: Callable[[Any], None]) -> None:
        self._on_value, self._buffer, self._size = on_value, bytearray(), 0
        self._decode = _decoder(encoding)
        kind = content_type.partition(";")[0].strip().lower()
        self._events = kind == "text/event-stream"
        self._lines = self._events or "ndjson" in kind or "jsonl" in kind
        self._data: list[bytes] = []
        self.is_done = False

    def feed(self, chunk: bytes) -> None:
        """Parse the next chunk.

        :raises Unreadable: the answer is too large or damaged.
        """
        try:
            chunk = self._decode(chunk)
        except zlib.error:
            raise Unreadable from None
        self._size += len(chunk)
        if self._size > MAX_BYTES:
            raise Unreadable
        searched = max(len(self._buffer) - 1, 0)  # the last byte may be a CR that an LF follows
        self._buffer += chunk
        if self._lines:
            for line in self._take_lines(searched):
                self._read_line(line)

    def end(self) -> None:
        """Parse the rest of the buffer."""
        rest, self._buffer = bytes(self._buffer), bytearray()
        if not self._lines:
            if not self._read_value(rest):
                self._read_untyped(rest)
            return
        if rest:
            self._read_line(rest)
        if self._events:
            self._read_line(b"")

    def _read_untyped(self, stream: bytes) -> None:
        """Parse a stream whose type the provider does not name."""
        self._events = b"data:" in stream[:_SNIFFED]
        for line in (*stream.splitlines(), b""):
            self._read_line(line)

    def _take_lines(self, start: int) -> Iterator[bytes]:
        """Remove the complete lines from the buffer; a line ends in CR, LF or both.

        :param start: no line ends before this position in the buffer.
        """
        end = max(self._buffer.rfind(b"\n", start), self._buffer.rfind(b"\r", start, -1))
        if end < 0:
            return
        lines = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        yield from lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]

    def _read_line(self, line: bytes) -> None:
        if not self._events:
            self._read_value(line)
        elif not line:
            self._read_value(b"\n".join(self._data))
            self._data.clear()
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))

    def _read_value(self, data: bytes) -> bool:
        """Parse a JSON value; return whether it is one."""
        if data.strip() == b"[DONE]":
            self.is_done = True
            return False
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return False
        self._on_value(value)
        return True


def _decoder(encoding: str) -> Callable[[bytes], bytes]:
    """Return a decoder for an encoding, in case a model ignores that we asked for none."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return bytes
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise Unreadable
    member = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def inflate(chunk: bytes) -> bytes:
        """Return the text of the next chunk, which may end a member of gzip and begin another."""
        nonlocal member
        text = bytearray()
        while chunk and len(text) <= MAX_BYTES:
            if member.eof:
                member = zlib.decompressobj(zlib.MAX_WBITS | 32)
            text += member.decompress(chunk, MAX_BYTES)
            chunk = member.unused_data
        return bytes(text)

    return inflate
