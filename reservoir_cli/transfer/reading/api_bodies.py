"""Read request bodies of chat APIs, each a conversation, and single messages outside bodies."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from reservoir_cli.messages import Conversation, Message
from reservoir_cli.transfer.reading.content_blocks import content_text
from reservoir_cli.transfer.reading.conversation_identity import SourceIds, Thread
from reservoir_cli.transfer.reading.foreign_values import obj, objects, text
from reservoir_cli.transfer.reading.head import Head
from reservoir_cli.transfer.reading.importer import Record, Skipped
from reservoir_cli.transfer.reading.input_files import File
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.message_times import time_of
from reservoir_cli.transfer.reading.transcripts import ROLES

#: Converts a value of the file into messages; raises ``ValueError`` with the reason if it cannot.
Read = Callable[[Any], Iterable[Message]]
#: Roles by the types of messages that have no role.
_ROLES_BY_TYPE = ROLES | {"tool_result": "tool"}


def lists_messages(head: Head) -> bool:
    """Return whether a file has a list of messages, or messages with a role or a type."""
    is_typed = head.has_kind("user", "human") and head.has("content") and head.has("type")
    return head.has("role", "messages", "loglines") or is_typed


def read_bodies(
    file: File, source: str, read: Read, *, before: tuple[str, Read] | None = None
) -> Iterator[Record | Skipped]:
    """Yield the messages of the request bodies and single messages in a file.

    :param before: a key of the body with messages before the others, and their converter.
    """
    identities = SourceIds()
    singles: dict[str | None, _ConversationReader] = {}

    def read_body(place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
        value = unwrap(value)
        messages = value.get("messages")
        if not isinstance(messages, list):
            key = text(value.get("conversation_id"))
            if key not in singles:
                singles[key] = _ConversationReader(source, identities, {"conversation_id": key})
            yield from singles[key].records(place, value, read)
            return
        conversation = _ConversationReader(source, identities, value)
        if before:
            name, read_before = before
            yield from conversation.records(f"{place}, {name}", value.get(name), read_before)
        for number, message in enumerate(messages, 1):
            yield from conversation.records(f"{place}, message {number}", message, read)

    return read_entries(file, read_body)


def read_system(value: Any) -> list[Message]:
    """Return the message of a system text or its blocks, which a body has beside its messages."""
    try:
        content = content_text(value)
    except ValueError:
        raise ValueError("neither a text nor a list of blocks") from None
    return [Message("system", content)] if content.strip() else []


def unwrap(value: dict[str, Any]) -> dict[str, Any]:
    """Return a body, of a line of a batch or another API, with its messages as ``messages``."""
    for name in ("body", "params", "response", "result"):
        inner = value.get(name)
        if "custom_id" in value and isinstance(inner, dict):
            return unwrap(obj(inner.get("body")) or obj(inner.get("message")) or inner)
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
        key = text(body.get("conversation_id"))
        about = Conversation(key, source=source) if key else None
        self._thread = Thread(source, about, identities=identities)
        self._time = time_of(body)

    def records(self, place: str, value: Any, read: Read) -> Iterator[Record | Skipped]:
        value = _as_message(value)

        def timed() -> Iterator[Message]:
            messages = read(value)
            self._time = time_of(obj(value)) or self._time
            return (replace(message, created_at=self._time) for message in messages)

        yield from self._thread.convert(place, None, timed)
