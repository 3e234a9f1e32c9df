"""Import sessions of Continue: documents with a history of messages."""

from collections.abc import Iterator
from typing import Any

from reservoir_cli.transfer.reading.content_blocks import call_block, tool_result
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import obj, objects, require_list, text, uri_path
from reservoir_cli.transfer.reading.importer import Place
from reservoir_cli.transfer.reading.platform_folders import tool_dir
from reservoir_cli.transfer.reading.transcripts import Transcript, TranscriptImporter, Turn

_LIST = "sessions.json"  #: The list of all sessions beside them.


class _Session(Transcript):
    """A session while it is read. Messages have no times but that of the file."""

    source = "continue"

    def turns(self, value: dict[str, Any]) -> Iterator[Turn]:
        history = require_list(value.get("history"), "no history of messages")
        self.describe(
            identity=value.get("sessionId"),
            title=value.get("title"),
            model=value.get("chatModelTitle"),
            folder=uri_path(value.get("workspaceDirectory")),
        )
        time = self.file.modified.isoformat() if self.file.modified else None
        for entry in map(obj, history):
            message = obj(entry.get("message"))
            role = str(message.get("role"))
            thinking = text(obj(entry.get("reasoning")).get("text"))
            blocks: list[Any] = [{"type": "thinking", "thinking": thinking}]
            if role == "thinking":
                role = "assistant"
                blocks = [{"type": "thinking", "thinking": message.get("content")}]
            elif isinstance(message.get("content"), list):
                blocks = [*message["content"], *blocks, *_calls(entry)]
            else:
                blocks = [message.get("content") or "", *blocks, *_calls(entry)]
            call_id = text(message.get("toolCallId"))
            content = message.get("content") if role == "tool" else blocks
            yield Turn(role, content, None, time, call_id=call_id)


def _calls(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the calls of a reply, and the results that are recorded with them."""
    made = objects(obj(entry.get("message")).get("toolCalls"))
    states = objects(entry.get("toolCallStates")) or [obj(entry.get("toolCallState"))]
    calls = made or [call for state in states if (call := obj(state.get("toolCall")))]
    yield from map(call_block, calls)
    for state in states:
        identity = text(state.get("toolCallId")) or text(obj(state.get("toolCall")).get("id"))
        outputs = [text(item.get("content")) for item in objects(state.get("output"))]
        if any(outputs):
            yield tool_result(identity, "\n".join(filter(None, outputs)))


class Continue(TranscriptImporter):
    """Reads the files in ``~/.continue/sessions``."""

    name = "continue"
    title = "Continue"
    instance = "continue"
    transcript = _Session

    def detect(self, head: Head) -> bool:
        return head.has_all("sessionId", "history", depth=1)

    def places(self) -> Iterator[Place]:
        yield Place(tool_dir("CONTINUE_GLOBAL_DIR", ".continue") / "sessions", (".json",))

    def is_repeated(self, file: File) -> bool:
        return file.name.endswith(_LIST)
