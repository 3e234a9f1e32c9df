"""Import messages in the shape of OpenAI's or Anthropic's API.

They are request bodies, each a conversation, or single messages outside bodies.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from reservoir_cli.messages import Message, call_from_dict
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.content_blocks import content_text
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import obj, objects, require_object, text
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped, SourceIds, Thread
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.times import time_of
from reservoir_cli.transfer.reading.transcripts import ROLES

#: Converts a value of the file into messages; raises ``ValueError`` with the reason if it cannot.
_Read = Callable[[Any], Iterable[Message]]
#: Roles by the types of messages that have no role.
_ROLES_BY_TYPE = ROLES | {"tool_result": "tool"}
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
        return _lists_messages(head) and (typical or bool(_BLOCK.search(head.text)))

    def read(self, file: File) -> Iterator[Record | Skipped]:
        return _read_bodies(file, self.name, _anthropic_messages, before=("system", _read_system))


def _anthropic_messages(value: Any) -> list[Message]:
    role, content = ROLES.get(str(require_object(value).get("role"))), value.get("content")
    if role is None:
        raise ValueError("unknown role")
    if role == "tool":
        role, content = "user", [content_blocks.tool_result(value.get("tool_call_id"), content)]
    messages = content_blocks.messages(role, content, None)
    if not messages and not content:
        raise ValueError("empty")
    return messages


class OpenAI(Importer):
    """Reads requests and messages of the chat completions API."""

    name = "openai"
    title = "OpenAI messages"
    instance = None

    def detect(self, head: Head) -> bool:
        is_response = head.has("choices") or head.has_all("model", "input", depth=1)
        is_line = head.has("custom_id", depth=1) and head.has("body", depth=2)
        return _lists_messages(head) or is_response or is_line

    def read(self, file: File) -> Iterator[Record | Skipped]:
        return _read_bodies(
            file, self.name, _openai_messages, before=("instructions", _read_system)
        )


def _openai_messages(value: Any) -> list[Message]:
    if "role" not in require_object(value) and value.get("type") in content_blocks.ITEMS:
        message = content_blocks.item_message(value)
        return [message] if message else []
    role = ROLES.get(str(value.get("role")))
    if role is None:
        raise ValueError("unknown role")
    calls = value.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(item, dict) for item in calls):
        raise ValueError("tool_calls is not a list of calls")
    content = content_text(value.get("content"))
    if not content.strip() and not calls and role != "tool":
        raise ValueError("empty")
    single = Message(
        role,
        content,
        name=text(value.get("name")),
        tool_calls=tuple(call_from_dict(item) for item in calls),
        tool_call_id=text(value.get("tool_call_id")),
    )
    return [single]


def _lists_messages(head: Head) -> bool:
    """Return whether a file has a list of messages, or messages with a role or a type."""
    is_typed = head.has_kind("user", "human") and head.has("content") and head.has("type")
    return head.has("role", "messages", "loglines") or is_typed


def _read_bodies(
    file: File, source: str, read: _Read, *, before: tuple[str, _Read]
) -> Iterator[Record | Skipped]:
    """Yield the messages of the request bodies and single messages in a file.

    :param before: a key of the body with messages before the others, and their converter.
    """
    identities = SourceIds()
    singles: dict[str | None, _ConversationReader] = {}

    def read_body(place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
        value = _unwrap(value)
        messages = value.get("messages")
        if not isinstance(messages, list):
            key = text(value.get("conversation_id"))
            if key not in singles:
                singles[key] = _ConversationReader(source, identities, {"conversation_id": key})
            yield from singles[key].records(place, value, read)
            return
        conversation = _ConversationReader(source, identities, value)
        name, read_before = before
        yield from conversation.records(f"{place}, {name}", value.get(name), read_before)
        for number, message in enumerate(messages, 1):
            yield from conversation.records(f"{place}, message {number}", message, read)

    return read_entries(file, read_body)


def _read_system(value: Any) -> list[Message]:
    """Return the message of a system text or its blocks, which a body has beside its messages."""
    try:
        content = content_text(value)
    except ValueError:
        raise ValueError("neither a text nor a list of blocks") from None
    return [Message("system", content)] if content.strip() else []


def _unwrap(value: dict[str, Any]) -> dict[str, Any]:
    """Return a body, of a line of a batch or another API, with its messages as ``messages``."""
    for name in ("body", "params", "response", "result"):
        inner = value.get(name)
        if "custom_id" in value and isinstance(inner, dict):
            return _unwrap(obj(inner.get("body")) or obj(inner.get("message")) or inner)
    if isinstance(value.get("messages"), list) or "role" in value:
        return value
    choices = objects(value.get("choices"))
    if choices and "message" in choices[0]:
        return value | {"messages": [choices[0]["message"]]}
    for name in ("conversations", "conversation", "input", "output", "loglines"):
        if isinstance(listed := value.get(name), list):
            return value | {"messages": listed}
    if isinstance(value.get("input"), str) and "model" in value:
        return value | {"messages": [{"role": "user", "content": value["input"]}]}
    return value


def _as_message(value: Any) -> Any:
    """Return a message with its role and content under these names.

    A message may be in an envelope with its type and time, its role may be its type, and its
    content may be its text.
    """
    fields = obj(value)
    if "role" not in fields:
        inner = obj(fields.get("message"))
        fields = fields | inner if "role" in inner or "content" in inner else fields
        role = _ROLES_BY_TYPE.get(str(obj(value).get("type")))
        fields = {"role": role} | fields if role and "content" in fields else fields
    for name in ("text", "message"):
        if "role" in fields and "content" not in fields and isinstance(fields.get(name), str):
            fields = fields | {"content": fields[name]}
    return fields or value


class _ConversationReader:
    """One conversation: its first message without a time gets the body's, others the previous."""

    def __init__(self, source: str, identities: SourceIds, body: dict[str, Any]) -> None:
        self._thread = Thread(source, body.get("conversation_id"), identities=identities)
        self._time = time_of(body)

    def records(self, place: str, value: Any, read: _Read) -> Iterator[Record | Skipped]:
        value = _as_message(value)

        def timed() -> Iterator[Message]:
            messages = read(value)
            self._time = time_of(obj(value)) or self._time
            return (replace(message, created_at=self._time) for message in messages)

        yield from self._thread.convert(place, None, timed)
