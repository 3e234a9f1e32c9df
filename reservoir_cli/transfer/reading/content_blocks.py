"""Convert the content of a message, a text or a list of blocks, into messages.

Results and thinking become messages of their own, files a short marker such as ``[image]``.
Thinking is named ``thinking`` and has the role system, which no context has, after its reply.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reservoir_cli.messages import THINKING, Message, ToolCall
from reservoir_cli.transfer.reading.foreign_values import (
    call,
    joined_texts,
    obj,
    objects,
    require_list,
    text,
)

_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".heic", ".bmp", ".svg")
_MEDIA = ("image", "audio", "video")
_FILES = ("file", "document", "container_upload")
#: Of items of OpenAI's Responses, the name of the tool and the key of the arguments, by the kind of
#: a call; the results of calls; and all items that are a message of their own.
_CALLS = {
    "function_call": (None, "arguments"),
    "custom_tool_call": (None, "input"),
    "local_shell_call": ("local_shell", "action"),
    "web_search_call": ("web_search", "action"),
    "tool_search_call": ("tool_search", "arguments"),
}
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
ITEMS = (*_CALLS, *_OUTPUTS, "reasoning")
#: Two more characters enclose the cited words.
_MARK = re.compile(
    "(?P<blanks>[ \t]{0,3})\ue200(?P<kind>[^\ue200-\ue202]*+)"
    "(?:\ue202(?P<fields>[^\ue200\ue201]*+))?\ue201|[\ue203\ue204]"
)


def content_text(content: Any) -> str:
    """Return a content as one text; raise ValueError unless it is a text or list."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = require_list(content, "content is neither a text nor a list of parts")
    return "\n".join(part_text(part) for part in parts if part is not None)


def block_list(content: Any) -> list[Any]:
    """Return a text or list as a list of blocks; raise ValueError for anything else."""
    if isinstance(content, str):
        return [content]
    return require_list(content, "content is neither a text nor a list of blocks")


def part_text(part: Any) -> str:
    """Return the text of a content block, or a marker of its type."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return "[part]"
    content = part.get("text")
    if isinstance(content, str):
        return content
    kind = text(part.get("type")) or text(part.get("content_type")) or "part"
    kind = kind.removeprefix("input_").removesuffix("_url").removesuffix("_asset_pointer")
    if kind in _FILES:
        return file_marker(_file_name(part))
    return f"[{_shorten(kind)}]"


def file_marker(name: Any) -> str:
    """Return ``[image]``, ``[file NAME]``, or ``[file]`` without a name."""
    file_name = text(name)
    if file_name is None:
        return "[file]"
    return "[image]" if file_name.lower().endswith(_IMAGES) else f"[file {_shorten(file_name)}]"


def tool_use(identity: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """Return the block of a tool call."""
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments}


def call_block(call: dict[str, Any]) -> dict[str, Any]:
    """Return the block of a call in the shape of OpenAI's API, or with its function's fields."""
    function = obj(call.get("function")) or call
    return tool_use(text(call.get("id")), function.get("name"), function.get("arguments"))


def tool_result(identity: Any, content: Any) -> dict[str, Any]:
    """Return the block of the result of a tool call with this id."""
    return {"type": "tool_result", "tool_use_id": identity, "content": content}


def file_block(mime_type: Any, name: Any = None) -> dict[str, Any]:
    """Return the block of an attached file, whose content is not imported."""
    kind = (text(mime_type) or "").split("/")[0]
    return {"type": kind if kind in _MEDIA else "file", "title": name}


def item_message(item: dict[str, Any], created_at: datetime | None = None) -> Message | None:
    """Return the message of one of ``ITEMS``, or raise ValueError; ``None`` for other items."""
    kind = str(item.get("type"))
    if kind in _CALLS:
        name, key = _CALLS[kind]
        identity = item.get("call_id") or item.get("id")
        made = call(identity, name or item.get("name"), item.get(key))
        return Message("assistant", "", created_at, tool_calls=(made,))
    if kind in _OUTPUTS:
        if "tools" in item:
            content = json.dumps(item["tools"], ensure_ascii=False)
        else:
            output = item.get("output")
            content = content_text(output.get("content") if isinstance(output, dict) else output)
        return Message("tool", content, created_at, tool_call_id=text(item.get("call_id")))
    if kind != "reasoning":
        return None
    # The rest of the thinking is encrypted.
    thinking = joined_texts(objects(item.get("content")) or item.get("summary"))
    return thought(thinking, created_at) if thinking else None


def thought(content: str, created_at: datetime | None = None) -> Message:
    """Return the message of a model's thinking."""
    return Message("system", content, created_at, name=THINKING)


