"""Import conversations in ShareGPT's format."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from reservoir_cli.messages import Message, ToolCall
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import call, obj, require_list
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped, SourceIds, Thread
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.times import time_of

_ROLES = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "function_call"), "assistant"),
    **dict.fromkeys(("observation", "tool"), "tool"),
    "system": "system",
}


class ShareGPT(Importer):
    """Reads ``{"conversations": [{"from", "value"}]}``, one per line or in an array."""

    name = "sharegpt"
    title = "ShareGPT data"
    instance = "sharegpt"

    def detect(self, head: Head) -> bool:
        return head.has_all("conversations", "from")

    def read(self, file: File) -> Iterator[Record | Skipped]:
        return read_entries(file, partial(_read_conversation, SourceIds()))


def _read_conversation(
    identities: SourceIds, place: str, value: dict[str, Any]
) -> Iterator[Record | Skipped]:
    entries = require_list(value.get("conversations"))
    conversation = _ConversationReader(identities, value)
    for number, entry in enumerate(entries, 1):
        yield from Skipped.if_invalid(f"{place}, message {number}", conversation.read(entry))


@dataclass
class _ConversationReader:
    """One conversation, in which each result answers the previous call."""

    identities: SourceIds
    about: dict[str, Any]
    open_call: str | None = None

    def __post_init__(self) -> None:
        about = {key: self.about.get(key) for key in ("title", "model")}
        identity, identities = self.about.get("id"), self.identities
        self.thread = Thread(ShareGPT.name, identity, identities=identities, **about)
        self.time = time_of(self.about)

    def read(self, value: Any) -> Iterator[Record]:
        message = self._message(value)
        self.time = time_of(value) or self.time
        message = replace(message, created_at=self.time)
        source_id = self.thread.new_id(message)
        if message.tool_calls:
            # The format has no ids for calls: derive a unique one.
            digest = hashlib.sha256(source_id.encode()).hexdigest()[:24]
            self.open_call = f"call_{digest}"
            calls = tuple(replace(tool_call, id=self.open_call) for tool_call in message.tool_calls)
            message = replace(message, tool_calls=calls)
        elif message.role == "tool":
            message = replace(message, tool_call_id=self.open_call)
            self.open_call = None
        yield self.thread.record(message, source_id)

    def _message(self, value: Any) -> Message:
        if not isinstance(value, dict):
            raise ValueError("not a message")
        author, content = value.get("from"), value.get("value")
        role = _ROLES.get(author) if isinstance(author, str) else None
        if role is None:
            raise ValueError("unknown role")
        if not isinstance(content, str):
            raise ValueError("value is not a text")
        tool_call = _parse_call(content) if author == "function_call" else None
        if tool_call is not None:
            return Message(role, "", tool_calls=(tool_call,))
        if not content.strip() and role != "tool":
            raise ValueError("empty")
        return Message(role, content)


def _parse_call(content: str) -> ToolCall | None:
    """Return the tool call in a JSON text; ``None`` if the text is not a call."""
    try:
        fields = obj(json.loads(content))
        return call("", fields.get("name"), fields.get("arguments"))
    except (ValueError, RecursionError):
        return None
