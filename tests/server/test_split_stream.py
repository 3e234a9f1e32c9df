"""A stream is split into JSON values, wherever its chunks end."""

from typing import Any

import pytest
from each import each

from reservoir_cli.server.limits import LINES_AT_A_TIME
from reservoir_cli.server.proxy.split_stream import Reader

STREAM = b"data: [1]\r\n\r\ndata: [2,\r\rdata: 3\ndata: ]\n\ndata:[4]\n\r\ndata: [5]\r\r"


class SearchedBuffer(bytearray):
    """A buffer that counts the bytes that are searched."""

    searched = 0

    def rfind(self, sub: Any, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        stop = len(self) if end is None else end % len(self)
        self.searched += max(stop - start, 0)
        return super().rfind(sub, start, stop)


def read(*chunks: bytes) -> list[Any]:
    values = list[Any]()
    reader = Reader("text/event-stream", "", values.append)
    for chunk in chunks:
        list(reader.steps(chunk))
    list(reader.last_steps())
    return values


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_chunks_may_end_anywhere(size):
    whole = read(STREAM)
    assert whole == [[1], [4], [5]]
    assert read(*(STREAM[at : at + size] for at in range(0, len(STREAM), size))) == whole
    for cut in range(len(STREAM)):
        assert read(STREAM[:cut], STREAM[cut:]) == whole, cut


def test_a_long_line_is_searched_once():
    reader = Reader("text/event-stream", "", lambda _: None)
    reader._buffer = buffer = SearchedBuffer()
    for _ in range(1000):
        list(reader.steps(b"data"))
    assert buffer.searched < 4 * len(buffer)


@each(
    ("stream", "is_done"),
    [
        (b"data: [1]\n\ndata: [DONE]\n\n", True),
        (b"data: [1]\n\ndata:[DONE]", True),
        (b"data: [1]\n\n", False),
        (b'data: "[DONE]"\n\n', False),
        (b": [DONE]\n\n", False),
    ],
)
@each("kind", ["text/event-stream", ""])
def test_the_mark_at_the_end_is_found(kind, stream, is_done):
    reader = Reader(kind, "", lambda _: None)
    list(reader.steps(stream))
    list(reader.last_steps())
    assert reader.is_done == is_done


@pytest.mark.parametrize("stream", [b'{"a": 1}\n{"b": 2}\n', b'data: {"a": 1}\n\ndata: {"b": 2}\n'])
def test_a_stream_without_a_type_is_read(stream):
    values = list[Any]()
    reader = Reader("", "", values.append)
    list(reader.steps(stream))
    list(reader.last_steps())
    assert values == [{"a": 1}, {"b": 2}]


#: Many events without content, in the forms that servers keep a connection alive with.
EMPTY = (
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b":\n\n",
    b"data:\n\n",
    b"event: ping\n\n",
    b"data: {}\n\n",
)


@each("event", EMPTY)
@each("kind", ["text/event-stream", "application/x-ndjson", ""])
def test_a_step_reads_a_bounded_number_of_lines(event, kind):
    count = 20 * LINES_AT_A_TIME
    reader, lines = Reader(kind, "", lambda _: None), list[bytes]()
    read_line = reader._read_line
    reader._read_line = lambda line: (lines.append(line), read_line(line))[1]  # type: ignore
    longest = before = 0
    chunks = [b"data: 1\n\n" + event * count, event]
    for steps in (*map(reader.steps, chunks), reader.last_steps()):
        for _ in steps:
            longest, before = max(longest, len(lines) - before), len(lines)
    assert count <= len(lines)
    assert longest <= LINES_AT_A_TIME + 2
