"""Import the design chats of Claude.ai's data export: a file for each conversation."""

import re
from collections.abc import Callable, Container, Iterator
from datetime import datetime
from typing import Any

from reservoir_cli.messages import Conversation, Message
from reservoir_cli.transfer.importers import content_blocks
from reservoir_cli.transfer.importers.content_blocks import file_marker, tool_result, tool_use
from reservoir_cli.transfer.importers.conversation_identity import SourceIds, Thread, number_ids
from reservoir_cli.transfer.importers.foreign_values import obj, objects, text
from reservoir_cli.transfer.importers.importer import Record, Skipped, has_key
from reservoir_cli.transfer.importers.message_times import fill_gaps, moment

_ROLES = ("user", "assistant")
#: Kinds of messages that the application writes itself.
_ADDED = ("chat-summary", "question-record")
#: Types of attachments whose content the user did not write.
_FOREIGN = ("skill", "folder", "fig-file", "image")
#: Unlike in requests to models, the content of a message is an object.
_CONTENT = re.compile(r'"content"\s*:\s*\{')


def is_design_chat(head: str) -> bool:
    """Return whether a JSON text begins like a design chat."""
    names = ("uuid", "project", "messages")
    return all(has_key(head, name, depth=1) for name in names) and bool(_CONTENT.search(head))


def read_design_chat(
    identities: SourceIds, source: str, place: str, value: dict[str, Any]
) -> Iterator[Record | Skipped]:
    """Yield the messages of a design chat."""
    rows = value.get("messages")
    if not isinstance(rows, list):
        yield Skipped(place, "no list of messages")
        return
    identity, title = text(value.get("uuid")), text(value.get("title"))
    project = text(obj(value.get("project")).get("name"))
    about = Conversation(identity, title, source, project=project) if identity else None
    thread = Thread(source, about, identities=identities)
    yield from read_messages(thread, place, rows, value.get("created_at"), _messages)


def read_messages(
    thread: Thread,
    place: str,
    rows: list[Any],
    start: Any,
    convert: Callable[[Any, datetime | None], list[Message]],
    abandoned: Container[str | None] = (),
) -> Iterator[Record | Skipped]:
    """Yield the messages of a conversation.

    :param start: when the conversation began.
    :param convert: returns the messages of a row; raises ``ValueError`` if it cannot be read.
    :param abandoned: ids of rows to leave out.
    """
    times = fill_gaps([moment(obj(row).get("created_at")) for row in rows], moment(start))
    for number, (row, created_at) in enumerate(zip(rows, times, strict=True), 1):
        row_id = text(obj(row).get("uuid"))
        if row is None or row_id in abandoned:
            continue
        try:
            messages = convert(row, created_at)
        except ValueError as error:
            yield Skipped(f"{place}, message {number}", str(error))
            continue
        for source_id, message in number_ids(row_id, messages):
            yield thread.record(message, source_id)


def _messages(row: Any, created_at: datetime | None) -> list[Message]:
    """Return the messages of a row: a reply also holds what the user typed meanwhile."""
    content, role = obj(obj(row).get("content")), obj(row).get("role")
    if role not in _ROLES:
        raise ValueError("unknown role")
    if content.get("pill") is True or content.get("kind") in _ADDED:
        return []
    identity = text(row.get("uuid")) or ""
    messages: list[Message] = []
    blocks: list[Any] = []
    for block in _blocks(content):
        if obj(block).get("type") == "user_interjection":
            messages += content_blocks.messages(role, blocks, created_at, identity)
            typed = _typed(obj(block.get("message")) or {"content": block.get("message")})
            messages += content_blocks.messages("user", typed, created_at)
            blocks = []
        else:
            blocks += _convert(block)
    return messages + content_blocks.messages(role, blocks, created_at, identity)


def _blocks(content: dict[str, Any]) -> list[Any]:
    blocks = content.get("contentBlocks")
    return blocks if isinstance(blocks, list) and blocks else _typed(content)


def _typed(content: dict[str, Any]) -> list[Any]:
    """Return the texts of a message and its attachments."""
    texts = []
    for attachment in objects(content.get("attachments")):
        if attachment.get("hidden") is True:
            continue
        texts.append(file_marker(attachment.get("name")))
        if attachment.get("type") not in _FOREIGN:
            texts += filter(None, [text(attachment.get("content"))])
    words = content.get("content")
    if words is not None and not isinstance(words, str):
        raise ValueError("content is not a text")
    return [*texts, words] if words else texts


def _convert(block: Any) -> list[Any]:
    """Return a block as those of Anthropic's messages; none for errors."""
    call = obj(obj(block).get("toolCall"))
    match obj(block).get("type"):
        case "thinking":
            return [block | {"thinking": block.get("thinking") or block.get("text")}]
        case "tool_call":
            identity, output = call.get("id"), call.get("output")
            called = tool_use(identity, call.get("name"), call.get("input"))
            return [called, *([tool_result(identity, output)] if isinstance(output, str) else [])]
        case "error":
            return []
        case _:
            return [block]
