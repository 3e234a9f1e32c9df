"""By what a question, and what follows it, is known again when a client sends it once more."""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from reservoir_cli.messages import Message
from reservoir_cli.server.proxy import request_messages
from reservoir_cli.server.proxy.json_spans import Document, OddJSON, Span, string_end
from reservoir_cli.transfer.skip_proxied import identity_prefix, normalise


@dataclass(frozen=True, slots=True)
class Question:
    """A message of the user.

    :param ordinal: its number among the user's messages.
    :param id: a hash of its text and of the user's messages before it.
    :param at: where something can be added behind its text.
    :param newest: it waits for an answer.
    """

    ordinal: int
    id: str
    text: str
    at: int
    newest: bool


class Walk:
    """Goes through the messages of a request in order, and gives each its identity.

    A message of the user is known by its text and those of the user's messages before it; what
    follows it by its place behind it, so that a client may send answers back in any form.
    """

    def __init__(self, text: str, conversation: str) -> None:
        self.questions: list[Question] = []
        self.messages: list[Message] = []
        self._text, self._asked = text, 0
        self._chain, self._behind = hashlib.sha256(conversation.encode()).hexdigest(), 0

    def next_id(self) -> str:
        """Return the identity of a message that comes next and is not the user's."""
        return f"{self._chain}/{self._behind + 1}"

    def read_list(self, elements: list[Span]) -> None:
        """Read all messages of a list."""
        asking = [not request_messages.is_system(span.value) for span in elements]
        last = max((number for number, asks in enumerate(asking) if asks), default=-1)
        found = [(request_messages.of_element(span.value), span) for span in elements]
        waiting: list[Message] = []
        for number, (messages, span) in enumerate(found):
            for message in messages:
                if message.role == "user":
                    self._add(waiting)
                    waiting = []
                    self._ask(message, _end_of(self._text, span), newest=number == last)
                else:
                    waiting.append(message)
        self._add(waiting)

    def read_string(self, document: Document, key: str) -> None:
        """Read a request whose only message is a string."""
        span = document.members.get(key)
        if span is None or not isinstance(span.value, str):
            raise OddJSON("no messages")
        said = normalise(span.value)
        if said:
            self._ask(Message("user", said), span.end - 1, newest=True)

    def _ask(self, message: Message, at: int | None, *, newest: bool) -> None:
        linked = json.dumps([self._chain, message.content]).encode()
        self._chain, self._behind = hashlib.sha256(linked).hexdigest(), 0
        own = f"{identity_prefix(message.content)}{self._chain}"
        self.messages.append(replace(message, source_id=own))
        if at is not None:
            self.questions.append(Question(self._asked, self._chain, message.content, at, newest))
        self._asked += 1

    def _add(self, messages: list[Message]) -> None:
        for message in request_messages.joined(messages):
            self.messages.append(replace(message, source_id=self.next_id()))
            self._behind += 1


def _end_of(text: str, span: Span) -> int | None:
    """Return where the last text of a user's message ends; ``None`` if that is nowhere safe."""
    content = span.value.get("content")
    try:
        if isinstance(content, str):
            return string_end(text, span, "content")
        for number, block in reversed(list(enumerate(content))):
            if _has_text(block):
                return string_end(text, span, "content", number, "text")
    except OddJSON:
        pass
    return None


def _has_text(block: Any) -> bool:
    if not isinstance(block, dict) or block.get("type") not in ("text", "input_text"):
        return False
    return isinstance(block.get("text"), str) and bool(normalise(block["text"]))
