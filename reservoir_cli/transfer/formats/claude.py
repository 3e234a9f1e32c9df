"""Import Claude.ai's data export: conversations as lists of messages with content blocks."""

import re
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from reservoir_cli.messages import Message
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.content_blocks import file_marker, tool_result, tool_use
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import obj, objects, text
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped, SourceIds, Thread
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.message_trees import find_branch, time_at
from reservoir_cli.transfer.reading.times import fill_gaps, moment

_ROLES = {"human": "user", "assistant": "assistant"}
#: Types of blocks that the application adds itself, and does not display.
_ADDED = ("token_budget", "flag", "injected_prompt_block")
#: The tools that write a document, and their parameters with its text.
_DOCUMENTS = {
    "artifacts": ("content", "new_str"),
    "create_file": ("file_text",),
    "str_replace": ("new_str",),
}
_DRAFTS = "message_compose_v1"  #: The tool that drafts a message.
#: What stands for a call in the text of a message.
_PLACEHOLDER = re.compile(
    r"\n?```\s*This block is not supported on your current device yet\.\s*```\n?"
)
#: The key of a message with its parent's id. All versions of the first one have a common parent.
_PARENT = "parent_message_uuid"

# Of design chats, which have a file each: roles, kinds of messages that the application writes
# itself, and types of attachments whose content the user did not write.
_DESIGN_ROLES = ("user", "assistant")
_DESIGN_ADDED = ("chat-summary", "question-record")
_FOREIGN = ("skill", "folder", "fig-file", "image")
#: Unlike in requests to models, the content of a message in a design chat is an object.
_OBJECT_CONTENT = re.compile(r'"content"\s*:\s*\{')


class Claude(Importer):
    """Reads ``conversations.json`` and its parts, and the files of ``design_chats``."""

    name = "claude"
    title = "Claude"
    instance = "claude"

    def detect(self, head: Head) -> bool:
        is_design_chat = head.has_all("uuid", "project", "messages", depth=1)
        is_design_chat = is_design_chat and bool(_OBJECT_CONTENT.search(head.text))
        return head.has("chat_messages", depth=1) or is_design_chat

    def read(self, file: File) -> Iterator[Record | Skipped]:
        return read_entries(file, partial(_read_conversation, SourceIds()))


def _read_conversation(
    identities: SourceIds, place: str, value: dict[str, Any]
) -> Iterator[Record | Skipped]:
    if value.get("chat_messages") is None and "messages" in value:
        yield from _read_design_chat(identities, place, value)
        return
    entries = value.get("chat_messages")
    if not isinstance(entries, list):
        raise ValueError("no list of messages")
    identity, title, model = (value.get(key) for key in ("uuid", "name", "model"))
    thread = Thread(Claude.name, identity, title=title, model=model, identities=identities)
    abandoned = _abandoned_ids(entries, value.get("current_leaf_message_uuid"))
    start = value.get("created_at")
    yield from _read_messages(thread, place, entries, start, _messages, abandoned)


def _read_messages(
    thread: Thread,
    place: str,
    rows: list[Any],
    start: Any,
    convert: Callable[[Any, datetime | None], list[Message]],
    abandoned: Container[str | None] = (),
) -> Iterator[Record | Skipped]:
    """Yield the messages of rows; ``convert`` raises ``ValueError`` for one that cannot be read."""
    times = fill_gaps([moment(obj(row).get("created_at")) for row in rows], moment(start))
    for number, (row, created_at) in enumerate(zip(rows, times, strict=True), 1):
        row_id = text(obj(row).get("uuid"))
        if row is None or row_id in abandoned:
            continue
        read = partial(convert, row, created_at)
        yield from thread.convert(f"{place}, message {number}", row_id, read)


def _abandoned_ids(entries: list[Any], current: Any) -> set[str]:
    """Return the ids of the messages that the user edited or had written again, and those below.

    Messages whose parents are missing or unknown are on no other branch.

    :param current: the last message of the current branch; without one, that of the newest leaf.
    """
    nodes = {identity: entry for entry in objects(entries) if (identity := text(entry.get("uuid")))}
    children: dict[str, list[str]] = {}
    for identity, node in nodes.items():
        if parent := text(node.get(_PARENT)):
            children.setdefault(parent, []).append(identity)
    chain = find_branch(nodes, current, _PARENT, time_at("created_at"), has_message=_has_content)
    branch = {text(node.get("uuid")): node for node in chain}
    parents = filter(None, (text(node.get(_PARENT)) for node in branch.values()))
    versions = [identity for parent in parents for identity in children[parent]]
    waiting = [identity for identity in versions if identity not in branch]
    abandoned: set[str] = set()
    while waiting:
        identity = waiting.pop()
        if identity not in abandoned:
            abandoned.add(identity)
            waiting += children.get(identity, ())
    return abandoned


