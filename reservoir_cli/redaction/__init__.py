"""Secrets in messages: keys, tokens and passwords are found, and marked, masked or removed.

What is found goes by rules, see :mod:`reservoir_cli.redaction.rules`; it is a help against
accidents and no proof that a text holds none.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from reservoir_cli.messages import Conversation, Message, StoredMessage
from reservoir_cli.redaction.rules import BLOCKS, GUESSES, SHORTEST_TOKEN, TOKENS, Rule
from reservoir_cli.redaction.values import is_real, is_real_token

#: Longer texts are searched in parts of so many characters, each with as much around it as a
#: private key may take.
_PART, _AROUND = 1_000_000, 25_000
#: So long a value is no word that stands elsewhere by chance; of so many values others are sought.
_TELLING, _MOST_REPEATED = 8, 100


_Some = TypeVar("_Some", Message, StoredMessage)


class Mode(StrEnum):
    """What is done about secrets.

    ``mark`` notes that a message has some, ``mask`` hides them in all that is printed as well,
    and ``remove`` keeps them out of the store, and hides those that came before.
    """

    OFF = "off"
    MARK = "mark"
    MASK = "mask"
    REMOVE = "remove"


_HIDING = (Mode.MASK, Mode.REMOVE)


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands in a text, and what kind it is."""

    kind: str
    start: int
    end: int


def find(text: str) -> list[Secret]:
    """The secrets of a text in their order; none overlaps another."""
    return _find(text) if len(text) <= _PART else _find_in_parts(text)


def _find(text: str) -> list[Secret]:
    # The only letter that becomes two in lower case: places are to be those of the text.
    lowered = text.replace("\u0130", "i").lower()
    found: list[Secret] = []
    for rule in _tokens_in(text):
        _note(rule, text, found)
    for rule in BLOCKS:
        if any(word in lowered for word in rule.words):
            _note(rule, text, found)
    for rule in GUESSES:
        if any(word in lowered for word in rule.words):
            _note(rule, lowered, found, of=text)
    return found


def without_secrets(text: str) -> tuple[str, list[str]]:
    """A text with its secrets replaced by what they were, and the kind of each."""
    found = find(text)
    pieces, done = [], 0
    for each in found:
        pieces += [text[done : each.start], f"[redacted:{each.kind}]"]
        done = each.end
    return "".join([*pieces, text[done:]]), [each.kind for each in found]


def scan_message(message: Message, mode: Mode) -> tuple[Message, Counter[str]]:
    """A message as it is to be stored, and the secrets that were found in it by their kinds.

    Its ``secrets`` are the kinds of those it still has.
    """
    if mode is Mode.OFF:
        return message, Counter()
    clean, kinds = _cleared(message)
    if not kinds:
        return message, Counter()
    if mode is Mode.REMOVE:
        return clean, Counter(kinds)
    return replace(message, secrets=tuple(sorted(set(kinds)))), Counter(kinds)


def kinds_in(message: StoredMessage) -> tuple[str, ...]:
    """The kinds of secrets that a message holds, each once, in order of their names."""
    return tuple(sorted(set(_cleared(message)[1])))


class Redactor:
    """Scans what comes in, and redacts what goes out, as each partition's settings say."""

    def __init__(self, mode_of: Callable[[str], str]) -> None:
        """Make a redactor.

        :param mode_of: the setting ``redact`` of a partition.
        """
        self.mode = cache(lambda partition: Mode(mode_of(partition)))

    def hides(self, partition: str) -> bool:
        """Return whether the secrets of a partition are hidden in what is printed."""
        return self.mode(partition) in _HIDING

    def scan(self, message: Message, partition: str) -> tuple[Message, Counter[str]]:
        """Return a message as a partition stores it, and the secrets found in it."""
        return scan_message(message, self.mode(partition))

    def messages(self, found: Iterable[StoredMessage]) -> list[StoredMessage]:
        """The messages as they may be printed; those that need no change are the same objects."""
        return [self.message(each) for each in found]

    def message(self, message: StoredMessage) -> StoredMessage:
        """One message as it may be printed.

        It is searched again, marked or not: it may have come before there were marks.
        """
        return _cleared(message)[0] if self.hides(message.partition) else message

    def conversation(self, partition: str, conversation: Conversation) -> Conversation:
        """What is known of a conversation of a partition, as it may be printed."""
        return redact_conversation(conversation) if self.hides(partition) else conversation

    def text(self, partition: str, text: str) -> str:
        """Return a text of a partition as it may be printed."""
        return without_secrets(text)[0] if self.hides(partition) else text

    def id(self, partition: str, text: str) -> str:
        """An id in a partition as it may be printed."""
        return redact_id(text) if self.hides(partition) else text


