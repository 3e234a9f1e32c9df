"""Every parser as a function of bytes that raises if the parser breaks its contract."""

import itertools
import json
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime

from reservoir_cli.chat.trim import find_turn_start, trim_history
from reservoir_cli.context.render.request_bodies import _arguments
from reservoir_cli.embedding import split_passages
from reservoir_cli.embedding.split_passages import words
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import Role, ToolCall, clean_text
from reservoir_cli.retrieval.question_dates.parser import find_dates
from reservoir_cli.settings import read_settings as settings_file
from reservoir_cli.settings.paths import config_file
from reservoir_cli.storage.search import fulltext
from reservoir_cli.tokens import ApproximateCounter
from reservoir_cli.transfer.detect_format import find
from reservoir_cli.transfer.formats.registry import importers
from reservoir_cli.transfer.reading import json_stream
from reservoir_cli.transfer.reading.decompressed_file import File, Unreadable
from reservoir_cli.transfer.reading.importer import Record, Skipped
from reservoir_cli.transfer.reading.input_files import decode
from reservoir_cli.util import parse_time_options

_NOW = datetime(2026, 5, 9, 12, tzinfo=UTC)
#: The first local day of 1970 begins on this day in UTC.
_EARLIEST = datetime(1969, 12, 31, tzinfo=UTC)
Parser = Callable[[bytes], None]


def _check(result: Record | Skipped) -> None:
    if isinstance(result, Skipped):
        assert result.reason
        return
    message = result.message
    assert message.role in list(Role)
    assert message.content.strip() or message.tool_calls or message.source_id
    assert message.source
    assert message.source_id
    clean_text(message.content).encode()
    if message.created_at is not None:
        assert _EARLIEST <= message.created_at


def _entries(data: bytes) -> None:
    for entry in json_stream.entries(File.of_bytes("x.json", data)):
        assert isinstance(entry, Skipped) or isinstance(entry[1], dict)


def _file(data: bytes) -> None:
    """Read a file or a zip in its detected format."""
    with ExitStack() as open_files, suppress(ReservoirError):
        for file in find(File.of_bytes("x", data), None, open_files).files:
            for result in file.records():
                _check(result)


def _importer(name: str) -> Parser:
    def read(data: bytes) -> None:
        with suppress(Unreadable):
            for result in importers()[name].read(File.of_bytes("x", data)):
                _check(result)

    return read


def _settings(data: bytes) -> None:
    with suppress(UsageError, UnicodeDecodeError):
        settings_file.contents_of(config_file(), data.decode())


def _text(data: bytes) -> str:
    return clean_text(data.decode("utf-8", "replace"))


def _full_text(data: bytes) -> None:
    text = _text(data)
    for term in fulltext.typed_terms(text):
        assert term[0] == '"'
        assert '"' not in term[1:].rstrip("*")[:-1]
    assert len(fulltext.content_words(text).split()) <= 200
    fulltext.count_terms(text)


def _times(data: bytes) -> None:
    text = _text(data)
    for span in find_dates(text, _NOW):
        assert span.start <= span.end
    with suppress(UsageError):
        assert parse_time_options.parse_time(text, _NOW).tzinfo is UTC
    with suppress(ValueError):
        assert parse_time_options.parse_duration(text) >= 0


def _decoded(data: bytes) -> None:
    with suppress(ReservoirError):
        decode(data, "x")[0].encode("utf-8")


def _tool_arguments(data: bytes) -> None:
    arguments = _arguments(ToolCall("id", "name", _text(data)))
    json.dumps(arguments, allow_nan=False, indent=2).encode()


def _trimmed(data: bytes) -> None:
    try:
        listed = json.loads(data)
    except (ValueError, RecursionError):
        return
    if isinstance(listed, list) and all(isinstance(message, dict) for message in listed):
        start = find_turn_start(listed)
        kept = trim_history(listed, turn_start=start, iteration=2, budget=10)
        assert kept[:1] == listed[:1]
        assert kept[len(kept) - len(listed[start:]) :] == listed[start:]


def _passages(data: bytes) -> None:
    text = _text(data)
    spans = split_passages.cut(text, words(text), 20)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    assert all(second[0] <= first[1] for first, second in itertools.pairwise(spans))
    ApproximateCounter().count(text)


PARSERS: dict[str, Parser] = {
    "json": _entries,
    "file": _file,
    **{name: _importer(name) for name in importers() if name != "llm"},
    "settings": _settings,
    "full-text": _full_text,
    "times": _times,
    "text": _decoded,
    "arguments": _tool_arguments,
    "trim": _trimmed,
    "passages": _passages,
}
