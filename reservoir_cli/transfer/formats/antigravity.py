"""Import conversations of Antigravity from the transcripts that it writes beside its own files.

Its own files are encrypted. The steps of a transcript are the user's messages, the model's replies
with their tool calls, and what the tools returned.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reservoir_cli.transfer.reading.content_blocks import remove_between, texts_between, tool_use
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import objects, text
from reservoir_cli.transfer.reading.importer import Place, Record, Skipped
from reservoir_cli.transfer.reading.transcripts import Transcript, TranscriptImporter, Turn

_REQUEST = ("<USER_REQUEST>", "</USER_REQUEST>")
_ADDED = [(f"<{tag}>", f"</{tag}>") for tag in ("ADDITIONAL_METADATA", "USER_SETTINGS_CHANGE")]
#: Types of steps that the program writes itself.
_NOTICES = ("ERROR_MESSAGE", "SYSTEM_MESSAGE", "CHECKPOINT", "EPHEMERAL_MESSAGE", "HISTORY")
_FULL, _SHORT = "transcript_full.jsonl", "transcript.jsonl"


class _Steps(Transcript):
    source = "antigravity"

    def __init__(self, file: File) -> None:
        super().__init__(file)
        folders = file.place.parts
        if "brain" in folders[:-2]:
            self.describe(identity=folders[folders.index("brain") + 1])
        self._open: list[str] = []

    def turns(self, value: dict[str, Any]) -> Iterator[Turn]:
        kind, source, number = value.get("type"), value.get("source"), value.get("step_index")
        if not isinstance(kind, str):
            raise ValueError("no type")
        identity = f"{self.thread.conversation.id}:{number}" if isinstance(number, int) else None
        time, content = value.get("created_at"), text(value.get("content")) or ""
        if kind == "USER_INPUT":
            yield Turn("user", _typed(content), identity, time)
        elif kind in ("PLANNER_RESPONSE", "GENERATE_RESPONSE"):
            yield Turn("assistant", self._reply(value, content, identity), identity, time)
        elif content and source != "SYSTEM" and kind not in _NOTICES:
            call_id = self._open.pop(0) if self._open else None
            yield Turn("tool", content, identity, time, call_id=call_id)

    def _reply(self, value: dict[str, Any], content: str, identity: str | None) -> list[Any]:
        """Return the blocks of a reply, whose calls have no ids."""
        calls = objects(value.get("tool_calls"))
        ids = [f"{identity or 'call'}/{number}" for number in range(1, len(calls) + 1)]
        self._open = list(ids)
        blocks = [
            tool_use(call_id, call.get("name"), call.get("args", call.get("arguments")))
            for call_id, call in zip(ids, calls, strict=True)
        ]
        thinking = {"type": "thinking", "thinking": value.get("thinking")}
        return [content, *blocks, thinking]


class Antigravity(TranscriptImporter):
    """Reads ``transcript.jsonl`` below ``~/.gemini/antigravity/brain``."""

    name = "antigravity"
    title = "Antigravity"
    instance = "antigravity"
    endings = (_FULL,)
    transcript = _Steps

    def detect(self, head: Head) -> bool:
        return head.has_all("step_index", "source", "type", depth=1)

    def is_repeated(self, file: File) -> bool:
        path = file.path
        return bool(path and path.name == _SHORT and path.with_name(_FULL).exists())

    def read(self, file: File) -> Iterator[Record | Skipped]:
        return iter(()) if self.is_repeated(file) else super().read(file)

    def places(self) -> Iterator[Place]:
        for name in ("antigravity", "antigravity-cli", "antigravity-ide"):
            folder = Path.home() / ".gemini" / name / "brain"
            yield Place(folder, (_SHORT, _FULL), ("logs",))


def _typed(content: str) -> str:
    for request in texts_between(content, *_REQUEST):
        return request
    for marks in _ADDED:
        content = remove_between(content, *marks)
    return content.strip()
