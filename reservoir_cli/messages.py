"""The core values: messages, tool calls, scopes and filters. The store assigns ids and links."""

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from reservoir_cli.errors import UsageError, wrong_type

_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
#: The first and last millisecond of a time. Rounding up the last moments of the year 9999 would
#: give a year that datetime cannot hold.
FIRST_MS, LAST_MS = -62_135_424_000_000, 253_402_300_799_999
_LONGEST_TITLE = 80
#: Sources of messages imported from text files. They can be recalled, but are never history.
DOCUMENT_SOURCES = ("markdown", "text")
THINKING = "thinking"  #: The name of messages of what a model thought.
LARGEST_ID = 2**63 - 1  #: The largest number that a store can hold.
#: Characters not allowed in names: control, line separators, and direction overrides.
_CONTROL = "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
#: An escape in a JSON text; half a surrogate pair has no letter.
_ESCAPE = r"\\(?:u([0-9a-fA-F]{4})|.)"


class Role(StrEnum):
    """The author of a message. ``tool`` is the result of a tool call."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The assistant's request to run a tool.

    :param arguments: JSON text, kept as the model wrote it; it may be invalid.
    """

    id: str
    name: str
    arguments: str

    def __post_init__(self) -> None:
        for name in ("id", "name", "arguments"):
            check_text(name, getattr(self, name))
        if not self.name:
            raise UsageError("a tool call has no name")


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation's metadata, as an import provides it."""

    id: str
    title: str | None = None
    source: str | None = None
    model: str | None = None
    project: str | None = None
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message that is not stored yet; the store fills in fields that are ``None``.

    :param trace_id: links a question, its reply, and the tool calls between them.
    :param source: the tool it came from; imports use it with ``source_id`` to find duplicates.
    :param secrets: kinds of secrets detected in it; see :mod:`reservoir_cli.redaction`.
    :param pinned_at: when it was pinned to every context; ``None`` if it is not pinned.
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
    tags: tuple[str, ...] = ()
    pinned_at: datetime | None = None

    def __post_init__(self) -> None:
        parse_role(self.role)
        check_text("content", self.content)
        for name, check in _CHECKS.items():
            if (value := getattr(self, name)) is not None:
                check(name, value)
        _check_values("tool_calls", self.tool_calls, ToolCall, "ToolCall values")
        _check_values("secrets", self.secrets, str, "texts")
        _check_values("tags", self.tags, str, "texts")


Channel = tuple[str, str]  #: A partition and an instance.
#: Partition, instance and conversation: ``None`` for the messages outside of any conversation.
ConversationName = tuple[str, str, str | None]


class Key(NamedTuple):
    """The key of a stored message: on a server, an id is unique only within its partition."""

    partition: str
    id: int


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message in the store.

    :param id: unique within its partition, and in a file store within the whole store.
    :param tokens: its token count by ``counter``, the name and version of a token counter.
    :param secrets: distinct kinds of secrets detected in it, sorted by name.
    :param pinned_at: when it was pinned to every context; ``None`` if it is not pinned.
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
    tags: tuple[str, ...] = ()
    pinned_at: datetime | None = None

    @property
    def key(self) -> Key:
        """The message's key in its store."""
        return Key(self.partition, self.id)

    def as_new(self) -> Message:
        """Return the message without its id, scope and token count."""
        return Message(**{field.name: getattr(self, field.name) for field in fields(Message)})

    def to_row(self) -> dict[str, Any]:
        """Return the message as plain JSON values: the row that ``--json`` and ``export`` print."""
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
        marks = {
            "secrets": list(self.secrets),
            "tags": list(self.tags),
            "pinned": self.pinned_at is not None,
            "pinned_at": self.pinned_at and self.pinned_at.isoformat(),
        }
        return row | {name: value for name, value in marks.items() if value}


