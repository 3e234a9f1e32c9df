"""OpenAI chat messages: a request body, ``{"messages": […]}`` a line, or bare messages."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from reservoir_cli.importers import Record, Skipped, SourceIds, jsonlines
from reservoir_cli.messages import Conversation, Message, call_from_dict

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


class OpenAI:
    """Reads the messages that chat completions take and give."""

    name = "openai"

    def detect(self, head: str) -> bool:
        """A role or a list of messages stands near the beginning of a JSON text."""
        begins = head.lstrip()[:1] in ("{", "[")
        return begins and ('"role"' in head or '"messages"' in head)

    def read(self, text: str) -> Iterator[Record | Skipped]:
        """Lists are conversations of their own; bare messages are one a file."""
        identities = SourceIds()
        bare = _Thread(identities)
        for found in jsonlines.objects(text):
            if isinstance(found, Skipped):
                yield found
                continue
            place, value = found
            listed = value.get("messages")
            if not isinstance(listed, list):
                yield bare.read(place, value)
                continue
            thread = _Thread(identities)
            for number, each in enumerate(listed, 1):
                yield thread.read(f"{place}, message {number}", each)


@dataclass
class _Thread:
    """One conversation: it gives its messages ids, a name, and traces."""

    identities: SourceIds
    conversation: Conversation | None = None
    trace: str = ""

    def read(self, place: str, value: Any) -> Record | Skipped:
        try:
            message = _message(value)
        except ValueError as error:
            return Skipped(place, str(error))
        source_id = self.identities.new(id(self), message)
        if self.conversation is None:
            self.conversation = Conversation(source_id, source=OpenAI.name)
        if message.role == "user" or not self.trace:
            self.trace = str(uuid.uuid5(uuid.NAMESPACE_OID, source_id))
        return Record(
            replace(
                message,
                trace_id=self.trace,
                source=OpenAI.name,
                source_id=source_id,
                conversation_id=self.conversation.id,
            ),
            conversation=self.conversation,
        )


def _message(value: Any) -> Message:
    if not isinstance(value, dict):
        raise ValueError("not a message")
    role = _ROLES.get(str(value.get("role")))
    if role is None:
        raise ValueError("unknown role")
    calls = value.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(each, dict) for each in calls):
        raise ValueError("tool_calls is not a list of calls")
    content = _text(value.get("content"))
    if not content.strip() and not calls and role != "tool":
        raise ValueError("empty")
    name, call_id = value.get("name"), value.get("tool_call_id")
    return Message(
        role,
        content,
        name=name if isinstance(name, str) else None,
        tool_calls=tuple(call_from_dict(each) for each in calls),
        tool_call_id=call_id if isinstance(call_id, str) else None,
    )


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ValueError("content is neither a text nor a list of parts")
    return "\n".join(_part(part) for part in content)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        text = part.get("text")
        if isinstance(text, str):
            return text
        kind = str(part.get("type", "part")).removeprefix("input_").removesuffix("_url")
        return f"[{kind}]"
    return json.dumps(part)
