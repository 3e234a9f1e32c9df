"""Import Claude.ai's data export: conversations as lists of messages with content blocks."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from reservoir_cli.messages import Conversation, Message
from reservoir_cli.transfer.importers import content_blocks
from reservoir_cli.transfer.importers.base import Record, Skipped, has_key, is_json
from reservoir_cli.transfer.importers.coerce import moment, obj, objects, text, with_neighbours
from reservoir_cli.transfer.importers.content_blocks import file_marker
from reservoir_cli.transfer.importers.conversation_identity import SourceIds, Thread
from reservoir_cli.transfer.importers.input_files import File
from reservoir_cli.transfer.importers.json_stream import read_each

_ROLES = {"human": "user", "assistant": "assistant"}


class Claude:
    """Reads ``conversations.json``."""

    name = "claude"
    instance = "claude"

    def detect(self, head: str) -> bool:
        """Recognise a conversation that lists its chat messages."""
        return is_json(head) and has_key(head, "chat_messages")

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield the messages of all conversations, in the order of the file."""
        return read_each(file, partial(_conversation, SourceIds()))


def _conversation(
    identities: SourceIds, place: str, value: dict[str, Any]
) -> Iterator[Record | Skipped]:
    listed = value.get("chat_messages")
    if not isinstance(listed, list):
        yield Skipped(place, "no list of messages")
        return
    identity = text(value.get("uuid"))
    title, model = text(value.get("name")), text(value.get("model"))
    known = Conversation(identity, title, Claude.name, model) if identity else None
    thread = Thread(Claude.name, known)
    identities.follow(id(thread), identity or "")
    said = [moment(obj(each).get("created_at")) for each in listed]
    times = with_neighbours(said, moment(value.get("created_at")))
    for number, (each, created_at) in enumerate(zip(listed, times, strict=True), 1):
        if each is None:
            continue
        where = f"{place}, message {number}"
        try:
            made = _messages(each, created_at)
        except ValueError as error:
            yield Skipped(where, str(error))
            continue
        own = text(each.get("uuid"))
        for piece, message in enumerate(made, 1):
            numbered = own if piece == 1 else f"{own}#{piece}"
            yield thread.record(message, (own and numbered) or identities.new(id(thread), message))


def _messages(value: Any, created_at: datetime | None) -> list[Message]:
    if not isinstance(value, dict):
        raise ValueError("not a message")
    role = _ROLES.get(str(value.get("sender")))
    if role is None:
        raise ValueError("unknown sender")
    content = value.get("content")
    if not isinstance(content, list):
        content = []
    made = content_blocks.messages(role, content, created_at, text(value.get("uuid")) or "")
    spoken = [at for at, each in enumerate(made) if each.role == role and each.content.strip()]
    whole = text(value.get("text"))
    if not spoken and whole:
        made.append(Message(role, whole, created_at))
        spoken = [len(made) - 1]
    attached = _attached(value)
    if attached and spoken:
        first = made[spoken[0]]
        made[spoken[0]] = replace(first, content="\n".join([*attached, first.content]))
    elif attached:
        made.insert(0, Message(role, "\n".join(attached), created_at))
    return made


def _attached(value: dict[str, Any]) -> list[str]:
    """Return markers of attached files, each followed by the file's extracted text, if any."""
    found = []
    for each in objects(value.get("attachments")):
        found.append(file_marker(each.get("file_name")))
        found += filter(None, [text(each.get("extracted_content"))])
    return found + [file_marker(each.get("file_name")) for each in objects(value.get("files"))]
