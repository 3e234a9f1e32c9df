"""Parse a request: its conversation, its messages, and the positions of its questions.

Each message gets an identity that stays the same when a client resends it.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reservoir_cli.messages import Message, clean_name, clean_text
from reservoir_cli.server import limits
from reservoir_cli.server.proxy import request_messages
from reservoir_cli.server.proxy.identify_client import folder_of
from reservoir_cli.server.proxy.json_spans import Document, OddJSON, Span, read_document, string_end
from reservoir_cli.server.proxy.provider_histories import named_history, reference_of
from reservoir_cli.server.proxy.providers.registry import protocol_at
from reservoir_cli.server.proxy.request_messages import first_texts, system_prompt
from reservoir_cli.server.proxy.side_requests import carries_summary, is_side_request
from reservoir_cli.transfer.reading.foreign_values import obj, objects
from reservoir_cli.transfer.skip_duplicates import identity_prefix, normalise

#: A picture or another file in base64: a long string without spaces and escapes.
_ENCODED = re.compile(r'"[!#-\[\]-~]{2000,}')
#: Headers that hold the id of a conversation.
_HEADERS = ("x-claude-code-session-id", "session-id", "session_id", "x-session-id")
#: Members of a request's metadata that hold it.
_METADATA = ("session_id", "conversation_id", "thread_id", "chat_id")
#: Anthropic's clients join user, account and session in one text, newer ones as JSON.
_SESSION = re.compile(r'(?:_session_|"session_id": ?")([0-9A-Za-z-]{8,})')
#: An address in JSON with its query.
_ADDRESS = re.compile(r'(https?://[^"? ]{0,2000}+)\?[^" ]*')

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


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A parsed request.

    :param messages: with their identities in ``source_id``; without instructions.
    :param reply_id: the identity of the answer.
    :param side: whether it is not part of a conversation.
    :param characters: length of the body without encoded files.
    :param continues: the reference to a history at the provider that the request continues.
    :param window: the context window in tokens, if the request sets it.
    """

    text: str
    conversation: str
    model: str | None
    questions: tuple[Question, ...]
    messages: tuple[Message, ...]
    reply_id: str
    side: bool
    characters: int = 0
    named: bool = False
    continues: str | None = None
    window: int | None = None
    only_counts: bool = False
    folder: str | None = None


def parse(path: str, body: bytes, headers: Mapping[str, str]) -> ParsedRequest:
    """Parse a body; raise OddJSON if it cannot be changed safely, or contains no question."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise OddJSON("not UTF-8") from None
    protocol = protocol_at(path)
    key = protocol.lists[path]
    document = read_document(text, key)
    values = {name: span.value for name, span in document.members.items()}
    conversation, continues = conversation_of(values, headers), reference_of(values)
    belongs_to = conversation or cache_key_of(values)
    chain = _IdentityChain(text, "\n".join(filter(None, (belongs_to, continues))))
    if key in document.items:
        chain.read_list(document.items[key])
    else:
        chain.read_string(document, key)
    if not (chain.questions or chain.has_files or (continues and chain.messages)):
        raise OddJSON("no question")
    texts = [question.text for question in chain.questions] or [""]
    has_answers = continues is not None or any(
        message.role == "assistant" for message in chain.messages
    )
    side = is_side_request(protocol, values, texts[0], texts[-1], has_answers=has_answers)
    return ParsedRequest(
        text,
        conversation or f"proxy-{_hash(continues) if continues else chain.first_id[:32]}",
        clean_text(values["model"]) if isinstance(values.get("model"), str) else None,
        tuple(chain.questions),
        tuple(chain.messages),
        chain.next_id(),
        side,
        len(text) - sum(map(len, _ENCODED.findall(text))),
        conversation is not None,
        continues,
        protocol.window(values),
        protocol.is_counting(path),
        folder_of(system_prompt(values), first_texts(values)),
    )


def _hash(reference: str) -> str:
    return hashlib.sha256(reference.encode("utf-8", "replace")).hexdigest()[:32]


def conversation_of(values: Mapping[str, Any], headers: Mapping[str, str]) -> str | None:
    """Return the id that a client gives its conversation, if any."""
    metadata = obj(values.get("metadata"))
    user = metadata.get("user_id")
    session = _SESSION.search(user) if isinstance(user, str) else None
    candidates = [
        *(headers.get(name) for name in _HEADERS),
        named_history(values),
        session and session[1],
        *(metadata.get(name) for name in _METADATA),
    ]
    ids = [clean_id for value in candidates if (clean_id := _clean(value))]
    return ids[0] if ids else None


def cache_key_of(values: Mapping[str, Any]) -> str | None:
    """Return the key by which a provider finds cached prompts, if any.

    Different keys mean different conversations, but some programs use one for all of them.
    """
    return _clean(values.get("prompt_cache_key"))


def _clean(value: Any) -> str | None:
    if not isinstance(value, str) or not value.strip():
        return None
    return clean_name(value.strip())[: limits.MAX_ID]


class _IdentityChain:
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
