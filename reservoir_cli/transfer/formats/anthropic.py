"""Import messages in the shape of Anthropic's API: request bodies, or single messages."""

import re
from collections.abc import Iterator
from typing import Any

from reservoir_cli.messages import Message
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.api_bodies import lists_messages, read_bodies, read_system
from reservoir_cli.transfer.reading.head import Head
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped
from reservoir_cli.transfer.reading.input_files import File
from reservoir_cli.transfer.reading.transcripts import ROLES

_BLOCK = re.compile(r'"type"\s*:\s*"(?:tool_use|tool_result|thinking|redacted_thinking)"')


class Anthropic(Importer):
    """Reads requests and messages of Anthropic's API."""

    name = "anthropic"
    title = "Anthropic messages"
    instance = None

    def detect(self, head: Head) -> bool:
        """Recognise a system text beside the messages, or blocks that only Anthropic uses."""
        if head.has("custom_id", depth=1) and head.has("params", "result", depth=1):
            return head.has("messages") or head.has("role", depth=3)
        if head.has("tool_calls", "tool_call_id"):
            return False
        typical = head.has("system", "input_schema", "anthropic_version")
        return lists_messages(head) and (typical or bool(_BLOCK.search(head.text)))

    def read(self, file: File) -> Iterator[Record | Skipped]:
        return read_bodies(file, self.name, _messages, before=("system", read_system))


def _messages(value: Any) -> list[Message]:
    if not isinstance(value, dict):
        raise ValueError("not a message")
    role, content = ROLES.get(str(value.get("role"))), value.get("content")
    if role is None:
        raise ValueError("unknown role")
    if role == "tool":
        role, content = "user", [content_blocks.tool_result(value.get("tool_call_id"), content)]
    messages = content_blocks.messages(role, content, None)
    if not messages and not content:
        raise ValueError("empty")
    return messages
