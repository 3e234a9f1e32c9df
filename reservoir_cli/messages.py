"""The values everything else speaks of: messages, tool calls, scopes.

A value has no identity of its own: numbers and links are given by the store.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from reservoir_cli.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The first and last millisecond of a time. Rounded up, the last moments of the year 9999 would be
#: of a year that no calendar here has.
FIRST_MS, LAST_MS = -62_135_424_000_000, 253_402_300_799_999
_LONGEST_TITLE = 80
#: Sources of messages that are texts of a folder. They can be recalled, and are never history.
DOCUMENT_SOURCES = ("markdown", "text")
#: What no name has: control characters, line separators, and changes of direction.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class Role(StrEnum):
    """Who speaks. ``tool`` is the result of a tool call."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A request of the assistant to run a tool.

    :param arguments: a JSON text, kept as the model wrote it (it may not parse).
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """What an import knows of the thread a message belongs to.

    :param project: name of the folder that the work was done in.
    :param branch: of the project's repository.
    """

    id: str
    title: str | None = None
    source: str | None = None
    model: str | None = None
    project: str | None = None
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message that is not stored yet. What is ``None`` is filled in by the store.

    :param created_at: an aware datetime.
    :param trace_id: ties a question, its reply, and the tool calls between them.
    :param source: the tool it came from; with ``source_id`` it makes imports repeatable.
    :param secrets: kinds of secrets that were found in it; see :mod:`reservoir_cli.redaction`.
    :raises UsageError: unknown role, or a time without a zone.
    """

    role: str
    content: str
    created_at: datetime | None = None
    trace_id: str | None = None
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    source: str | None = None
    source_id: str | None = None
    conversation_id: str | None = None
    secrets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parse_role(self.role)
        if self.created_at is not None and self.created_at.tzinfo is None:
            raise UsageError(
                "created_at has no time zone",
                hint="use an aware datetime, such as datetime.now(UTC)",
            )


class Key(NamedTuple):
    """The name of a stored message: on a server an id is unique in its partition only."""

    partition: str
    id: int


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as the store keeps it.

    :param id: unique in its partition, and in a store in a file.
    :param tokens: its count by ``counter``, the name and version of a token counter.
    :param secrets: kinds of secrets that were found in it, each once, in order of their names.
    """

    id: int
    trace_id: str
    conversation_id: str | None
    partition: str
    instance: str
    role: Role
    content: str
    name: str | None
    tool_calls: tuple[ToolCall, ...]
    tool_call_id: str | None
    created_at: datetime
    source: str
    source_id: str
    tokens: int
    counter: str = ""
    secrets: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """The name of the message in its store."""
        return Key(self.partition, self.id)

    def to_row(self) -> dict[str, Any]:
        """The message as plain JSON values: the row that ``--json`` and ``export`` print."""
        row = {
            "id": self.id,
            "trace_id": self.trace_id,
            "conversation_id": self.conversation_id,
            "partition": self.partition,
            "instance": self.instance,
            "role": self.role.value,
            "content": self.content,
            "name": self.name,
            "tool_calls": [call_to_dict(call) for call in self.tool_calls] or None,
            "tool_call_id": self.tool_call_id,
            "created_at": self.created_at.isoformat(),
            "source": self.source,
            "source_id": self.source_id,
            "tokens": self.tokens,
        }
        return row | ({"secrets": list(self.secrets)} if self.secrets else {})


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look.

    :param partition: ``None`` for every partition.
    :param instance: ``None`` for every instance of the partition.
    """

    partition: str | None
    instance: str | None = None

    def __post_init__(self) -> None:
        for name in (self.partition, self.instance):
            if name is not None and clean_text(name) != name:
                raise UsageError("a partition or instance has bytes in its name that are no text")

    def __str__(self) -> str:
        return f"{self.partition or '*'}/{self.instance or '*'}"


def parse_role(text: str) -> Role:
    """Read a role by its name.

    :raises UsageError: it is none of the four.
    """
    try:
        return Role(text)
    except ValueError:
        raise UsageError(
            f"unknown role {text!r}", hint=f"roles are {', '.join(role.value for role in Role)}"
        ) from None


def call_to_dict(call: ToolCall) -> dict[str, str]:
    """A tool call as plain JSON values."""
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def call_from_dict(value: Any) -> ToolCall:
    """Read a tool call written by :func:`call_to_dict`, or in OpenAI's nested form.

    :raises ValueError: it is no object, or has no name.
    """
    if not isinstance(value, Mapping):
        raise ValueError("a tool call that is no object")
    function = value.get("function") or value.get("custom") or value
    if not isinstance(function, Mapping):
        raise ValueError("a tool call whose function is no object")
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("a tool call without a name")
    arguments = function.get("arguments", function.get("input", ""))
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(id=str(value.get("id") or ""), name=name, arguments=arguments)


def clean_text(text: str) -> str:
    """Replace what UTF-8 or SQLite cannot hold, NUL and lone surrogates, by U+FFFD."""
    text = text.replace("\0", "\ufffd")
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # By way of UTF-16, which joins surrogates that belong together.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_name(name: str) -> str:
    """Replace what no name of a partition, instance, trace, conversation or tag may hold."""
    return _CONTROL.sub("\ufffd", clean_text(name))


def check_name(name: str) -> str:
    """Return a name under which something new is stored.

    :raises UsageError: it holds control characters, or is empty.
    """
    if not name.strip():
        raise UsageError("a name cannot be empty")
    if clean_name(name) != name:
        raise UsageError(
            f"a name cannot hold control characters: {clean_name(name)}",
            hint="use letters, digits, spaces and punctuation",
        )
    return name


def content_hash(message: Message | StoredMessage, previous: str = "") -> str:
    """Fingerprint of what a message says, for sources that give no ids of their own.

    SHA-256 over the previous message's id, the role, the text and the tool fields, so that
    the same words at another place of a conversation are another message.

    :param previous: ``source_id`` of the message before it in its conversation.
    """
    import hashlib  # it loads OpenSSL, and few commands need it

    calls = [call_to_dict(call) for call in message.tool_calls]
    fields = [
        previous,
        str(message.role),
        message.content,
        message.name,
        calls,
        message.tool_call_id,
    ]
    return hashlib.sha256(json.dumps(fields, ensure_ascii=True).encode("ascii")).hexdigest()


def from_epoch_ms(value: int) -> datetime:
    """Milliseconds since 1970 as a UTC datetime."""
    return _EPOCH + timedelta(milliseconds=value)


def to_epoch_ms(value: datetime) -> int:
    """An aware datetime as milliseconds since 1970; the last one of the year 9999 at most."""
    return min(round(value.timestamp() * 1000), LAST_MS)


def title_of(question: str) -> str | None:
    """A title for a conversation that begins with this question: its first line, if any."""
    words = next((line.split() for line in question.splitlines() if line.strip()), [])
    title = " ".join(words)
    return (title if len(title) <= _LONGEST_TITLE else f"{title[:_LONGEST_TITLE]}…") or None


def call_text(call: ToolCall) -> str:
    """A tool call as one reads it: ``[call NAME {json}]``."""
    return f"[call {call.name} {call.arguments or '{}'}]"


def plain_text(message: Message | StoredMessage) -> str:
    """What a message says, its tool calls included: what is searched, embedded and recalled."""
    if not message.tool_calls:
        return message.content
    calls = [call_text(call) for call in message.tool_calls]
    return "\n".join([message.content, *calls] if message.content else calls)
