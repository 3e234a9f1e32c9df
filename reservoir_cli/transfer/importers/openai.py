"""Import messages in the shape of OpenAI's chat API: request bodies, or single messages."""

from collections.abc import Iterator
from typing import Any

from reservoir_cli.messages import Message, call_from_dict
from reservoir_cli.transfer.importers.api_bodies import read_bodies
from reservoir_cli.transfer.importers.content_blocks import content_text
from reservoir_cli.transfer.importers.foreign_values import text
from reservoir_cli.transfer.importers.importer import Record, Skipped, has_key, is_json
from reservoir_cli.transfer.importers.input_files import File

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


class OpenAI:
    """Reads requests and messages of the chat completions API."""

    name = "openai"
    instance = None

    def detect(self, head: str) -> bool:
        """Recognise a role or a list of messages near the beginning of a JSON text."""
        return is_json(head) and (has_key(head, "role", "messages") or head.split() == ["[]"])

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield each request body as a conversation; single messages of a file are another."""
        return read_bodies(file, self.name, _messages)


def _messages(value: Any) -> list[Message]:
    if not isinstance(value, dict):
        raise ValueError("not a message")
    role = _ROLES.get(str(value.get("role")))
    if role is None:
        raise ValueError("unknown role")
    calls = value.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(item, dict) for item in calls):
        raise ValueError("tool_calls is not a list of calls")
    content = content_text(value.get("content"))
    if not content.strip() and not calls and role != "tool":
        raise ValueError("empty")
    message = Message(
        role,
        content,
        name=text(value.get("name")),
        tool_calls=tuple(call_from_dict(item) for item in calls),
        tool_call_id=text(value.get("tool_call_id")),
    )
    return [message]
