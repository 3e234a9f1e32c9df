"""Import messages in the shape of Anthropic's API: request bodies, or single messages."""

import re
from collections.abc import Iterator
from typing import Any

from reservoir_cli.messages import Message
from reservoir_cli.transfer.importers import content_blocks
from reservoir_cli.transfer.importers.api_bodies import read_bodies
from reservoir_cli.transfer.importers.content_blocks import content_text
from reservoir_cli.transfer.importers.importer import Record, Skipped, has_key, is_json
from reservoir_cli.transfer.importers.input_files import File

_BLOCK = re.compile(r'"type"\s*:\s*"(?:tool_use|tool_result|thinking|redacted_thinking)"')


class Anthropic:
    """Reads requests and messages of Anthropic's API."""

    name = "anthropic"
    instance = None

    def detect(self, head: str) -> bool:
        """Recognise a system text beside the messages, or blocks that only Anthropic uses."""
        has_messages = has_key(head, "messages", "role")
        typical = has_key(head, "system", "input_schema", "anthropic_version")
        return is_json(head) and has_messages and (typical or bool(_BLOCK.search(head)))

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield each request body as a conversation; single messages of a file are another."""
        return read_bodies(file, self.name, _messages, before=("system", _system))


def _system(value: Any) -> list[Message]:
    try:
        content = content_text(value)
    except ValueError:
        raise ValueError("neither a text nor a list of blocks") from None
    return [Message("system", content)] if content.strip() else []


def _messages(value: Any) -> list[Message]:
    if not isinstance(value, dict):
        raise ValueError("not a message")
    role = value.get("role")
    if role not in ("user", "assistant", "system"):
        raise ValueError("unknown role")
    content = value.get("content")
    messages = content_blocks.messages(role, content, None)
    if not messages and not content:
        raise ValueError("empty")
    return messages
