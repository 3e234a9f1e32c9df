"""Detect secrets in messages (keys, tokens, passwords), and mark, mask or remove them.

Detection uses the rules of :mod:`reservoir_cli.redaction.rules`. It guards against accidents; it
does not prove that a text contains no secrets.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from reservoir_cli.messages import Conversation, Message, StoredMessage
from reservoir_cli.redaction.placeholders import is_real, is_real_token
from reservoir_cli.redaction.rules import BLOCKS, GUESSES, SHORTEST_TOKEN, TOKENS, Rule

#: Longer texts are scanned in blocks of this many characters, with an overlap on both sides that
#: can hold a private key.
_BLOCK, _OVERLAP = 1_000_000, 25_000
#: Values at least this long are also searched elsewhere in the text, up to this many values.
_REPEATABLE_LENGTH, _MOST_REPEATED = 8, 100


_LONG_WORD = rf"\S{{{SHORTEST_TOKEN},}}"
#: How many texts without a secret are remembered by their hashes.
_MOST_CLEAN = 100_000
#: Separates texts that are scanned together: no secret contains it.
_BETWEEN = "\n\0\n"

_AnyMessage = TypeVar("_AnyMessage", Message, StoredMessage)


class Mode(StrEnum):
    """How secrets are handled.

    ``mark`` records which messages contain secrets, ``mask`` also hides them in all output, and
    ``remove`` replaces them before storing and hides those stored earlier.
    """

    OFF = "off"
    MARK = "mark"
    MASK = "mask"
    REMOVE = "remove"


#: Modes in which output hides secrets, and those in which output for agents does.
_HIDING, _HIDING_FROM_AGENTS = (Mode.MASK, Mode.REMOVE), (Mode.MARK, Mode.MASK, Mode.REMOVE)


class Secret(NamedTuple):
    """The kind of a secret and its span in a text."""

    kind: str
    start: int
    end: int


def find(text: str) -> list[Secret]:
    """Return the secrets of a text, in order and without overlaps."""
    return _find(text) if len(text) <= _BLOCK else _find_in_blocks(text)


def _find(text: str) -> list[Secret]:
    # Lowercasing İ would give two characters and shift all offsets after it.
    lowered = text.replace("\u0130", "i").lower()
    secrets: list[Secret] = []
    for rule in _find_token_rules(text):
        _apply_rule(rule, text, secrets)
    for rule in _rules_for(_BLOCK_WORDS, lowered):
        _apply_rule(rule, text, secrets)
    for rule in _rules_for(_GUESS_WORDS, lowered):
        _apply_rule(rule, lowered, secrets, original=text)
    return secrets


def without_secrets(text: str) -> tuple[str, list[str]]:
    """Return a text with its secrets replaced by their kinds, and the list of kinds."""
    secrets = find(text)
    pieces, end = [], 0
    for secret in secrets:
        pieces += [text[end : secret.start], f"[redacted:{secret.kind}]"]
        end = secret.end
    return "".join([*pieces, text[end:]]), [secret.kind for secret in secrets]


def replacements(text: str) -> list[tuple[int, int, int]]:
    """Return the start and end of each secret, and the length of its replacement."""
    return [(secret.start, secret.end, len(f"[redacted:{secret.kind}]")) for secret in find(text)]


def scan_message(message: Message, mode: Mode) -> tuple[Message, Counter[str]]:
    """Scan a message before it is stored.

    :returns: the message to store, whose ``secrets`` lists the kinds it still contains, and the
        number of secrets of each kind.
    """
    if mode is Mode.OFF:
        return message, Counter()
    redacted, kinds = _redact(message)
    if not kinds:
        return message, Counter()
    if mode is Mode.REMOVE:
        return redacted, Counter(kinds)
    return replace(message, secrets=tuple(sorted(set(kinds)))), Counter(kinds)


def find_kinds(message: StoredMessage) -> tuple[str, ...]:
    """Return the distinct kinds of secrets in a message, sorted by name."""
    return tuple(sorted(set(_redact(message)[1])))


class Redactor:
    """Scans incoming messages and redacts output according to each partition's settings."""

    def __init__(self, mode_of: Callable[[str], str], hiding: Collection[Mode] = _HIDING) -> None:
        """Create a redactor.

        :param mode_of: returns the setting ``redact`` of a partition.
        :param hiding: modes in which secrets are hidden in output.
        """
        self.mode = cache(lambda partition: Mode(mode_of(partition)))
        self._hiding = hiding
        self._clean: set[int] = set()

    @cached_property
    def for_agents(self) -> "Redactor":
        """Return a redactor that hides secrets in every mode but ``off``.

        Agents send what they read to a provider. Incoming messages are scanned as before.
        """
        return Redactor(self.mode, _HIDING_FROM_AGENTS)

    def hides(self, partition: str) -> bool:
        """Return whether the secrets of a partition are hidden in output."""
        return self.mode(partition) in self._hiding

    def scan(self, message: Message, partition: str) -> tuple[Message, Counter[str]]:
        """Return a message as the partition stores it, and the number of secrets of each kind."""
        return scan_message(message, self.mode(partition))

    def messages(self, messages: Iterable[StoredMessage]) -> list[StoredMessage]:
        """Redact messages for output; unchanged messages are the same objects."""
        return [self.message(message) for message in messages]

    def message(self, message: StoredMessage) -> StoredMessage:
        """Redact one message for output.

        Unmarked messages are scanned, too: they may have been stored before marks existed. Messages
        without secrets are remembered, so that a server scans each of them once.
        """
        if not self.hides(message.partition):
            return message
        digest = hash(_join_texts(message))
        if digest in self._clean:
            return message
        redacted, kinds = _redact(message)
        if not kinds and len(self._clean) < _MOST_CLEAN:
            self._clean.add(digest)
        return redacted

    def conversation(self, partition: str, conversation: Conversation) -> Conversation:
        """Redact the metadata of a conversation for output."""
        return redact_conversation(conversation) if self.hides(partition) else conversation

    def text(self, partition: str, text: str) -> str:
        """Redact a text of a partition for output."""
        return without_secrets(text)[0] if self.hides(partition) else text

    def id(self, partition: str, identity: str) -> str:
        """Redact an id of a partition for output."""
        return redact_id(identity) if self.hides(partition) else identity


