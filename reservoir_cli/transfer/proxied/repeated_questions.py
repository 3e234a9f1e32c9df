"""Keep the answers to a question that is asked several times apart.

Without a name, it may be a retry, whose answer replaces the old one, or another conversation.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from reservoir_cli.messages import Filter, Message, Scope, StoredMessage
from reservoir_cli.storage.content_identity import parts_of
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.sources import Sources
from reservoir_cli.transfer.proxied.exchange import PARTIAL, Exchange
from reservoir_cli.transfer.skip_duplicates import SOURCE

#: How long after an answer the same messages to the same model are a retry.
RETRY_TIME = timedelta(minutes=5)
#: A client may ask again a little before the end of the old answer is noted.
_SLACK = timedelta(seconds=1)
_MAX_ANSWERS = 1_000  # the most answers of which the requests are remembered


class _Answered(NamedTuple):
    """The last answer to a question, a hash of its request, and the suffix of its identity."""

    request: int
    ended_at: datetime
    suffix: str


class RepeatedQuestions:
    """Give messages other identities if a question is asked again, but is no retry."""

    def __init__(self, store: Store, redact: Callable[[Exchange, Message], Message]) -> None:
        self._store, self._sources, self._redact = store, Sources(store), redact
        self._answered: OrderedDict[tuple[Scope, str], _Answered] = OrderedDict()

    def keep_apart(self, exchange: Exchange, now: datetime) -> Exchange:
        """Return an exchange whose identities are those of no other conversation's answers."""
        messages = self._separate_calls(exchange.scope, list(exchange.messages))
        reply = exchange.reply
        if reply and messages:
            # The answer to a result of a tool has the same suffix as the call.
            base = str(exchange.messages[-1].source_id)
            inherited = str(messages[-1].source_id).removeprefix(base)
            reply = _rename(reply, inherited)
            start = _start_of_question(messages)
            suffix = self._suffix_of(exchange, [*messages[start:], reply], now)
            reply = _rename(reply, suffix)
            messages[start:] = [_rename(message, suffix) for message in messages[start:]]
        return replace(exchange, messages=tuple(messages), reply=reply)

    def _separate_calls(self, scope: Scope, messages: list[Message]) -> list[Message]:
        starts = [index for index, message in enumerate(messages) if message.role == "user"]
        turns = [messages[start:end] for start, end in pairwise([*starts, len(messages)])]
        suffixes = [
            _hash(turn[1]) if len(turn) > 1 and turn[1].tool_calls else "" for turn in turns
        ]
        ids = [
            (SOURCE, str(_rename(turn[1], suffix).source_id))
            for turn, suffix in zip(turns, suffixes, strict=True)
            if suffix
        ]
        stored = self._sources.find_stored(scope, ids)
        separated = messages[: starts[0]] if starts else list(messages)
        for turn, suffix in zip(turns, suffixes, strict=True):
            is_stored = suffix and (SOURCE, _rename(turn[1], suffix).source_id) in stored
            separated += [_rename(message, suffix) for message in turn] if is_stored else turn
        return separated

    def _suffix_of(self, exchange: Exchange, turn: Sequence[Message], now: datetime) -> str:
        """Return what to add to an answer's identity; nothing for a first answer and a retry."""
        reply = turn[-1]
        key = exchange.scope, str(reply.source_id)
        last = self._answered.get(key) or self._find_answered(exchange, reply)
        suffixes = ("", last.suffix) if last else ("",)
        ids = [(SOURCE, f"{reply.source_id}{suffix}") for suffix in suffixes]
        stored = self._sources.find_stored(exchange.scope, ids)
        suffix = self._choose_suffix(exchange, reply, now, last, [stored.get(id) for id in ids])
        if self._is_asked_after_deletion(exchange, [_rename(message, suffix) for message in turn]):
            suffix = _hash(self._redact(exchange, reply))
        if not exchange.named:
            self._answered[key] = _Answered(_hash_request(exchange), now, suffix)
            self._answered.move_to_end(key)
            if len(self._answered) > _MAX_ANSWERS:
                self._answered.popitem(last=False)
        return suffix

    def _find_answered(self, exchange: Exchange, reply: Message) -> _Answered | None:
        """Return the last answer if the store shows that it was one to the same request.

        After a restart, nothing else is known of earlier requests. The conversation must consist of
        the same messages and the answer: if a question before has several answers, it is unknown
        which one was sent. A first question was sent alone, whatever precedes it.
        """
        scope, base = exchange.scope, str(reply.source_id)
        if exchange.named or not self._sources.find_stored(scope, [(SOURCE, base)]):
            return None
        conversation = Filter(conversation_id=exchange.conversation)
        count = len(exchange.messages) + 1
        stored = self._store.last(scope, count + (count > 2), conversation)
        sent = [parts_of(self._redact(exchange, message)) for message in exchange.messages]
        if [parts_of(message) for message in stored[:-1]] != sent:
            return None
        answer = stored[-1]
        if not answer.source_id.startswith(base) or self._find_model(exchange) != exchange.model:
            return None
        suffix = answer.source_id.removeprefix(base)
        return _Answered(_hash_request(exchange), answer.created_at, suffix)

    def _find_model(self, exchange: Exchange) -> str | None:
        name = str(exchange.scope.partition), str(exchange.scope.instance), exchange.conversation
        stored = self._store.known_conversations({name})
        return stored[name].model if name in stored else None

    def _is_asked_after_deletion(self, exchange: Exchange, turn: Sequence[Message]) -> bool:
        if not any(self._store.forgotten([replace(message, source=SOURCE) for message in turn])):
            return False
        redacted = [
            replace(
                self._redact(exchange, message),
                conversation_id=exchange.conversation,
                created_at=exchange.asked_at,
            )
            for message in turn
        ]
        return not any(self._store.forgotten_contents(redacted))

    def _choose_suffix(
        self,
        exchange: Exchange,
        reply: Message,
        now: datetime,
        last: _Answered | None,
        stored: Sequence[StoredMessage | None],
    ) -> str:
        redacted = self._redact(exchange, reply)
        first, latest = stored[0], stored[-1]
        is_partial = latest is not None and PARTIAL in latest.tags
        again = last if last and (is_partial or _is_retry(exchange, last, now)) else None
        if first is None:  # or deleted
            return again.suffix if again else ""
        if PARTIAL in first.tags or parts_of(redacted) == parts_of(first):
            return ""
        if exchange.named:
            is_older = first.created_at.date() < now.date()
            return f"@{now:%Y-%m-%d}" if is_older else ""
        return again.suffix if again else _hash(redacted)


