"""Parse a request: its conversation, its messages, and the positions of its questions."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from reservoir_cli.messages import Message
from reservoir_cli.server.proxy.conversation_id import cache_key_of, conversation_of
from reservoir_cli.server.proxy.json_spans import OddJSON, read_document
from reservoir_cli.server.proxy.protocols import (
    CHAT,
    COUNT_TOKENS,
    MESSAGES,
    OLLAMA_CHAT,
    OLLAMA_GENERATE,
    RESPONSES,
)
from reservoir_cli.server.proxy.provider_histories import reference_of
from reservoir_cli.server.proxy.question_identity import IdentityChain, Question
from reservoir_cli.server.proxy.side_requests import is_side_request

#: The key of a request's messages by path.
LISTS = {
    CHAT: "messages",
    RESPONSES: "input",
    MESSAGES: "messages",
    COUNT_TOKENS: "messages",
    OLLAMA_CHAT: "messages",
    OLLAMA_GENERATE: "prompt",
}
#: A picture or another file in base64: a long string without spaces and escapes.
_ENCODED = re.compile(r'"[!#-\[\]-~]{2000,}')


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A parsed request.

    :param text: the body.
    :param messages: with their identities in ``source_id``; without instructions.
    :param reply_id: the identity of the answer.
    :param side: whether it is not part of a conversation.
    :param characters: length of the body without encoded files.
    :param named: whether the client gave the id of the conversation.
    :param continues: the reference to a history at the provider that the request continues.
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


def parse(path: str, body: bytes, headers: Mapping[str, str]) -> ParsedRequest:
    """Parse the body of a request.

    :param path: one of :data:`LISTS`.
    :raises OddJSON: it cannot be changed safely, or contains no question.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise OddJSON("not UTF-8") from None
    key = LISTS[path]
    document = read_document(text, key)
    values = {name: span.value for name, span in document.members.items()}
    conversation, continues = conversation_of(values, headers), reference_of(values)
    belongs_to = conversation or cache_key_of(values)
    chain = IdentityChain(text, "\n".join(filter(None, (belongs_to, continues))))
    if key in document.items:
        chain.read_list(document.items[key])
    else:
        chain.read_string(document, key)
    if not chain.questions and not (continues and chain.messages):
        raise OddJSON("no question")
    texts = [question.text for question in chain.questions] or [""]
    has_answers = continues is not None or any(
        message.role == "assistant" for message in chain.messages
    )
    side = is_side_request(values, texts[0], texts[-1], has_answers=has_answers)
    return ParsedRequest(
        text,
        conversation or f"proxy-{_hash(continues) if continues else chain.questions[0].id[:32]}",
        values["model"] if isinstance(values.get("model"), str) else None,
        tuple(chain.questions),
        tuple(chain.messages),
        chain.next_id(),
        side or path == COUNT_TOKENS,
        len(text) - sum(map(len, _ENCODED.findall(text))),
        conversation is not None,
        continues,
    )


def _hash(reference: str) -> str:
    return hashlib.sha256(reference.encode("utf-8", "replace")).hexdigest()[:32]
