"""Give each message of a request an identity that stays the same when a client resends it."""

import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import Any

from reservoir_cli.messages import Message
from reservoir_cli.server.proxy import request_messages
from reservoir_cli.server.proxy.json_spans import Document, OddJSON, Span, string_end
from reservoir_cli.server.proxy.side_requests import carries_summary
from reservoir_cli.transfer.reading.foreign_values import objects
from reservoir_cli.transfer.skip_duplicates import identity_prefix, normalise

_ADDRESS = re.compile(r'(https?://[^"?]*)\?[^"]*')  # an address in JSON with its query

#: Why a question is sent as it is.
HAS_CONTEXT, SUMMARY = "it has a context", "it has a summary"
#: A line that stands for a picture or another file, such as ``[image]``.
_MARKER = re.compile(r"(?m)^\[[^\]\n]+\]$")


@dataclass(frozen=True, slots=True)
class Question:
    """A user message.

    :param ordinal: its number among the user messages.
    :param id: a hash of its text and files, and of the user messages before it.
    :param text: its words, by which messages are recalled.
    :param at: the position in the request at which text can be appended to it.
    :param newest: whether it is still unanswered.
    :param kept: why it is sent as it is, without recalled messages; empty if it is not.
    """

    ordinal: int
    id: str
    text: str
    at: int
    newest: bool
    kept: str = ""


class IdentityChain:
    """Read the messages of a request in order, and give each an identity.

    That of a user message is a hash of its text, its files, and the user messages before it; that
    of another is its position after it, so that clients may resend answers in any form.
    """

    def __init__(self, text: str, conversation: str) -> None:
        self.questions: list[Question] = []
        self.messages: list[Message] = []
        self.has_files = False
        self._text, self._ordinal = text, 0
        self._chain, self._replies = hashlib.sha256(conversation.encode()).hexdigest(), 0

    @property
    def first_id(self) -> str:
        """The identity of the first question; of the last message if none has words."""
        return self.questions[0].id if self.questions else self._chain

    def next_id(self) -> str:
        """Return the identity of the next message if it is not the user's."""
        return f"{self._chain}/{self._replies + 1}"

    def read_list(self, elements: list[Span]) -> None:
        """Read all messages of a list."""
        turns = [n for n, span in enumerate(elements) if not request_messages.is_system(span.value)]
        last = max(turns, default=-1)
        replies: list[Message] = []
        began = 0  # the first question of the turn
        framed = False
        for number, span in enumerate(elements):
            if not request_messages.is_of_user(span.value):
                began, framed = len(self.questions), False
            framed = framed or request_messages.has_frame(span.value)
            for message in request_messages.read_element(span.value):
                if message.role == "user":
                    self._add_replies(replies)
                    replies = []
                    at, files = _text_end(self._text, span), _files_of(span.value)
                    self._add_question(message, at, files, newest=number == last)
                else:
                    replies.append(message)
            if framed:
                self._keep(began)
        self._add_replies(replies)

    def read_string(self, document: Document, key: str) -> None:
        """Read a request that is a single string."""
        span = document.members.get(key)
        if span is None or not isinstance(span.value, str):
            raise OddJSON("no messages")
        content = normalise(span.value)
        if content:
            files = _files_of({name: member.value for name, member in document.members.items()})
            self._add_question(Message("user", content), span.end - 1, files, newest=True)
            if request_messages.has_frame({"role": "user", "content": span.value}):
                self._keep(0)

    def _keep(self, began: int) -> None:
        """Keep the questions of a turn as they are: a hook or the user has added a context."""
        for number in range(began, len(self.questions)):
            self.questions[number] = replace(self.questions[number], kept=HAS_CONTEXT)

    def _add_question(self, message: Message, at: int | None, files: str, *, newest: bool) -> None:
        self.has_files |= bool(files)
        link = json.dumps([self._chain, message.content, *filter(None, [files])]).encode()
        self._chain, self._replies = hashlib.sha256(link).hexdigest(), 0
        identity = f"{identity_prefix(message.content)}{self._chain}"
        self.messages.append(replace(message, source_id=identity))
        if at is not None:
            text = _MARKER.sub("", message.content).strip() if files else message.content
            kept = SUMMARY if carries_summary(message.content) else ""
            question = Question(self._ordinal, self._chain, text, at, newest, kept)
            self.questions.append(question)
        self._ordinal += 1

    def _add_replies(self, messages: list[Message]) -> None:
        for message in request_messages.join_replies(messages):
            self.messages.append(replace(message, source_id=self.next_id()))
            self._replies += 1


def _files_of(element: Any) -> str:
    """Return the files of a message as JSON, without what clients change when they resend it."""
    if not isinstance(element, dict):
        return ""
    content, images = element.get("content"), element.get("images")  # Ollama lists images apart
    files = [
        {key: value for key, value in block.items() if key != "cache_control"}
        for block in objects(content)
        if not _is_read(block)
    ]
    files += images if isinstance(images, list) else []
    return _ADDRESS.sub(r"\1", json.dumps(files)) if files else ""


def _is_read(block: dict[str, Any]) -> bool:
    return isinstance(block.get("text"), str) or str(block.get("type")).endswith("tool_result")


def _text_end(text: str, span: Span) -> int | None:
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
