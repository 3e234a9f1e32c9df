"""Import conversations of llama.cpp's page: lines, or documents of earlier versions.

Messages form a tree; the conversation names its current one.
"""

from collections.abc import Iterator
from typing import Any

from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import obj, objects, text
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped, Thread
from reservoir_cli.transfer.reading.json_stream import entries
from reservoir_cli.transfer.reading.message_trees import find_branch, time_at
from reservoir_cli.transfer.reading.transcripts import Turn, read_conversation

_ROLES = ("user", "assistant", "system", "tool")


class LlamaCpp(Importer):
    """Reads the export of a conversation, or of all of them."""

    name = "llama-cpp"
    title = "llama.cpp"
    instance = "llama-cpp"

    def detect(self, head: Head) -> bool:
        return head.has("currNode", "convId", depth=3)

    def read(self, file: File) -> Iterator[Record | Skipped]:
        about: dict[str, Any] = {}
        rows: list[Any] = []
        for entry in entries(file):
            if isinstance(entry, Skipped):
                yield entry
                continue
            place, value = entry
            if isinstance(value.get("conv"), dict) and isinstance(value.get("messages"), list):
                yield from _read(place, value["conv"], value["messages"])
            elif value.get("type") == "session":
                yield from _read("the conversation", about, rows)
                about, rows = value, []
            elif isinstance(value.get("message"), dict):
                rows.append(value["message"])
            else:
                yield Skipped(place, "not a message")
        yield from _read("the conversation", about, rows)


def _read(place: str, about: dict[str, Any], rows: list[Any]) -> Iterator[Record | Skipped]:
    listed = [row for row in objects(rows) if row.get("id") is not None]
    nodes = {str(row["id"]): row | {"parent": _key(row.get("parent"))} for row in listed}
    current, time = _key(about.get("currNode")), time_at("timestamp")
    branch = find_branch(nodes, current, "parent", time, has_message=_is_said)
    identity = text(about.get("id"))
    thread = Thread(LlamaCpp.name, identity, title=about.get("name"))
    turns = [_turn(identity, row) for row in branch if obj(row).get("type") != "root"]
    yield from read_conversation(thread, place, enumerate(turns, 1))


def _key(value: Any) -> str | None:
    """Return an id, which is a number in earlier versions."""
    return str(value) if isinstance(value, int | str) else None


def _is_said(row: dict[str, Any]) -> bool:
    return row.get("role") in _ROLES and row.get("type") != "root"


def _turn(conversation: str | None, row: dict[str, Any]) -> Turn:
    extras = [
        {"type": "image" if item.get("type") == "imageFile" else "file", "title": item.get("name")}
        for item in objects(row.get("extra"))
    ]
    thinking = row.get("reasoningContent") or row.get("reasoning_content") or row.get("thinking")
    blocks = [*extras, row.get("content") or "", {"type": "thinking", "thinking": thinking}]
    identity = f"{conversation}:{row.get('id')}" if conversation else None
    model, call_id = text(row.get("model")), text(row.get("toolCallId"))
    content = row.get("content") if row.get("role") == "tool" else blocks
    return Turn(str(row.get("role")), content, identity, row.get("timestamp"), model, call_id)
