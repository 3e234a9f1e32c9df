"""A request as the proxy understands it: its conversation, its questions, and where they end."""

from collections.abc import Mapping
from dataclasses import dataclass

from reservoir_cli.messages import Message
from reservoir_cli.server.proxy.conversation_id import conversation_of
from reservoir_cli.server.proxy.json_spans import OddJSON, read_document
from reservoir_cli.server.proxy.protocols import (
    CHAT,
    COUNT_TOKENS,
    MESSAGES,
    OLLAMA_CHAT,
    OLLAMA_GENERATE,
    RESPONSES,
)
from reservoir_cli.server.proxy.question_identity import Question, Walk
from reservoir_cli.server.proxy.side_requests import is_side_request

#: The key of a request's messages, by its path.
LISTS = {
    CHAT: "messages",
    RESPONSES: "input",
    MESSAGES: "messages",
    COUNT_TOKENS: "messages",
    OLLAMA_CHAT: "messages",
    OLLAMA_GENERATE: "prompt",
}


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
    named: bool = False


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
    walk = Walk(text, named or "")
    if key in document.items:
        walk.read_list(document.items[key])
    else:
        walk.read_string(document, key)
    if not walk.questions:
        raise OddJSON("no question")
    side = is_side_request(values, walk.questions[0].text, walk.questions[-1].text)
    return ParsedRequest(
        text,
        named or f"proxy-{walk.questions[0].id[:32]}",
        values["model"] if isinstance(values.get("model"), str) else None,
        tuple(walk.questions),
        tuple(walk.messages),
        walk.next_id(),
        side or path == COUNT_TOKENS,
        len(text),
        named is not None,
    )
