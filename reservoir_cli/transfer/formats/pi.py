"""Import sessions of Pi, and of OpenClaw, which is built on it: a tree of entries, one a line."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reservoir_cli.settings.paths import expand_user
from reservoir_cli.transfer.reading.content_blocks import tool_result, tool_use
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import require_object, text
from reservoir_cli.transfer.reading.importer import Place
from reservoir_cli.transfer.reading.json_stream import readable_objects
from reservoir_cli.transfer.reading.message_trees import LineTree
from reservoir_cli.transfer.reading.platform_folders import tool_dir
from reservoir_cli.transfer.reading.transcripts import Transcript, TranscriptImporter, Turn


class _Session(Transcript):
    source = "pi"

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self._branch = self._survey(file)

    def _survey(self, file: File) -> set[str] | None:
        """Read the title, and return the ids of the current branch; ``None`` without ids."""
        tree = LineTree()
        for entry in readable_objects(file):
            kind, identity = entry.get("type"), text(entry.get("id"))
            self.describe(title=entry.get("name") if kind == "session_info" else None)
            if identity and kind != "session":
                parent, leaf = text(entry.get("parentId")), text(entry.get("leafId"))
                tree.add(identity, parent, has_message=kind == "message", leaf=leaf)
        return tree.branch() if tree.has_links else None

    def turns(self, value: dict[str, Any]) -> Iterator[Turn]:
        kind, identity = value.get("type"), text(value.get("id"))
        if kind == "session":
            self.describe(identity=identity, folder=value.get("cwd"))
        elif kind == "model_change":
            self.describe(model=value.get("modelId"))
        elif kind == "message":
            message = require_object(value.get("message"))
            if self._branch is None or identity in self._branch:
                source_id = identity and f"{self.thread.conversation.id}:{identity}"
                yield from _turns(message, source_id, value.get("timestamp"))


def _turns(message: dict[str, Any], source_id: str | None, time: Any) -> Iterator[Turn]:
    role, time = message.get("role"), time or message.get("timestamp")
    model = text(message.get("model"))
    if role == "toolResult":
        call_id = text(message.get("toolCallId"))
        yield Turn("tool", message.get("content"), source_id, time, call_id=call_id)
    elif role == "bashExecution":
        call = tool_use(source_id, "bash", {"command": message.get("command")})
        output = tool_result(source_id, text(message.get("output")) or "")
        yield Turn("assistant", [call, output], source_id, time)
    elif role in ("user", "assistant"):
        yield Turn(str(role), message.get("content"), source_id, time, model)
    elif not isinstance(role, str):
        raise ValueError("unknown role")


class Pi(TranscriptImporter):
    """Reads the files below ``~/.pi/agent/sessions``, and those of OpenClaw's agents."""

    name = "pi"
    title = "Pi"
    instance = "pi"
    transcript = _Session

    def detect(self, head: Head) -> bool:
        is_header = head.has_kind("session") and head.has_all("id", "cwd", depth=1)
        is_header = is_header and head.has("version", "timestamp", depth=1)
        is_entry = head.has_kind("message") and head.has("role", "toolCallId")
        is_entry = is_entry and head.has("message") and head.has("parentId", depth=1)
        return (is_header or is_entry) and not head.has("convId")

    def places(self) -> Iterator[Place]:
        yield Place(tool_dir("PI_CODING_AGENT_DIR", ".pi/agent") / "sessions")
        state = os.environ.get("OPENCLAW_STATE_DIR")
        folders = [expand_user(state)] if state else []
        for folder in folders or [Path.home() / name for name in (".openclaw", ".clawdbot")]:
            yield Place(folder / "agents", inside=("sessions",), title="OpenClaw")
