"""ChatGPT's data export: conversations as trees, of which the branch last seen is read."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from reservoir_cli.messages import Conversation, Message
from reservoir_cli.transfer.importers.base import Record, Skipped, has_key, is_json
from reservoir_cli.transfer.importers.citation_marks import without_marks
from reservoir_cli.transfer.importers.coerce import (
    call,
    moment,
    obj,
    objects,
    parsed_object,
    text,
    with_neighbours,
)
from reservoir_cli.transfer.importers.content_blocks import (
    THINKING,
    content_text,
    file_marker,
    thought,
)
from reservoir_cli.transfer.importers.conversation_identity import SourceIds, Thread
from reservoir_cli.transfer.importers.input_files import File
from reservoir_cli.transfer.importers.json_stream import read_each
from reservoir_cli.transfer.importers.message_trees import branch_to

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
#: What the application adds and nobody said.
_ADDED = ("reasoning_recap", "user_editable_context", "model_editable_context")
#: The beginning of the names of the tools that write into a document beside the conversation.
_CANVAS = "canmore."
#: A message, and its number in the branch.
Placed = tuple[int, dict[str, Any]]


class ChatGPT:
    """Reads ``conversations.json`` and its shards."""

    name = "chatgpt"
    instance = "chatgpt"

    def detect(self, head: str) -> bool:
        """Recognise a conversation that keeps its messages in a mapping."""
        return is_json(head) and has_key(head, "mapping")

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Conversation by conversation, each from its first message to its current one."""
        return read_each(file, partial(_conversation, SourceIds()))


def _conversation(
    identities: SourceIds, place: str, value: dict[str, Any]
) -> Iterator[Record | Skipped]:
    mapping = value.get("mapping")
    if not isinstance(mapping, dict):
        yield Skipped(place, "no mapping of messages")
        return
    branch = branch_to(mapping, value.get("current_node"), "parent", _time)
    told: list[Placed] = []
    bad: dict[int, str] = {}
    for number, node in enumerate(branch, 1):
        message = node.get("message")
        if isinstance(message, dict):
            told.append((number, message))
        elif message is not None:
            bad[number] = "not a message"
    identity = text(value.get("conversation_id")) or text(value.get("id"))
    known = Conversation(identity, text(value.get("title")), ChatGPT.name) if identity else None
    if known:
        known = replace(known, model=_model(value, told))
    thread = Thread(ChatGPT.name, known)
    identities.follow(id(thread), identity or "")
    times = [moment(message.get("create_time")) for _, message in told]
    read = _Branch(with_neighbours(times, moment(value.get("create_time"))))
    for at, (number, message) in enumerate(told):
        try:
            read.take(at, message)
        except ValueError as error:
            bad[number] = str(error)
    for number, reason in sorted(bad.items()):
        yield Skipped(f"{place}, message {number}", reason)
    for own, each in read.all():
        yield thread.record(each, own or identities.new(id(thread), each))


def _time(node: dict[str, Any]) -> float:
    found = moment(obj(node.get("message")).get("create_time"))
    return found.timestamp() if found else 0.0


def _model(value: dict[str, Any], told: Sequence[Placed]) -> str | None:
    """Return the model that spoke last."""
    for _, message in reversed(told):
        if name := text(obj(message.get("metadata")).get("model_slug")):
            return name
    return text(value.get("default_model_slug"))


class _Branch:
    """The messages of a branch with their ids, in the order in which they are stored.

    Thinking stands before the reply it leads to, and is stored behind it; a tool result looks
    for the call it answers.
    """

    def __init__(self, times: Sequence[datetime | None]) -> None:
        self._times = times
        self._open: dict[str, str] = {}
        self._said: list[tuple[str | None, Message]] = []
        self._thoughts: list[tuple[str | None, Message]] = []

    def take(self, at: int, value: dict[str, Any]) -> None:
        """Read the message of a node.

        :raises ValueError: it cannot be read.
        """
        message = self._message(at, value)
        if message is None:
            return
        placed = (text(value.get("id")), message)
        if message.name == THINKING:
            self._thoughts.append(placed)
        elif message.role == "assistant":
            self._said += [placed, *self._thoughts]
            self._thoughts = []
        else:
            self._said.append(placed)

    def all(self) -> list[tuple[str | None, Message]]:
        """Everything that was read."""
        return self._said + self._thoughts

    def _message(self, at: int, value: dict[str, Any]) -> Message | None:
        """Return what a node says; nothing if it is hidden, empty, or made by the application."""
        author, metadata = obj(value.get("author")), obj(value.get("metadata"))
        role = _ROLES.get(str(author.get("role")))
        if role is None:
            raise ValueError("unknown role")
        content = value.get("content")
        kind = text(obj(content).get("content_type")) or "text"
        if _hidden(value, metadata) or kind in _ADDED:
            return None
        if kind == "thoughts":
            said = without_marks(_thoughts(obj(content)))
            return thought(said, self._times[at]) if said else None
        said = "\n".join([*_files(metadata), *filter(str.strip, [_said(content)])])
        if role == "assistant" and (tool := text(value.get("recipient"))) not in (None, "all"):
            return self._call(value, str(tool), said, self._times[at])
        if role == "tool":
            name = text(author.get("name"))
            answered = self._answered(name or "")
            return Message(role, said, self._times[at], name=name, tool_call_id=answered)
        if role == "assistant":
            said = without_marks(said)
        return Message(role, said, self._times[at]) if said.strip() else None

    def _call(
        self, value: dict[str, Any], tool: str, said: str, created_at: datetime | None
    ) -> Message:
        identity = text(value.get("id")) or ""
        if identity:
            self._open[tool] = identity
        written, arguments = _canvas(said) if tool.startswith(_CANVAS) else ("", said)
        return Message(
            "assistant", written, created_at, tool_calls=(call(identity, tool, arguments),)
        )

    def _answered(self, name: str) -> str | None:
        """Return the call that a tool answers, by its name or family; each call only once."""
        for each in reversed(self._open):
            if each == name or each.split(".")[0] == name.split(".")[0]:
                return self._open.pop(each)
        return None


def _canvas(arguments: str) -> tuple[str, str]:
    """Return what a call writes into a document, as text, and the rest of its arguments."""
    value = parsed_object(arguments)
    if value is None:
        return "", arguments
    written = [value.pop("content")] if text(value.get("content")) else []
    for key, member in (("updates", "replacement"), ("comments", "comment")):
        written += [each.pop(member) for each in objects(value.get(key)) if text(each.get(member))]
    return "\n\n".join(written), json.dumps(value, ensure_ascii=False)


def _hidden(value: dict[str, Any], metadata: dict[str, Any]) -> bool:
    weight = value.get("weight")
    weightless = isinstance(weight, int | float) and weight == 0
    return weightless or metadata.get("is_visually_hidden_from_conversation") is True


def _said(content: Any) -> str:
    """Return the text of a content of any type, as far as it has one."""
    if not isinstance(content, dict):
        return content_text(content)
    if isinstance(content.get("parts"), list):
        return content_text(content["parts"])
    for key in ("text", "result", "content"):
        if text(content.get(key)):
            return str(content[key])
    return ""


def _thoughts(content: dict[str, Any]) -> str:
    listed = objects(content.get("thoughts"))
    said = (text(each.get("content")) or text(each.get("summary")) for each in listed)
    return "\n".join(filter(None, said))


def _files(metadata: dict[str, Any]) -> list[str]:
    """Markers of attached files; pictures stand among the parts already."""
    marked = [file_marker(each.get("name")) for each in objects(metadata.get("attachments"))]
    return [each for each in marked if each != "[image]"]