def describe_secrets(counts: Counter[str]) -> str:
    """Describe counts of secrets: ``3 secrets (aws-access-key, password-in-url 2)``."""
    total = counts.total()
    kinds = ", ".join(
        kind if count == 1 else f"{kind} {count:,}" for kind, count in sorted(counts.items())
    )
    return f"{total:,} {'secret' if total == 1 else 'secrets'} ({kinds})"


def redact_id(text: str) -> str:
    """Return an id, or a hash of it if it contains a secret, so that ids stay distinct."""
    if not find(text):
        return text
    import hashlib  # loads OpenSSL, which few messages need

    return f"redacted-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:32]}"


def redact_conversation(conversation: Conversation) -> Conversation:
    """Return the metadata of a conversation without its secrets."""
    names = ("title", "source", "model", "project", "branch")
    known = {name: text for name in names if (text := getattr(conversation, name))}
    redacted = {name: without_secrets(text)[0] for name, text in known.items()}
    return replace(conversation, id=redact_id(conversation.id), **redacted)


def _redact(message: _AnyMessage) -> tuple[_AnyMessage, Sequence[str]]:
    """Return a message without its secrets, and their kinds; the same object if it has none."""
    if not find(_join_texts(message)):  # one scan in the usual case
        return message, ()
    content, kinds = without_secrets(message.content)
    calls = []
    for call in message.tool_calls:
        arguments, further = without_secrets(call.arguments)
        calls.append(replace(call, arguments=arguments))
        kinds += further
    if further := _kinds_in_names(message):
        name = message.name and without_secrets(message.name)[0]
        ids: dict[str, Any] = {field: _redact_field(message, field) for field in _ID_FIELDS}
        tags = tuple(without_secrets(tag)[0] for tag in message.tags)
        message = replace(message, name=name, tags=tags, **ids)
        calls = [
            replace(call, id=redact_id(call.id), name=without_secrets(call.name)[0])
            for call in calls
        ]
        kinds += further
    if not kinds:
        return message, ()
    return replace(message, content=content, tool_calls=tuple(calls)), kinds