@dataclass(frozen=True, slots=True)
class Scope:
    """The partition and instance that a command covers.

    :param partition: ``None`` for all partitions.
    :param instance: ``None`` for all instances of the partition.
    """

    partition: str | None
    instance: str | None = None

    def __post_init__(self) -> None:
        for part, name in (("partition", self.partition), ("instance", self.instance)):
            if name is not None:
                check_valid_text(part, name)
        if self.partition is None and self.instance is not None:
            raise UsageError(
                "an instance without its partition", hint='Scope("work", "claude") names both'
            )

    def __str__(self) -> str:
        return f"{self.partition or '*'}/{self.instance or '*'}"


def check_text(name: str, value: object) -> None:
    """Check that a value of this name is text."""
    if not isinstance(value, str):
        raise wrong_type(name, "text", value)


def check_valid_text(name: str, value: object) -> None:
    """Check that a value of this name is text that a store can hold."""
    check_text(name, value)
    if clean_text(str(value)) != value:
        raise UsageError(f"{name} is not valid text", hint="it must be UTF-8, without NUL")


def check_time(name: str, value: object) -> None:
    """Check that a value of this name is an aware datetime."""
    if not isinstance(value, datetime):
        raise wrong_type(name, "a datetime", value)
    if value.utcoffset() is None:
        hint = "use an aware datetime, such as datetime.now(UTC)"
        raise UsageError(f"{name} has no time zone", hint=hint)


#: The checks of a message's optional fields.
_CHECKS = {
    **dict.fromkeys(
        ("trace_id", "name", "tool_call_id", "source", "source_id", "conversation_id"), check_text
    ),
    **dict.fromkeys(("created_at", "pinned_at"), check_time),
}


def _check_values(name: str, values: object, kind: type, expected: str) -> None:
    if isinstance(values, tuple) and not values:
        return
    if not isinstance(values, tuple | list) or not all(isinstance(item, kind) for item in values):
        raise wrong_type(name, f"a tuple of {expected}", values)


def parse_role(text: str) -> Role:
    """Parse the name of a role."""
    try:
        return Role(text)
    except ValueError:
        raise UsageError(
            f"unknown role {text!r}", hint=f"roles are {', '.join(role.value for role in Role)}"
        ) from None


def call_to_dict(call: ToolCall) -> dict[str, str]:
    """Return a tool call as plain JSON values."""
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def call_from_dict(value: Any) -> ToolCall:
    """Parse a tool call written by :func:`call_to_dict`, or in OpenAI's nested form."""
    if not isinstance(value, Mapping):
        raise ValueError("a tool call that is not an object")
    function = value.get("function") or value.get("custom") or value
    if not isinstance(function, Mapping):
        raise ValueError("a tool call whose function is not an object")
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("a tool call without a name")
    arguments = function.get("arguments", function.get("input", ""))
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(id=str(value.get("id") or ""), name=name, arguments=arguments)


def clean_text(text: str) -> str:
    """Replace NUL and lone surrogates, which SQLite or UTF-8 cannot hold, with U+FFFD."""
    text = text.replace("\0", "\ufffd")
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # Going through UTF-16 joins surrogate pairs.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def is_text(value: str) -> bool:
    """Return whether a text is valid: an argument that is not UTF-8 has lone surrogates."""
    return not re.search("[\ud800-\udfff]", value)


def clean_name(name: str) -> str:
    """Replace characters not allowed in names of partitions, instances, traces and tags."""
    return re.sub(_CONTROL, "\ufffd", clean_text(name))


def check_name(name: str, where: str = "a name") -> str:
    """Return the name if it is valid for a new partition, instance, trace or tag.

    :param where: what holds the name, such as a setting, for the error.
    """
    hint = "use letters, digits, spaces and punctuation"
    if not name.strip():
        raise UsageError(f"{where} cannot be empty", hint=hint)
    if clean_name(name) != name:
        raise UsageError(f"{where} cannot contain control characters: {name!r}", hint=hint)
    return name


def content_hash(message: Message | StoredMessage, previous: str = "") -> str:
    """Return a hash that identifies a message from a source without ids.

    It is the SHA-256 of the previous message's id, the role, the text and the tool fields, so that
    the same text elsewhere in a conversation is a different message.
    """
    import hashlib  # loads OpenSSL, which few commands need

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
    """Convert milliseconds since 1970 to a UTC datetime."""
    return _EPOCH + value * _MILLISECOND


