"""Anthropic messages: a request body, one a line, or bare messages of blocks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reservoir_cli.importers import File, Record, Skipped, blocks, has_key, is_json
from reservoir_cli.importers.blocks import content_text
from reservoir_cli.importers.jsontext import entries
from reservoir_cli.importers.threads import SourceIds, Thread
from reservoir_cli.messages import Message

_BLOCK = re.compile(r'"type"\s*:\s*"(?:tool_use|tool_result|thinking|redacted_thinking)"')


class Anthropic:
    """Reads the messages that Anthropic's API takes and gives."""

    name = "anthropic"
    instance = None

    def detect(self, head: str) -> bool:
        """A system text beside the messages, or blocks that only Anthropic has."""
        listed = has_key(head, "messages", "role")
        own = has_key(head, "system", "input_schema", "anthropic_version") or _BLOCK.search(head)
        return is_json(head) and listed and bool(own)

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Bodies are conversations of their own; bare messages are one a file."""
        identities = SourceIds()
        bare = _Talk(identities)
        for found in entries(file):
            if isinstance(found, Skipped):
                yield found
                continue
            place, value = found
            listed = value.get("messages")
            if not isinstance(listed, list):
                yield from bare.read(place, value)
                continue
            talk = _Talk(identities)
            yield from talk.begin(f"{place}, system", value.get("system"))
            for number, each in enumerate(listed, 1):
                yield from talk.read(f"{place}, message {number}", each)


@dataclass
class _Talk:
    """One conversation: its messages get their ids from what they follow."""

    identities: SourceIds

    def __post_init__(self) -> None:
        self.thread = Thread(Anthropic.name)

    def begin(self, place: str, system: Any) -> Iterator[Record | Skipped]:
        try:
            said = content_text(system)
        except ValueError:
            yield Skipped(place, "neither a text nor a list of blocks")
            return
        if said.strip():
            yield self._record(Message("system", said))

    def read(self, place: str, value: Any) -> Iterator[Record | Skipped]:
        try:
            made = _messages(value)
        except ValueError as error:
            yield Skipped(place, str(error))
            return
        yield from map(self._record, made)

    def _record(self, message: Message) -> Record:
        return self.thread.record(message, self.identities.new(id(self), message))


def _messages(value: Any) -> list[Message]:
    if not isinstance(value, dict):
        raise ValueError("not a message")
    role = value.get("role")
    if role not in ("user", "assistant", "system"):
        raise ValueError("unknown role")
    content = value.get("content")
    made = blocks.messages(role, content, None)
    if not made and not content:
        raise ValueError("empty")
    return made