def describe_secrets(counts: Counter[str]) -> str:
    """What was found, as a person reads it: ``3 secrets (aws-access-key, password-in-url 2)``."""
    total = counts.total()
    kinds = ", ".join(
        kind if count == 1 else f"{kind} {count:,}" for kind, count in sorted(counts.items())
    )
    return f"{total:,} {'secret' if total == 1 else 'secrets'} ({kinds})"


def redact_id(text: str) -> str:
    """Return an id, or a fingerprint in its place if it holds a secret: ids stay apart."""
    if not find(text):
        return text
    import hashlib  # it loads OpenSSL, and few messages need it

    return f"redacted-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:32]}"


def redact_conversation(conversation: Conversation) -> Conversation:
    """Return what is known of a conversation, without its secrets."""
    names = ("title", "source", "model", "project", "branch")
    known = {name: text for name in names if (text := getattr(conversation, name))}
    cleared = {name: without_secrets(text)[0] for name, text in known.items()}
    return replace(conversation, id=redact_id(conversation.id), **cleared)


def _cleared(message: _Some) -> tuple[_Some, Sequence[str]]:
    """A message without its secrets, and their kinds; without any it is the same object."""
    content, kinds = without_secrets(message.content)
    calls = []
    for call in message.tool_calls:
        arguments, more = without_secrets(call.arguments)
        calls.append(replace(call, arguments=arguments))
        kinds += more
    if more := _kinds_in_names(message):
        name = message.name and without_secrets(message.name)[0]
        ids: dict[str, Any] = {key: _id(message, key) for key in _IDS}
        message = replace(message, name=name, **ids)
        calls = [
            replace(call, id=redact_id(call.id), name=without_secrets(call.name)[0])
            for call in calls
        ]
        kinds += more
    if not kinds:
        return message, ()
    return replace(message, content=content, tool_calls=tuple(calls)), kinds


_IDS = ("trace_id", "conversation_id", "tool_call_id", "source", "source_id")


def _id(message: Message | StoredMessage, key: str) -> str | None:
    text: str | None = getattr(message, key)
    return text and redact_id(text)


def _kinds_in_names(message: Message | StoredMessage) -> list[str]:
    """The kinds of secrets in the names and ids of a message, which are searched at once first."""
    texts = [message.name, *(getattr(message, key) for key in _IDS)]
    texts += [text for call in message.tool_calls for text in (call.id, call.name)]
    told = [text for text in texts if text]
    if not find("\n".join(told)):
        return []
    return [secret.kind for text in told for secret in find(text)]


def _tokens_in(text: str) -> list[Rule]:
    """The rules whose tokens stand in a text.

    They are looked for in its long words alone, of which most texts have few.
    """
    long = " ".join(word for word in text.split() if len(word) >= SHORTEST_TOKEN)
    if not long:
        return []
    lowered = long.lower()
    return [
        rule
        for rule in TOKENS
        if any(word in lowered for word in rule.words) and re.search(rule.pattern, long)
    ]


def _note(rule: Rule, text: str, found: list[Secret], of: str = "") -> None:
    """Add what a rule finds in its place, unless it was found before.

    What is found by the words around it is one wherever else it stands.

    :param of: what ``text`` is in lower case, for rules that guess.
    """
    values: dict[str, None] = {}
    for match in _matches(rule, text):
        start, end = match.span(match.lastindex or 0)
        if not of:
            if is_real_token(match[0]):
                _add(Secret(rule.kind, start, end), found)
        elif is_real(of[start:end], in_code=rule.in_code):
            _add(Secret(rule.kind, start, end), found)
            if end - start >= _TELLING:
                values[of[start:end]] = None
    for value in list(values)[:_MOST_REPEATED]:
        at = of.find(value)
        while at >= 0:
            _add(Secret(rule.kind, at, at + len(value)), found)
            at = of.find(value, at + len(value))


def _matches(rule: Rule, text: str) -> Iterator[re.Match[str]]:
    if not rule.from_word:
        yield from re.finditer(rule.pattern, text)
        return
    pattern = re.compile(rule.pattern)
    for word in rule.words:  # ten times as fast as to try the pattern everywhere
        at = text.find(word)
        while at >= 0:
            if match := pattern.match(text, at):
                yield match
            at = text.find(word, match.end() if match else at + 1)


def _add(secret: Secret, found: list[Secret]) -> None:
    at = bisect_left(found, secret.start, key=attrgetter("start"))
    before, behind = found[max(0, at - 1) : at], found[at : at + 1]
    if all(each.end <= secret.start for each in before) and all(
        each.start >= secret.end for each in behind
    ):
        found.insert(at, secret)


def _find_in_parts(text: str) -> list[Secret]:
    """The secrets that begin in each part, which is read with what is before and behind it."""
    found: list[Secret] = []
    for begin in range(0, len(text), _PART):
        low, end = max(0, begin - _AROUND), begin + _PART
        for each in _find(text[low : end + _AROUND]):
            start = low + each.start
            if begin <= start < end and (not found or start >= found[-1].end):
                found.append(Secret(each.kind, start, low + each.end))
    return found