def _is_retry(exchange: Exchange, last: _Answered, now: datetime) -> bool:
    asked_at = exchange.asked_at or now
    soon = last.ended_at - _SLACK <= asked_at <= last.ended_at + RETRY_TIME
    return soon and _hash_request(exchange) == last.request


def _hash_request(exchange: Exchange) -> int:
    """Return a hash of what a retry has in common with a request: whether it streams may differ."""
    parts = (part for message in exchange.messages for part in parts_of(message))
    return hash((exchange.model, *parts))


def _start_of_question(messages: Sequence[Message]) -> int:
    """Return the index of the last question, which a prefilled answer may follow; else the end."""
    start = len(messages)
    while start and messages[start - 1].role == "assistant":
        start -= 1
    return start - 1 if start and messages[start - 1].role == "user" else len(messages)


def _calls(message: Message) -> list[str]:
    return parts_of(message)[-len(message.tool_calls) :] if message.tool_calls else []


def _hash(message: Message) -> str:
    import hashlib  # loads OpenSSL

    parts = sorted(_calls(message)) or parts_of(message)
    return f"@{hashlib.sha256(''.join(parts).encode()).hexdigest()[:16]}"


def _rename(message: Message, suffix: str) -> Message:
    return replace(message, source_id=f"{message.source_id}{suffix}") if suffix else message
