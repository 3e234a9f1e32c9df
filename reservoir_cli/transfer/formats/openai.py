"""Import messages in the shape of OpenAI's chat API: request bodies, or single messages."""

from collections.abc import Iterator
from typing import Any

from reservoir_cli.messages import Message, call_from_dict
from reservoir_cli.transfer.reading.api_bodies import lists_messages, read_bodies, read_system
from reservoir_cli.transfer.reading.content_blocks import content_text, thought
from reservoir_cli.transfer.reading.foreign_values import call, joined_texts, objects, text
from reservoir_cli.transfer.reading.head import Head
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped
from reservoir_cli.transfer.reading.input_files import File
from reservoir_cli.transfer.reading.transcripts import ROLES

#: Items of the Responses API that are no messages.
_ITEMS = ("function_call", "function_call_output", "reasoning", "web_search_call")


class OpenAI(Importer):
    """Reads requests and messages of the chat completions API."""

    name = "openai"
    title = "OpenAI messages"
    instance = None

    def detect(self, head: Head) -> bool:
        is_response = head.has("choices") or head.has_all("model", "input", depth=1)
        is_line = head.has("custom_id", depth=1) and head.has("body", depth=2)
        return lists_messages(head) or is_response or is_line

    def read(self, file: File) -> Iterator[Record | Skipped]:
        return read_bodies(file, self.name, _messages, before=("instructions", read_system))


def _messages(value: Any) -> list[Message]:
    if not isinstance(value, dict):
        raise ValueError("not a message")
    if "role" not in value and value.get("type") in _ITEMS:
        return _item_messages(value)
    role = ROLES.get(str(value.get("role")))
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


def _item_messages(item: dict[str, Any]) -> list[Message]:
    """Return the messages of an item of the Responses API, or raise ValueError."""
    identity = item.get("call_id") or item.get("id")
    match item["type"]:
        case "function_call":
            made = call(identity, item.get("name"), item.get("arguments"))
            return [Message("assistant", "", tool_calls=(made,))]
        case "web_search_call":
            made = call(identity, "web_search", item.get("action"))
            return [Message("assistant", "", tool_calls=(made,))]
        case "function_call_output":
            output = item.get("output")
            return [Message("tool", content_text(output), tool_call_id=text(identity))]
        case _:
            words = joined_texts(objects(item.get("content")) or item.get("summary"))
            return [thought(words)] if words else []