_ID_FIELDS = ("trace_id", "conversation_id", "tool_call_id", "source", "source_id")


def _redact_field(message: Message | StoredMessage, field: str) -> str | None:
    text: str | None = getattr(message, field)
    return text and redact_id(text)


def _kinds_in_names(message: Message | StoredMessage) -> list[str]:
    """Return the kinds of secrets in the names, tags and ids of a message."""
    return [secret.kind for text in _collect_names(message) for secret in find(text)]


def _collect_names(message: Message | StoredMessage) -> list[str]:
    values = [message.name, *message.tags, *(getattr(message, field) for field in _ID_FIELDS)]
    values += [text for call in message.tool_calls for text in (call.id, call.name)]
    return [text for text in values if text]


def _join_texts(message: Message | StoredMessage) -> str:
    """Return all texts of a message as one."""
    arguments = [call.arguments for call in message.tool_calls]
    return _BETWEEN.join([message.content, *arguments, *_collect_names(message)])


def _find_token_rules(text: str) -> list[Rule]:
    """Return the rules whose tokens occur in a text.

    Only long words are scanned, of which most texts have few.
    """
    long_words = " ".join(re.findall(_LONG_WORD, text))
    if not long_words:
        return []
    rules = _rules_for(_TOKEN_WORDS, long_words.lower())
    return [rule for rule in rules if re.search(rule.pattern, long_words)]


def _words_of(rules: Iterable[Rule]) -> list[tuple[str, Rule]]:
    return [(word, rule) for rule in rules for word in rule.words]


#: One list of words is searched five times faster than the words of one rule after another.
_TOKEN_WORDS, _BLOCK_WORDS, _GUESS_WORDS = map(_words_of, (TOKENS, BLOCKS, GUESSES))


def _rules_for(words: list[tuple[str, Rule]], lowered: str) -> Iterable[Rule]:
    """Return the rules that have a word in a text, in their order."""
    return dict.fromkeys([rule for word, rule in words if word in lowered])


def _apply_rule(rule: Rule, text: str, secrets: list[Secret], original: str = "") -> None:
    """Add the secrets that a rule finds, unless they overlap earlier ones.

    A value found by its context is also a secret elsewhere in the text.

    :param original: the text before lowercasing, for rules that match by context.
    """
    values: dict[str, None] = {}
    for match in _matches(rule, text):
        start, end = match.span(match.lastindex or 0)
        if not original:
            if is_real_token(match[0]):
                _add(Secret(rule.kind, start, end), secrets)
        elif is_real(original[start:end], in_code=rule.in_code):
            _add(Secret(rule.kind, start, end), secrets)
            if end - start >= _REPEATABLE_LENGTH:
                values[original[start:end]] = None
    for value in list(values)[:_MOST_REPEATED]:
        position = original.find(value)
        while position >= 0:
            _add(Secret(rule.kind, position, position + len(value)), secrets)
            position = original.find(value, position + len(value))


def _matches(rule: Rule, text: str) -> Iterator[re.Match[str]]:
    if not rule.from_word:
        yield from re.finditer(rule.pattern, text)
        return
    pattern = re.compile(rule.pattern)
    for word in rule.words:  # ten times faster than trying the pattern everywhere
        position = text.find(word)
        while position >= 0:
            if match := pattern.match(text, position):
                yield match
            position = text.find(word, match.end() if match else position + 1)


def _add(secret: Secret, secrets: list[Secret]) -> None:
    index = bisect_left(secrets, secret.start, key=attrgetter("start"))
    if index > 0 and secrets[index - 1].end > secret.start:
        return
    if index < len(secrets) and secrets[index].start < secret.end:
        return
    secrets.insert(index, secret)


def _find_in_blocks(text: str) -> list[Secret]:
    """Return the secrets of a long text, block by block."""
    secrets: list[Secret] = []
    for begin in range(0, len(text), _BLOCK):
        low, end = max(0, begin - _OVERLAP), begin + _BLOCK
        for secret in _find(text[low : end + _OVERLAP]):
            start = low + secret.start
            if begin <= start < end and (not secrets or start >= secrets[-1].end):
                secrets.append(Secret(secret.kind, start, low + secret.end))
    return secrets
