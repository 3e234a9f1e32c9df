"""Parse a request: its conversation, its messages, and the positions of its questions."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reservoir_cli.messages import Message, clean_name, clean_text
from reservoir_cli.server import limits
from reservoir_cli.server.proxy.identify_client import folder_of
from reservoir_cli.server.proxy.json_spans import OddJSON, read_document
from reservoir_cli.server.proxy.provider_histories import named_history, reference_of
from reservoir_cli.server.proxy.providers import protocol_at
from reservoir_cli.server.proxy.question_identity import IdentityChain, Question
from reservoir_cli.server.proxy.request_messages import first_texts, system_prompt
from reservoir_cli.server.proxy.side_requests import is_side_request
from reservoir_cli.transfer.reading.foreign_values import obj

#: A picture or another file in base64: a long string without spaces and escapes.
_ENCODED = re.compile(r'"[!#-\[\]-~]{2000,}')
#: Headers that hold the id of a conversation.
_HEADERS = ("x-claude-code-session-id", "session-id", "session_id", "x-session-id")
#: Members of a request's metadata that hold it.
_METADATA = ("session_id", "conversation_id", "thread_id", "chat_id")
#: Anthropic's clients join user, account and session in one text, newer ones as JSON.
_SESSION = re.compile(r'(?:_session_|"session_id": ?")([0-9A-Za-z-]{8,})')


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
    chain = IdentityChain(text, "\n".join(filter(None, (belongs_to, continues))))
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
