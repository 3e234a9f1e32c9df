"""Helpers for tests of importers: samples, and short functions to read them."""

import json
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from reservoir_cli.messages import Conversation
from reservoir_cli.transfer.detect_format import choose, find
from reservoir_cli.transfer.reading.decompressed_file import File
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped

SAMPLES = Path(__file__).parent / "samples"


def file_of(data: str | bytes, name: str = "file.jsonl") -> File:
    return File.of_bytes(
        name, data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    )


def lines(*values: object) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def read(data: str | bytes, importer: Importer | None = None) -> list[Record | Skipped]:
    """Return the records of a text in its detected format."""
    file = file_of(data)
    return list((importer or choose(file)).read(file))


def entries_by_file(path: Path, form: str | None = None) -> dict[str, list[Record | Skipped]]:
    """Return the records of the files below a path, by their names."""
    with ExitStack() as open_files:
        sources = find(path, form, open_files).files
        return {
            source.file.name.removeprefix(f"{path}").lstrip("/"): list(source.records())
            for source in sources
        }


def records(entries: Iterable[Record | Skipped]) -> list[Record]:
    return [entry for entry in entries if isinstance(entry, Record)]


def skipped(entries: Iterable[Record | Skipped]) -> list[tuple[str, str]]:
    return [(entry.place, entry.reason) for entry in entries if isinstance(entry, Skipped)]


def row_of(record: Record) -> tuple[Any, ...]:
    """Return a message as (role, text or calls, time of day, conversation)."""
    message = record.message
    text = message.content or " ".join(
        f"{call.name}({call.arguments})" for call in message.tool_calls
    )
    clock = f"{message.created_at:%H:%M:%S}" if message.created_at else None
    return (message.role, text, clock, message.conversation_id)


def roles_and_texts(entries: Iterable[Record | Skipped]) -> list[tuple[str, str]]:
    """Return roles and texts."""
    return [(record.message.role, record.message.content) for record in records(entries)]


def last_conversation(entries: Iterable[Record | Skipped]) -> Conversation:
    """Return the conversation of the last message."""
    conversation = records(entries)[-1].conversation
    assert conversation is not None
    return conversation