def to_epoch_ms(value: datetime) -> int:
    """Convert an aware datetime to milliseconds since 1970, capped at the end of 9999."""
    return min(round(value.timestamp() * 1000), LAST_MS)


def title_of(question: str) -> str | None:
    """Return a title for a conversation from its first question: the first line, shortened."""
    words = next((line.split() for line in question.splitlines() if line.strip()), [])
    title = " ".join(words)
    return (title if len(title) <= _LONGEST_TITLE else f"{cut(title, _LONGEST_TITLE)}…") or None


def cut(text: str, length: int) -> str:
    """Return the beginning of a text, without splitting joined emoji, flags or accented letters."""
    end = min(length, len(text))
    while 0 < end < len(text) and _is_joined(text, end):
        end -= 1
    return text[: end or length]


def _is_joined(text: str, at: int) -> bool:
    """Return whether the characters before and after a position are shown as one."""
    before, after = text[:at], text[at]
    if "\U0001f1e6" <= after <= "\U0001f1ff":  # a flag is two letters
        return len(re.findall("[\U0001f1e6-\U0001f1ff]*$", before)[0]) % 2 == 1
    is_mark = unicodedata.category(after) in ("Mn", "Mc", "Me", "Cf")  # Cf: joiners and tags
    return is_mark or before[-1] == "\u200d" or "\U0001f3fb" <= after <= "\U0001f3ff"


def call_text(call: ToolCall) -> str:
    """Return a tool call as readable text: ``[call NAME {json}]``."""
    return f"[call {call.name} {call.arguments or '{}'}]"


def plain_text(message: Message | StoredMessage) -> str:
    """Return a message's text with its tool calls, as it is searched, embedded and recalled."""
    if not message.tool_calls:
        return message.content
    calls = [call_text(call) for call in message.tool_calls]
    return "\n".join([message.content, *calls] if message.content else calls)


def searchable_text(message: Message | StoredMessage) -> str:
    r"""Return the text of :func:`plain_text` with the escapes in JSON arguments decoded.

    Undecoded, the word behind ``\n`` begins with the letter n. The result has the same length, so
    that positions in it are positions in that text.
    """
    calls = tuple(_decode_escapes(call) for call in message.tool_calls)
    return plain_text(replace(message, tool_calls=calls)) if calls else message.content


def _decode_escapes(call: ToolCall) -> ToolCall:
    if not call.arguments.lstrip().startswith(("{", "[")):
        return call
    return replace(call, arguments=re.sub(_ESCAPE, _decode_escape, call.arguments))


def _decode_escape(escape: re.Match[str]) -> str:
    letter = chr(int(escape[1], 16)) if escape[1] else ""
    return (letter if letter.isalnum() else "").ljust(len(escape[0]))


#: The conditions that are names or ids.
_NAMES = "role trace_id conversation_id source project tag session".split()
#: The text ids that may be abbreviated to a prefix.
IdField = Literal["trace_id", "conversation_id"]


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on the messages of a scope; ``None`` matches every message.

    :param text: a literal text in their content or tool calls; case is ignored.
    :param session: the id of their conversation, or its beginning up to a slash: sub-agents
        append a slash and an id of their own.
    :param project: the folder that their conversation was about.
    :param documents: whether to include the documents of an ingested folder.
    :raises UsageError: a text is something else or not valid, or a time has no zone.
    """

    role: str | None = None
    trace_id: str | None = None
    conversation_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None
    source: str | None = None
    project: str | None = None
    tag: str | None = None
    pinned: bool = False
    secrets: bool = False
    documents: bool = True
    session: str | None = None

    def __post_init__(self) -> None:
        if self.text is not None:
            check_text("text", self.text)
        for name in _NAMES:
            if (value := getattr(self, name)) is not None:
                check_valid_text(name, value)
        for name in ("since", "until"):
            if (value := getattr(self, name)) is not None:
                check_time(name, value)


EVERYWHERE = Scope(None)  #: The scope of all messages.
EVERYTHING = Filter()  #: The filter that every message matches.