def messages(
    role: str, content: Any, created_at: datetime | None, id_prefix: str = ""
) -> list[Message]:
    """Return the messages in the blocks of one author; ValueError if a block cannot be read.

    :param id_prefix: of the numbered ids for tool calls without one.
    """
    reader = _BlockReader(role, created_at, id_prefix)
    for block in block_list([] if content is None else content):
        if block is not None:
            reader.read(block)
    reader.flush()
    if reader.nameless and not reader.messages:
        raise ValueError("a tool call without a name")
    return reader.messages


@dataclass
class _BlockReader:
    role: str
    created_at: datetime | None
    id_prefix: str
    messages: list[Message] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    nameless: bool = False

    def read(self, block: Any) -> None:
        kind = text(obj(block).get("type")) or ""
        if kind in ("thinking", "redacted_thinking", "reasoning"):
            thinking = text(block.get("thinking")) or text(block.get("text"))
            self.thoughts += [thinking] if thinking else []
        elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            if text(block.get("name")) is None:
                self.nameless = True
                return
            identity = block.get("id") or self._next_id()
            tool_call = call(identity, block.get("name"), block.get("input"))
            self.calls.append(tool_call)
            self.unanswered.append(tool_call.id)
        elif kind.endswith("tool_result"):
            self._add_result(block)
        else:
            self.texts.append(part_text(block))

    def _add_result(self, block: dict[str, Any]) -> None:
        self.flush()
        call_id = text(block.get("tool_use_id")) or next(iter(self.unanswered), None)
        if call_id in self.unanswered:
            self.unanswered.remove(call_id)
        content = block.get("content")
        if isinstance(content, dict):
            content = [content]
        self.messages.append(
            Message("tool", content_text(content), self.created_at, tool_call_id=call_id)
        )

    def _next_id(self) -> str:
        count = len(self.messages) + len(self.calls) + 1
        return f"{self.id_prefix}/{count}" if self.id_prefix else ""

    def flush(self) -> None:
        content = "\n".join(self.texts)
        if content.strip() or self.calls:
            calls = tuple(self.calls)
            self.messages.append(Message(self.role, content, self.created_at, tool_calls=calls))
        if self.thoughts:
            self.messages.append(thought("\n".join(self.thoughts), self.created_at))
        self.texts, self.thoughts, self.calls = [], [], []


def _file_name(part: dict[str, Any]) -> Any:
    inner = obj(part.get("file"))
    for name in (part.get("title"), part.get("filename"), part.get("name"), inner.get("filename")):
        if text(name):
            return name
    return None


def _shorten(name: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in name).split())[:100]


def remove_marks(text: str) -> str:
    """Return a text without the citation marks of OpenAI's applications, but with their names.

    A mark is delimited by private-use characters and holds its kind and fields.
    """
    return _MARK.sub(_visible_text, text) if "\ue200" in text else text


def _visible_text(mark: re.Match[str]) -> str:
    if mark["kind"] not in ("entity", "url"):
        return ""
    words = (mark["fields"] or "").partition("\ue202")[0]
    if words.startswith("["):  # the kind of an entity, and its name
        with suppress(ValueError, RecursionError, LookupError):
            words = json.loads(words)[1]
    return f"{mark['blanks']}{words}" if isinstance(words, str) else ""


# A regular expression such as BEGIN.*?END looks for the end again from each beginning.


def texts_between(text: str, begin: str, end: str) -> Iterator[str]:
    """Yield what is between each pair of marks, without blanks around it."""
    for start, stop in _spans(text, begin, end):
        yield text[start + len(begin) : stop - len(end)].strip()


def remove_between(text: str, begin: str, end: str) -> str:
    """Return a text without each pair of marks and what is between them."""
    parts, position = list[str](), 0
    for start, stop in _spans(text, begin, end):
        parts.append(text[position:start])
        position = stop
    return "".join(parts) + text[position:]


def _spans(text: str, begin: str, end: str) -> Iterator[tuple[int, int]]:
    start = text.find(begin)
    while start >= 0 and (close := text.find(end, start + len(begin))) >= 0:
        yield start, close + len(end)
        start = text.find(begin, close + len(end))
