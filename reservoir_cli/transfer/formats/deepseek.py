"""Import DeepSeek's data export: trees of messages in fragments, of which one branch is read."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import obj, objects, text
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped, SourceIds, Thread
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.message_trees import find_branch
from reservoir_cli.transfer.reading.times import seconds
from reservoir_cli.transfer.reading.transcripts import Turn, read_conversation

_KINDS = {"REQUEST": "user", "RESPONSE": "assistant", "THINK": "assistant"}


class DeepSeek(Importer):
    """Reads ``conversations.json``."""

    name = "deepseek"
    title = "DeepSeek"
    instance = "deepseek"

    def detect(self, head: Head) -> bool:
        return head.has_all("mapping", "inserted_at", depth=1)

    def read(self, file: File) -> Iterator[Record | Skipped]:
        return read_entries(file, partial(_read_conversation, SourceIds()))


def _read_conversation(
    identities: SourceIds, place: str, value: dict[str, Any]
) -> Iterator[Record | Skipped]:
    mapping = value.get("mapping")
    if not isinstance(mapping, dict):
        raise ValueError("no mapping of messages")
    identity, title = value.get("id"), value.get("title")
    thread = Thread(DeepSeek.name, identity, title=title, identities=identities)
    current = value.get("current_message_id")
    current = str(current) if isinstance(current, int) else current
    branch = find_branch(mapping, current, "parent", _time, "children", _has_message)
    turns = [
        (number, _turn(thread.conversation.id, node))
        for number, node in enumerate(branch, 1)
        if not isinstance(node, dict) or node.get("message") is not None
    ]
    yield from read_conversation(thread, place, turns)


def _has_message(node: dict[str, Any]) -> bool:
    return isinstance(node.get("message"), dict)


def _time(node: dict[str, Any]) -> float:
    return seconds(obj(node.get("message")).get("inserted_at"))


def _turn(conversation: str, node: Any) -> Turn | None:
    message = obj(node).get("message")
    if not isinstance(message, dict):
        return None
    number = text(str(node.get("id"))) if isinstance(node.get("id"), int | str) else None
    identity = f"{conversation}:{number}" if conversation and number else None
    fragments = objects(message.get("fragments"))
    kinds = [_KINDS[kind] for item in fragments if (kind := str(item.get("type"))) in _KINDS]
    role = kinds[0] if kinds else str(message.get("role") or "assistant").lower()
    files = message.get("files")
    files = map(obj, files) if isinstance(files, list) else ()
    names = [file.get("file_name") or file.get("name") for file in files]
    blocks: list[Any] = [{"type": "file", "title": name} for name in names]
    for fragment in fragments:
        is_thinking = fragment.get("type") == "THINK"
        if str(fragment.get("type")) in _KINDS:
            words = text(fragment.get("content")) or ""
            blocks.append({"type": "thinking", "thinking": words} if is_thinking else words)
    if not fragments:  # of an older export
        thinking = {"type": "thinking", "thinking": message.get("reasoning_content")}
        blocks += [text(message.get("content")) or "", thinking]
    return Turn(role, blocks, identity, message.get("inserted_at"), text(message.get("model")))
