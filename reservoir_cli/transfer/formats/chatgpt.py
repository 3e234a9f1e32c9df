"""Import ChatGPT's data export: trees of messages, of which the current branch is read."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from reservoir_cli.messages import THINKING, Message
from reservoir_cli.transfer.reading.content_blocks import (
    content_text,
    file_marker,
    remove_marks,
    thought,
)
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import (
    call,
    obj,
    objects,
    parse_object,
    require_object,
    text,
)
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped, SourceIds, Thread
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.message_trees import find_branch
from reservoir_cli.transfer.reading.times import fill_gaps, moment

_ROLES = {"developer": "system"} | {role: role for role in ("system", "user", "assistant", "tool")}
#: Types of content that the application adds itself.
_ADDED = ("reasoning_recap", "user_editable_context", "model_editable_context")
#: The beginning of the names of the tools that write into a document beside the conversation.
_CANVAS = "canmore."
#: The types of parts that hold a recording, which a transcription may stand for.
_RECORDINGS = ("audio_asset_pointer", "real_time_user_audio_video_asset_pointer")
Placed = tuple[int, dict[str, Any]]  #: A message, and its number in the branch.


class ChatGPT(Importer):
    """Reads ``conversations.json`` and its shards."""

    name = "chatgpt"
    title = "ChatGPT"
    instance = "chatgpt"

    def detect(self, head: Head) -> bool:
        return head.has("mapping", depth=1) and not head.has("inserted_at", depth=1)

    def read(self, file: File) -> Iterator[Record | Skipped]:
        return read_entries(file, partial(_read_conversation, SourceIds()))


def _read_conversation(
    identities: SourceIds, place: str, value: dict[str, Any]
) -> Iterator[Record | Skipped]:
    mapping = require_object(value.get("mapping"), "no mapping of messages")
    current = value.get("current_node")
    branch = find_branch(mapping, current, "parent", _time, "children", _is_displayed)
    messages: list[Placed] = []
    skipped: dict[int, str] = {}
    for number, node in enumerate(branch, 1):
        message = obj(node).get("message")
        if isinstance(message, dict):
            messages.append((number, message))
        elif message is not None or not isinstance(node, dict):
            skipped[number] = "not a message"
    identity = text(value.get("conversation_id")) or text(value.get("id"))
    title, model = value.get("title"), _model(value, messages)
    thread = Thread(ChatGPT.name, identity, title=title, model=model, identities=identities)
    times = [_moment(message) for _, message in messages]
    collected = _Branch(fill_gaps(times, _moment(value)))
    for index, (number, message) in enumerate(messages):
        try:
            collected.add(index, message)
        except ValueError as error:
            skipped[number] = str(error)
    for number, reason in sorted(skipped.items()):
        yield Skipped(f"{place}, message {number}", reason)
    for message_id, message in collected.all():
        yield thread.record(message, message_id)


def _moment(value: dict[str, Any]) -> datetime | None:
    """Return the time of a message or conversation; without one, that of its last change."""
    return moment(value.get("create_time")) or moment(value.get("update_time"))


def _time(node: dict[str, Any]) -> float:
    time = _moment(obj(node.get("message")))
    return time.timestamp() if time else 0.0


def _model(value: dict[str, Any], messages: Sequence[Placed]) -> str | None:
    for _, message in reversed(messages):
        if name := text(obj(message.get("metadata")).get("model_slug")):
            return name
    return text(value.get("default_model_slug"))


class _Branch:
    """Collects a branch's messages with their ids as they are stored: replies before thinking."""

    def __init__(self, times: Sequence[datetime | None]) -> None:
        self._times = times
        self._open_calls: dict[str, str] = {}
        self._messages: list[tuple[str | None, Message]] = []
        self._thinking: list[tuple[str | None, Message]] = []
        self._texts: set[str] = set()

    def add(self, index: int, value: dict[str, Any]) -> None:
        message, identity = self._message(index, value), text(value.get("id"))
        if message is not None:
            self._place(identity, message)
        report = remove_marks(_report(value))
        if report and report not in self._texts:
            reply = Message("assistant", report, self._times[index])
            self._place(identity and f"{identity}#report", reply)

    def _place(self, identity: str | None, message: Message) -> None:
        placed = (identity, message)
        self._texts.add(message.content)
        if message.name == THINKING:
            self._thinking.append(placed)
        elif message.role == "assistant":
            self._messages += [placed, *self._thinking]
            self._thinking = []
        else:
            self._messages.append(placed)

    def all(self) -> list[tuple[str | None, Message]]:
        return self._messages + self._thinking

    def _message(self, index: int, value: dict[str, Any]) -> Message | None:
        """Return a node's message; ``None`` if it is hidden, empty, or the application's own."""
        author, metadata = obj(value.get("author")), obj(value.get("metadata"))
        role = _ROLES.get(str(author.get("role")))
        if role is None:
            raise ValueError("unknown role")
        raw, time = value.get("content"), self._times[index]
        kind = text(obj(raw).get("content_type")) or "text"
        if _is_hidden(value, metadata) or kind in _ADDED:
            return None
        if kind == "thoughts":
            thinking = remove_marks(_thinking_text(obj(raw)))
            return thought(thinking, time) if thinking else None
        content = "\n".join([*_file_markers(metadata), *filter(str.strip, [_content_text(raw)])])
        if role == "assistant" and (tool := text(value.get("recipient"))) not in (None, "all"):
            return self._call(value, str(tool), content, time)
        if role == "tool":
            name = text(author.get("name"))
            call_id = self._close_call(name or "")
            return Message(role, content, time, name=name, tool_call_id=call_id)
        if role == "assistant":
            content = remove_marks(content)
        return Message(role, content, time) if content.strip() else None

    def _call(
        self, value: dict[str, Any], tool: str, arguments: str, created_at: datetime | None
    ) -> Message:
        identity = text(value.get("id")) or ""
        if identity:
            self._open_calls[tool] = identity
        written, arguments = _canvas(arguments) if tool.startswith(_CANVAS) else ("", arguments)
        made = call(identity, tool, arguments)
        return Message("assistant", written, created_at, tool_calls=(made,))

    def _close_call(self, name: str) -> str | None:
        """Return the id of the open call that a tool's name or family answers, and close it."""
        for tool in reversed(self._open_calls):
            if tool == name or tool.split(".")[0] == name.split(".")[0]:
                return self._open_calls.pop(tool)
        return None


