"""Helpers for tests of importers: samples, and short functions to read them."""

import json
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from reservoir_cli.messages import Conversation
from reservoir_cli.transfer.importers import File, Importer, Record, Skipped, choose, find

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


def found_in(path: Path, form: str | None = None) -> dict[str, list[Record | Skipped]]:
    """Return the records of the files below a path, by their names."""
    with ExitStack() as open_files:
        found, _ = find(path, form, open_files)
        return {
            each.file.name.removeprefix(f"{path}").lstrip("/"): list(each.records())
            for each in found
        }


def records(found: Iterable[Record | Skipped]) -> list[Record]:
    return [each for each in found if isinstance(each, Record)]


def skipped(found: Iterable[Record | Skipped]) -> list[tuple[str, str]]:
    return [(each.place, each.reason) for each in found if isinstance(each, Skipped)]


def told(record: Record) -> tuple[Any, ...]:
    """Return a message as (role, text or calls, time of day, conversation)."""
    message = record.message
    said = message.content or " ".join(f"{c.name}({c.arguments})" for c in message.tool_calls)
    clock = f"{message.created_at:%H:%M:%S}" if message.created_at else None
    return (message.role, said, clock, message.conversation_id)


def said(found: Iterable[Record | Skipped]) -> list[tuple[str, str]]:
    """Return roles and texts."""
    return [(each.message.role, each.message.content) for each in records(found)]


def about(found: Iterable[Record | Skipped]) -> Conversation:
    """Return the conversation of the last message."""
    conversation = records(found)[-1].conversation
    assert conversation is not None
    return conversation
