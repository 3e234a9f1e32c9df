"""A request as the proxy understands it: its conversation, its questions, and where they end."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reservoir_cli.messages import Message, clean_name
from reservoir_cli.server.proxy import request_messages
from reservoir_cli.server.proxy.json_spans import Document, OddJSON, Span, read_document, string_end
from reservoir_cli.server.proxy.protocols import (
    CHAT,
    COUNT_TOKENS,
    MESSAGES,
    OLLAMA_CHAT,
    OLLAMA_GENERATE,
    RESPONSES,
)
from reservoir_cli.transfer.skip_proxied import normal, text_mark

#: The key of a request's messages, by its path.
LISTS = {
    CHAT: "messages",
    RESPONSES: "input",
    MESSAGES: "messages",
    COUNT_TOKENS: "messages",
    OLLAMA_CHAT: "messages",
    OLLAMA_GENERATE: "prompt",
}
#: Headers in which clients name their conversation.
_HEADERS = ("x-claude-code-session-id", "session-id", "session_id", "x-session-id")
#: Members of a request's metadata that do so, too.
_METADATA = ("session_id", "conversation_id", "thread_id", "chat_id")
#: Anthropic's clients have one text for user, account and session.
_SESSION = re.compile(r"_session_([0-9A-Za-z-]{8,})")
_LONGEST_ID = 200
#: What a client asks for itself, such as the title of a conversation.
_SIDE = re.compile(
    r"(?is)\btitle generator\b|\b(?:generate|write|create|produce)\b[^.\n]{0,60}\btitle\b"
    r"|\bisNewTopic\b"
)
_TASK = re.compile(r"(?s)\s*### Task:\s")
#: What opencode asks first, in a message of its own.
_TITLE = re.compile(r"\s*Generate a title for this conversation:\s*")
_LOOKED_AT = 1_000


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


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A request, read once.

    :param text: the body.
    :param messages: with their identities in ``source_id``; without instructions.
    :param reply_id: the identity of the answer.
    :param side: it is no part of a conversation.
    :param characters: of all texts in it.
    """

    text: str
    conversation: str
    model: str | None
    questions: tuple[Question, ...]
    messages: tuple[Message, ...]
    reply_id: str
    side: bool
    characters: int = 0
    named: bool = field(default=False)


def parse(path: str, body: bytes, headers: Mapping[str, str]) -> ParsedRequest:
    """Read the body of a request.

    :param path: one of :data:`LISTS`.
    :raises OddJSON: it cannot be changed safely, or asks nothing.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise OddJSON("not UTF-8") from None
    key = LISTS[path]
    document = read_document(text, key)
    values = {name: span.value for name, span in document.members.items()}
    named = conversation_of(values, headers)
    walk = _Walk(text, named or "")
    if key in document.items:
        walk.read_list(document.items[key])
    else:
        walk.read_string(document, key)
    if not walk.questions:
        raise OddJSON("no question")
    return ParsedRequest(
        text,
        named or f"proxy-{walk.questions[0].id[:32]}",
        values["model"] if isinstance(values.get("model"), str) else None,
        tuple(walk.questions),
        tuple(walk.messages),
        walk.next_id(),
        path == COUNT_TOKENS or _is_side(values, walk.questions),
        len(text),
        named is not None,
    )


class _Walk:
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
        said = normal(span.value)
        if said:
            self._ask(Message("user", said), span.end - 1, newest=True)

    def _ask(self, message: Message, at: int | None, *, newest: bool) -> None:
        linked = json.dumps([self._chain, message.content]).encode()
        self._chain, self._behind = hashlib.sha256(linked).hexdigest(), 0
        own = f"{text_mark(message.content)}{self._chain}"
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
    return isinstance(block.get("text"), str) and bool(normal(block["text"]))


def conversation_of(values: Mapping[str, Any], headers: Mapping[str, str]) -> str | None:
    """Return the id that a client gives its conversation, if it does.

    :param values: the members of the request.
    :param headers: by lower-case name.
    """
    metadata = values.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    user = metadata.get("user_id")
    session = _SESSION.search(user) if isinstance(user, str) else None
    named = [
        *(headers.get(name) for name in _HEADERS),
        values.get("prompt_cache_key"),
        session and session[1],
        *(metadata.get(name) for name in _METADATA),
    ]
    texts = [text for text in named if isinstance(text, str) and text.strip()]
    return clean_name(texts[0].strip())[:_LONGEST_ID] if texts else None


def _is_side(values: Mapping[str, Any], questions: Sequence[Question]) -> bool:
    """Return whether a client asks for itself: for a title, or only whether a model is there."""
    for key in ("max_tokens", "max_completion_tokens", "max_output_tokens"):
        if isinstance(values.get(key), int) and values[key] <= 1:
            return True
    system = _system_of(values)[:_LOOKED_AT]
    first, newest = questions[0].text, questions[-1].text
    return bool(_SIDE.search(system) or _TASK.match(newest) or _TITLE.fullmatch(first))


def _system_of(values: Mapping[str, Any]) -> str:
    listed = [values.get("system"), values.get("instructions")]
    for key in ("messages", "input"):
        elements = values.get(key)
        if isinstance(elements, list):
            listed += [
                each.get("content") for each in elements[:3] if request_messages.is_system(each)
            ]
    return "\n".join(request_messages.text_of(value) for value in listed)
