"""Split a stream into JSON values: server-sent events, JSON lines, or a single document."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from reservoir_cli.server import limits
from reservoir_cli.server.proxy.compression import Decoder

_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\n|\r)")  # a line ends in CR, LF or both


class Reader:
    """Parse an answer chunk by chunk; raise Undecodable if its encoding is not read.

    :ivar is_done: whether the mark ``[DONE]`` was read, which ends a whole answer.
    """

    def __init__(self, content_type: str, encoding: str, on_value: Callable[[Any], None]) -> None:
        self._on_value, self._buffer = on_value, bytearray()
        self._decoder = Decoder(encoding, limits.MAX_ANSWER)
        kind = content_type.partition(";")[0].strip().lower()
        self._events = kind == "text/event-stream"
        self._lines = self._events or "ndjson" in kind or "jsonl" in kind
        self._data: list[bytes] = []
        self.is_done = False

    def steps(self, chunk: bytes) -> Iterator[None]:
        """Parse the next chunk in steps of some lines; raise Undecodable if it is damaged."""
        chunk = self._decoder.decode(chunk)
        searched = max(len(self._buffer) - 1, 0)  # the last byte may be a CR that an LF follows
        self._buffer += chunk
        if self._lines:
            yield from self._read_lines(self._take_lines(searched))

    def last_steps(self) -> Iterator[None]:
        """Parse the rest of the buffer in such steps."""
        rest, self._buffer = bytes(self._buffer), bytearray()
        if not self._lines:
            if self._read_value(rest):
                return
            self._events = b"data:" in rest[: limits.SNIFFED]  # a stream whose type is not named
        yield from self._read_lines(rest + b"\n\n")

    def _take_lines(self, start: int) -> bytes:
        end = max(self._buffer.rfind(b"\n", start), self._buffer.rfind(b"\r", start, -1))
        lines = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        return lines

    def _read_lines(self, lines: bytes) -> Iterator[None]:
        for number, line in enumerate(_LINE.finditer(lines), 1):
            self._read_line(line[1])
            if number % limits.LINES_AT_A_TIME == 0:
                yield

    def _read_line(self, line: bytes) -> None:
        if not self._events:
            self._read_value(line)
        elif not line and self._data:
            self._read_value(b"\n".join(self._data))
            self._data.clear()
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))

    def _read_value(self, data: bytes) -> bool:
        if not data or data.isspace():
            return False
        if data.strip() == b"[DONE]":
            self.is_done = True
            return False
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return False
        self._on_value(value)
        return True
