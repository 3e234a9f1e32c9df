"""Import Goose's sessions: a database, or before 1.10 a file of JSON Lines for each session.

Goose moves older files into the database. Ids are therefore derived from the messages' content, so
that a session that was moved is not imported twice.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from reservoir_cli.messages import Message
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.content_blocks import tool_result, tool_use
from reservoir_cli.transfer.reading.decompressed_file import SQLITE, File, Head
from reservoir_cli.transfer.reading.foreign_databases import (
    DatabaseConversation,
    DatabaseImporter,
    ToolDatabase,
)
from reservoir_cli.transfer.reading.foreign_values import obj, parse_json, text
from reservoir_cli.transfer.reading.importer import Place, Record, Skipped, Thread
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.platform_folders import app_dir, xdg_data_dir
from reservoir_cli.transfer.reading.times import moment

_COLUMNS = {
    "sessions": "id name description session_type working_dir model_config_json",
    "messages": "role content_json created_timestamp metadata_json",
}


class Goose(DatabaseImporter):
    """Reads ``sessions.db``, and the ``*.jsonl`` of older versions."""

    name = "goose"
    title = "Goose"
    instance = "goose"
    columns = _COLUMNS
    tables = (frozenset({"sessions", "messages.content_json", "schema_version"}),)

    def detect(self, head: Head) -> bool:
        return head.has("working_dir") and head.has("description", "message_count", "schedule_id")

    def places(self) -> Iterator[Place]:
        database = _folder() / "sessions.db"
        yield Place(database if database.exists() or not _folder().is_dir() else _folder())

    def read(self, file: File) -> Iterator[Record | Skipped]:
        is_database = file.head().startswith(SQLITE)
        return super().read(file) if is_database else _read_file(file)

    def conversations(self, database: ToolDatabase, name: str) -> Iterator[DatabaseConversation]:
        database.refuse_computed("not a database as Goose writes it")
        changing = {"id": "sum", "content_json": "length", "metadata_json": "length"}
        messages = database.count_by_session("messages", changing)
        query = "SELECT rowid FROM sessions ORDER BY created_at, id"
        for (number,) in database.connection.execute(query):
            about = database.one("sessions", "rowid", number)
            version = (about, messages.get(about.get("id")))
            read = partial(_read_session, database, about)
            yield DatabaseConversation(about.get("id"), version, read)


def _folder() -> Path:
    root = Path(os.environ.get("GOOSE_PATH_ROOT", ""))
    if root.is_absolute():
        return root / "data" / "sessions"
    if sys.platform == "win32":
        return app_dir("Block") / "goose" / "data" / "sessions"
    return xdg_data_dir() / "goose" / "sessions"


def _read_session(database: ToolDatabase, about: dict[str, Any]) -> Iterator[Record | Skipped]:
    if about.get("session_type") == "hidden":
        return
    session = _Session(about["id"], about)
    query = "SELECT rowid FROM messages WHERE session_id = ? ORDER BY id"
    for (number,) in database.connection.execute(query, [session.identity]):
        row = database.one("messages", "rowid", number)
        message = {
            "role": row.get("role"),
            "created": row.get("created_timestamp"),
            "content": parse_json(row.get("content_json")),
            "metadata": parse_json(row.get("metadata_json")),
        }
        yield from session.read(f"message {number}", message)


def _read_file(file: File) -> Iterator[Record | Skipped]:
    """Yield the messages of a session file, or of the output of ``goose session export``."""
    session = _Session(file.stem, {})

    def read(place: str, line: dict[str, Any]) -> Iterator[Record | Skipped]:
        nonlocal session
        if "role" in line or "working_dir" not in line:
            yield from session.read(place, line)
            return
        session = _Session(text(line.get("id")) or file.stem, line)
        conversation = line.get("conversation")
        for number, message in enumerate(conversation if isinstance(conversation, list) else (), 1):
            yield from session.read(f"{place}, message {number}", message)

    return read_entries(file, read)


@dataclass
class _Session:
    identity: str
    about: dict[str, Any]

    def __post_init__(self) -> None:
        config = self.about.get("model_config_json", self.about.get("model_config"))
        model = obj(parse_json(config) or config).get("model_name")
        title = text(self.about.get("name")) or self.about.get("description")
        folder = self.about.get("working_dir")
        self.thread = Thread(Goose.name, self.identity, title=title, model=model, folder=folder)

    def read(self, place: str, value: Any) -> Iterator[Record | Skipped]:
        yield from self.thread.convert(place, None, partial(_convert_message, value))


def _convert_message(value: Any) -> list[Message]:
    if not isinstance(value, dict):
        raise ValueError("not a message")
    role, content = value.get("role"), value.get("content")
    if role not in ("user", "assistant"):
        raise ValueError("unknown role")
    if not isinstance(content, list):
        raise ValueError("content is not a list")
    if obj(value.get("metadata")).get("userVisible") is False:
        return []
    blocks = [block for part in content if (block := _block(part)) is not None]
    return content_blocks.messages(role, blocks, moment(value.get("created")))


def _block(part: Any) -> Any:
    """Return a part as an Anthropic content block; ``None`` for Goose's notices and questions."""
    kind = obj(part).get("type")
    if kind in ("toolRequest", "frontendToolRequest"):
        call = obj(obj(part.get("toolCall")).get("value"))
        if not call:  # the model's call was not valid JSON
            return None
        return tool_use(part.get("id"), call.get("name"), call.get("arguments"))
    if kind == "toolResponse":
        return tool_result(part.get("id"), _result(obj(part.get("toolResult"))))
    return part if kind in ("text", "image", "thinking", "reasoning") else None


def _result(result: dict[str, Any]) -> Any:
    """Return the content of a result: the parts for the model, if they are marked."""
    value = result.get("value")
    content = value.get("content") if isinstance(value, dict) else value
    if not isinstance(content, list):
        return text(result.get("error")) or ""
    for_model = [part for part in content if _is_for_model(part)]
    return for_model or content


def _is_for_model(part: Any) -> bool:
    audience = obj(obj(part).get("annotations")).get("audience")
    return not isinstance(audience, list) or "assistant" in audience
