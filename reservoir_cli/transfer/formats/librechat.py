"""Import LibreChat's export of a conversation: messages with their parents, or nested."""

from collections.abc import Iterator
from typing import Any

from reservoir_cli.transfer.reading.content_blocks import tool_result, tool_use
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import obj, objects, require_list, text
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped, Thread
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.message_trees import find_branch, time_at
from reservoir_cli.transfer.reading.transcripts import Turn, read_conversation


class LibreChat(Importer):
    """Reads an exported conversation."""

    name = "librechat"
    title = "LibreChat"
    instance = "librechat"

    def detect(self, head: Head) -> bool:
        return head.has("conversationId", depth=1) and head.has("isCreatedByUser", depth=3)

    def read(self, file: File) -> Iterator[Record | Skipped]:
        return read_entries(file, _read_conversation)


def _read_conversation(place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
    listed = require_list(value.get("messages", value.get("messagesTree")))
    rows = list(_flatten(listed))
    nodes = {identity: row for row in objects(rows) if (identity := text(row.get("messageId")))}
    branch = rows
    if len(nodes) == len(rows):
        branch = find_branch(nodes, None, "parentMessageId", time_at("createdAt"))
    title, model = value.get("title"), obj(value.get("options")).get("model")
    thread = Thread(LibreChat.name, value.get("conversationId"), title=title, model=model)
    yield from read_conversation(thread, place, enumerate(map(_turn, branch), 1))


def _flatten(rows: list[Any]) -> Iterator[Any]:
    """Yield messages and those inside them, each after its parent."""
    waiting = rows[::-1]
    while waiting:
        row = waiting.pop()
        children = obj(row).get("children")
        yield row
        if isinstance(children, list):
            waiting += [
                {"parentMessageId": row.get("messageId")} | child
                if isinstance(child, dict)
                else child
                for child in reversed(children)
            ]


def _turn(row: Any) -> Turn | None:
    if not isinstance(row, dict):
        return None
    role = "user" if row.get("isCreatedByUser") is True else "assistant"
    parts = objects(row.get("content"))
    blocks = [block for part in parts for block in _blocks(part)] or [text(row.get("text")) or ""]
    files = [{"type": "file", "title": item.get("filename")} for item in objects(row.get("files"))]
    identity, model = text(row.get("messageId")), text(row.get("model"))
    return Turn(role, [*files, *blocks], identity, row.get("createdAt"), model)


def _blocks(part: dict[str, Any]) -> list[Any]:
    match part.get("type"):
        case "text":
            words = part.get("text")
            return [text(obj(words).get("value", words)) or ""]
        case "tool_call":
            call = obj(part.get("tool_call"))
            function = obj(call.get("function")) or call
            identity, output = text(call.get("id")), call.get("output", function.get("output"))
            arguments = function.get("args", function.get("arguments"))
            made = tool_use(identity, function.get("name"), arguments)
            return [made, tool_result(identity, output)] if isinstance(output, str) else [made]
        case "error":
            return []
        case _:
            return [part]
