"""Import sessions of Factory's Droid: a header and messages with Anthropic's blocks, one a line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reservoir_cli.transfer.formats.claude_code_notices import change_texts, remove_plumbing
from reservoir_cli.transfer.reading.decompressed_file import Head
from reservoir_cli.transfer.reading.foreign_values import obj, require_object, text
from reservoir_cli.transfer.reading.importer import Place
from reservoir_cli.transfer.reading.transcripts import Transcript, TranscriptImporter, Turn


class _Session(Transcript):
    source = "droid"

    def turns(self, value: dict[str, Any]) -> Iterator[Turn]:
        if value.get("type") == "session_start":
            title = text(value.get("sessionTitle")) or value.get("title")
            self.describe(identity=value.get("id"), title=title, folder=value.get("cwd"))
        elif value.get("type") == "message":
            message = require_object(value.get("message"))
            role, content = str(message.get("role")), message.get("content")
            if role == "user":
                content = change_texts(content, remove_plumbing)
            if role == "user" and isinstance(content, list):
                content = [part for part in content if obj(part).get("text") != ""]
            model = text(message.get("model")) or text(value.get("model"))
            yield Turn(role, content, text(value.get("id")), value.get("timestamp"), model)


class Droid(TranscriptImporter):
    """Reads the files below ``~/.factory/sessions``."""

    name = "droid"
    title = "Droid"
    instance = "droid"
    transcript = _Session

    def detect(self, head: Head) -> bool:
        return head.has_kind("session_start") and head.has("id", depth=1)

    def places(self) -> Iterator[Place]:
        yield Place(Path.home() / ".factory" / "sessions")