def _has_content(node: dict[str, Any]) -> bool:
    has_text = bool(node.get("content") or text(node.get("text")))
    return has_text or bool(node.get("attachments") or node.get("files"))


def _messages(value: Any, created_at: datetime | None) -> list[Message]:
    if not isinstance(value, dict):
        raise ValueError("not a message")
    role = _ROLES.get(str(value.get("sender")))
    if role is None:
        raise ValueError("unknown sender")
    content = value.get("content")
    if not isinstance(content, list):
        content = []
    content = [part for block in content for part in _parts(block)]
    messages = content_blocks.messages(role, content, created_at, text(value.get("uuid")) or "")
    texts = [
        index
        for index, message in enumerate(messages)
        if message.role == role and message.content.strip()
    ]
    full_text = text(_PLACEHOLDER.sub("", text(value.get("text")) or ""))
    if not texts and full_text:
        messages.append(Message(role, full_text, created_at))
        texts = [len(messages) - 1]
    attachments = _attachment_texts(value)
    if attachments and texts:
        first = messages[texts[0]]
        messages[texts[0]] = replace(first, content="\n".join([*attachments, first.content]))
    elif attachments:
        messages.insert(0, Message(role, "\n".join(attachments), created_at))
    return messages


def _parts(block: Any) -> list[Any]:
    """Return a block; what it writes into a document, as text, and the rest of it; or nothing."""
    kind, arguments = obj(block).get("type"), obj(obj(block).get("input"))
    if kind in _ADDED:
        return []
    if kind == "tool_use" and block.get("name") == _DRAFTS:
        rest = {name: value for name, value in arguments.items() if name != "variants"}
        return [*_drafts(arguments), block | {"input": rest}]
    names = _DOCUMENTS.get(str(block.get("name")), ()) if kind == "tool_use" else ()
    written = [name for name in names if text(arguments.get(name))]
    if not written:
        return [block]
    rest = {name: value for name, value in arguments.items() if name not in written}
    return [*(arguments[name] for name in written), block | {"input": rest}]


def _drafts(arguments: dict[str, Any]) -> list[str]:
    drafts = objects(arguments.get("variants"))
    parts = ([text(draft.get("subject")), text(draft.get("body"))] for draft in drafts)
    return ["\n".join(filter(None, part)) for part in parts]


def _attachment_texts(value: dict[str, Any]) -> list[str]:
    """Return markers of attached files, each followed by the file's extracted text, if any."""
    texts = []
    for attachment in objects(value.get("attachments")):
        texts.append(file_marker(attachment.get("file_name")))
        texts += filter(None, [text(attachment.get("extracted_content"))])
    # A file with extracted text is in both lists.
    markers = [file_marker(file.get("file_name")) for file in objects(value.get("files"))]
    return texts + [marker for marker in markers if marker == "[image]" or marker not in texts]


def _read_design_chat(
    identities: SourceIds, place: str, value: dict[str, Any]
) -> Iterator[Record | Skipped]:
    rows = value.get("messages")
    if not isinstance(rows, list):
        raise ValueError("no list of messages")
    identity, title = value.get("uuid"), value.get("title")
    project = obj(value.get("project")).get("name")
    thread = Thread(Claude.name, identity, title=title, project=project, identities=identities)
    yield from _read_messages(thread, place, rows, value.get("created_at"), _design_messages)


def _design_messages(row: Any, created_at: datetime | None) -> list[Message]:
    """Return the messages of a row: a reply also holds what the user typed meanwhile."""
    content, role = obj(obj(row).get("content")), obj(row).get("role")
    if role not in _DESIGN_ROLES:
        raise ValueError("unknown role")
    if content.get("pill") is True or content.get("kind") in _DESIGN_ADDED:
        return []
    identity = text(row.get("uuid")) or ""
    messages: list[Message] = []
    blocks: list[Any] = []
    listed = content.get("contentBlocks")
    for block in listed if isinstance(listed, list) and listed else _typed(content):
        if obj(block).get("type") == "user_interjection":
            messages += content_blocks.messages(role, blocks, created_at, identity)
            typed = _typed(obj(block.get("message")) or {"content": block.get("message")})
            messages += content_blocks.messages("user", typed, created_at)
            blocks = []
        else:
            blocks += _convert(block)
    return messages + content_blocks.messages(role, blocks, created_at, identity)


def _typed(content: dict[str, Any]) -> list[Any]:
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
