"""Import chats of Open WebUI from its database or its JSON export."""

import html
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from reservoir_cli.messages import Message
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.content_blocks import (
    content_text,
    file_marker,
    tool_result,
    tool_use,
)
from reservoir_cli.transfer.reading.decompressed_file import SQLITE, File, Head
from reservoir_cli.transfer.reading.foreign_databases import ToolDatabase, read_database
from reservoir_cli.transfer.reading.foreign_values import obj, objects, parse_json, text
from reservoir_cli.transfer.reading.importer import Importer, Place, Record, Skipped, Thread
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.message_trees import find_branch, time_at
from reservoir_cli.transfer.reading.platform_folders import tool_dir
from reservoir_cli.transfer.reading.times import fill_gaps, moment

_COLUMNS = {"chat": "id title chat created_at updated_at meta"}
_ROLES = ("user", "assistant", "system")
_UNTITLED = "New Chat"  #: The title of a chat without a title.
#: The beginning of thinking or a tool call within the text of a reply.
_DETAILS = re.compile(r'<details\s+type="(reasoning|tool_calls|code_interpreter)"([^>]*)>')
_END = "</details>"
_SUMMARY = re.compile(r"(?:(?<!\s)\s++)?<summary>[^<]*</summary>")
_ATTRIBUTE = re.compile(r'(?<!\w)(\w++)="([^"]*)"')
_QUOTE = re.compile(r"^> ?", re.M)


class OpenWebUI(Importer):
    """Reads ``webui.db`` and exports."""

    name = "open-webui"
    title = "Open WebUI"
    tables = (frozenset({"chat.chat", "auth", "user"}),)
    instance = "open-webui"

    def detect(self, head: Head) -> bool:
        return head.has("history") and head.has("childrenIds", "currentId", depth=5)

    def places(self) -> Iterator[Place]:
        yield Place(tool_dir("DATA_DIR", ".open-webui") / "webui.db", (".db",))

    def read(self, file: File) -> Iterator[Record | Skipped]:
        if file.head().startswith(SQLITE):
            return read_database(file, _COLUMNS, _read_chats)
        return read_entries(file, _read_chat)


def _read_chats(database: ToolDatabase) -> Iterator[Record | Skipped]:
    database.refuse_computed("not a database as Open WebUI writes it")
    for (number,) in database.connection.execute("SELECT rowid FROM chat ORDER BY created_at, id"):
        try:
            row = database.one("chat", "rowid", number)
        except ValueError as error:
            yield Skipped(f"chat {number}", str(error))
            continue
        if obj(parse_json(row.get("meta"))).get("internal") is not True:
            yield from _read_chat(f"chat {number}", row | {"chat": parse_json(row.get("chat"))})


def _read_chat(place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
    chat = value.get("chat") if isinstance(value.get("chat"), dict) else value
    branch = _branch(obj(chat))
    if branch is None:
        yield Skipped(place, "no history of messages")
        return
    title = text(value.get("title")) or obj(chat).get("title")
    title = None if title == _UNTITLED else title
    thread = Thread(OpenWebUI.name, value.get("id"), title=title, model=_model(branch))
    stated_times = [moment(obj(message).get("timestamp")) for message in branch]
    times = fill_gaps(stated_times, moment(value.get("created_at")))
    for number, (message, time) in enumerate(zip(branch, times, strict=True), 1):
        message_id = text(obj(message).get("id"))
        if message_id:
            thread.follow(message_id)
        read = partial(_messages, message, time)
        yield from thread.convert(f"{place}, message {number}", message_id, read)


def _branch(chat: dict[str, Any]) -> list[Any] | None:
    """Return the messages up to the current one; an older chat has only a list."""
    history = obj(chat.get("history"))
    nodes = history.get("messages")
    if isinstance(nodes, dict):
        current, time = history.get("currentId"), time_at("timestamp")
        return find_branch(nodes, current, "parentId", time, "childrenIds", _has_role)
    listed = chat.get("messages")
    return listed if isinstance(listed, list) else None


def _has_role(message: dict[str, Any]) -> bool:
    return message.get("role") in _ROLES


def _model(branch: Sequence[Any]) -> str | None:
    names = (text(obj(message).get("model")) for message in reversed(branch))
    return next(filter(None, names), None)


def _messages(value: Any, time: datetime | None) -> list[Message]:
    if not isinstance(value, dict):
        raise ValueError("not a message")
    role = value.get("role")
    if role not in _ROLES:
        raise ValueError("unknown role")
    message_id = text(value.get("id")) or ""
    output = objects(value.get("output"))
    if role == "assistant" and output:
        blocks = [part for item in output for part in _item_blocks(item)]
    else:
        content = content_text(value.get("content"))
        blocks = list(_reply_blocks(content)) if role == "assistant" else [content]
    files = [_marker(file) for file in objects(value.get("files"))]
    return content_blocks.messages(role, [*files, *blocks], time, message_id)


def _marker(file: dict[str, Any]) -> str:
    name = file.get("name") or obj(file.get("file")).get("filename")
    return "[image]" if file.get("type") == "image" else file_marker(name)


def _item_blocks(item: dict[str, Any]) -> Iterator[Any]:
    match item.get("type"):
        case "message":
            yield {"type": "text", "text": content_text(item.get("content"))}
        case "reasoning":
            thought = item.get("content") or item.get("summary")
            yield {"type": "thinking", "thinking": content_text(thought)}
        case "function_call":
            yield tool_use(item.get("call_id"), item.get("name"), item.get("arguments"))
        case "function_call_output":
            yield tool_result(item.get("call_id"), content_text(item.get("output")))


def _reply_blocks(content: str) -> Iterator[Any]:
    """Yield the blocks in the text of a reply: words, thinking, and calls with results."""
    position, last = 0, content.rfind(">") + 1
    while match := _DETAILS.search(content, position, last):
        end = content.find(_END, match.end())
        if end < 0:
            break
        if words := content[position : match.start()].strip():
            yield words
        inside = _SUMMARY.sub("", content[match.end() : end], count=1).strip()
        yield from _detail_blocks(match[1], dict(_ATTRIBUTE.findall(match[2])), inside)
        position = end + len(_END)
    if words := content[position:].strip():
        yield words


def _detail_blocks(kind: str, attributes: dict[str, str], inside: str) -> Iterator[Any]:
    if kind == "reasoning":
        yield {"type": "thinking", "thinking": _QUOTE.sub("", html.unescape(inside))}
        return
    if kind == "tool_calls":
        name = html.unescape(attributes.get("name", ""))
        yield tool_use(attributes.get("id"), name, _attribute_text(attributes.get("arguments")))
        # Newer versions write the result between the tags.
        result = attributes.get("result")
        result = html.unescape(inside) if result is None else _attribute_text(result)
    else:
        yield tool_use(attributes.get("id"), kind, inside)
        result = _attribute_text(attributes.get("output"))
    if result or attributes.get("done") == "true":
        yield tool_result(attributes.get("id"), result)


def _attribute_text(attribute: str | None) -> str:
    """Return the text of an attribute: HTML-escaped JSON, which may be a string with JSON."""
    unescaped = html.unescape(attribute or "")
    value = parse_json(unescaped)
    return value if isinstance(value, str) else unescaped