def _report(value: dict[str, Any]) -> str:
    """Return the report of a deep research, which is displayed in place of a tool's message."""
    state = obj(obj(value.get("metadata")).get("chatgpt_sdk")).get("widget_state")
    report = obj((parse_object(state) or obj(state)).get("report_message"))
    return _content_text(report.get("content")).strip()


def _canvas(arguments: str) -> tuple[str, str]:
    """Return what a call writes into a document, as text, and the rest of its arguments."""
    value = parse_object(arguments)
    if value is None:
        return "", arguments
    written = [value.pop("content")] if text(value.get("content")) else []
    for key, member in (("updates", "replacement"), ("comments", "comment")):
        written += [each.pop(member) for each in objects(value.get(key)) if text(each.get(member))]
    return "\n\n".join(written), json.dumps(value, ensure_ascii=False)


def _is_hidden(value: dict[str, Any], metadata: dict[str, Any]) -> bool:
    weight = value.get("weight")
    weightless = isinstance(weight, int | float) and weight == 0
    return weightless or metadata.get("is_visually_hidden_from_conversation") is True


def _is_displayed(node: dict[str, Any]) -> bool:
    value = obj(node.get("message"))
    if obj(value.get("author")).get("role") not in ("user", "assistant"):
        return False
    try:
        content = _content_text(value.get("content"))
    except ValueError:
        return False
    return bool(content.strip()) and not _is_hidden(value, obj(value.get("metadata")))


def _content_text(content: Any) -> str:
    if not isinstance(content, dict):
        return content_text(content)
    if isinstance(content.get("parts"), list):
        return content_text(_drop_transcribed_audio(content["parts"]))
    for key in ("text", "result", "content", "output_str", "summary"):
        if text(content.get(key)):
            return str(content[key])
    return ""


def _drop_transcribed_audio(parts: list[Any]) -> list[Any]:
    kinds = [text(part.get("content_type")) if isinstance(part, dict) else None for part in parts]
    if "audio_transcription" not in kinds:
        return parts
    return [part for part, kind in zip(parts, kinds, strict=True) if kind not in _RECORDINGS]


def _thinking_text(content: dict[str, Any]) -> str:
    parts = objects(content.get("thoughts"))
    texts = (text(part.get("content")) or text(part.get("summary")) for part in parts)
    return "\n".join(filter(None, texts))


def _file_markers(metadata: dict[str, Any]) -> list[str]:
    """Return markers of attached files; images are already among the parts."""
    attachments = objects(metadata.get("attachments"))
    markers = [file_marker(attachment.get("name")) for attachment in attachments]
    return [marker for marker in markers if marker != "[image]"]
