"""Mark, mask or remove the secrets of messages, according to each partition's settings."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from reservoir_cli.messages import Conversation, Message, StoredMessage
from reservoir_cli.util.progress import counted

if TYPE_CHECKING:
    from reservoir_cli.redaction.find_secrets import Secret

MASKED_ID = "redacted-"  #: The beginning of every masked id.
_MOST_CLEAN = 100_000  #: How many messages without a secret are remembered by their hashes.
_BETWEEN = "\n\0\n"  #: Separates texts that are scanned together: no secret contains it.

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


def find_kinds(message: StoredMessage) -> tuple[str, ...]:
    """Return the distinct kinds of secrets in a message, sorted by name."""
    return tuple(sorted(set(_redact(message)[1])))


class Redactor:
    """Scans incoming messages and redacts output according to each partition's settings."""

    def __init__(self, mode_of: Callable[[str], str], hiding: Collection[Mode] = _HIDING) -> None:
        """Create a redactor: ``mode_of`` returns the setting ``redact`` of a partition."""
        self.mode = cache(lambda partition: Mode(mode_of(partition)))
        self._hiding = hiding
        self._clean: set[int] = set()

    @cached_property
    def for_agents(self) -> "Redactor":
        """Return a redactor that hides secrets in every mode but ``off``: providers read it."""
        return Redactor(self.mode, _HIDING_FROM_AGENTS)

    def hides(self, partition: str) -> bool:
        """Return whether the secrets of a partition are hidden in output."""
        return self.mode(partition) in self._hiding

    def scan(self, message: Message, partition: str) -> tuple[Message, Counter[str]]:
        """Scan a message before a partition stores it.

        :returns: the message to store, whose ``secrets`` are the kinds it still has, and counts.
        """
        mode = self.mode(partition)
        if mode is Mode.OFF:
            return message, Counter()
        redacted, kinds = _redact(message)
        if kinds and mode is not Mode.REMOVE:
            redacted = replace(message, secrets=tuple(sorted(set(kinds))))
        return redacted, Counter(kinds)

    def stored_text(self, partition: str, text: str) -> str:
        """Return a text as the partition stores it."""
        return without_secrets(text)[0] if self.mode(partition) is Mode.REMOVE else text

    def messages(self, messages: Iterable[StoredMessage]) -> list[StoredMessage]:
        """Redact messages for output; unchanged messages are the same objects."""
        return [self.message(message) for message in messages]

    def message(self, message: StoredMessage) -> StoredMessage:
        """Redact one message for output.

        Unmarked ones may be older than marks, and are scanned; clean ones are remembered.
        """
        if not self.hides(message.partition):
            return message
        digest = hash(message)
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

    def id(self, partition: str | None, identity: str) -> str:
        """Redact an id of a partition for output; ``None``: of any, which may hide secrets."""
        return redact_id(identity) if partition is None or self.hides(partition) else identity


def without_secrets(
    text: str, known: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, list[str]]:
    """Return a text with its secrets, also those ``known`` elsewhere, as kinds; and those kinds."""
    from reservoir_cli.redaction.find_secrets import find  # most contexts hide nothing

    secrets = find(text, known)
    pieces, end = [], 0
    for secret in secrets:
        pieces += [text[end : secret.start], _replacement(secret)]
        end = secret.end
    return "".join([*pieces, text[end:]]), [secret.kind for secret in secrets]


def replacements(text: str) -> list[tuple[int, int, int]]:
    """Return the start and end of each secret, and the length of its replacement."""
    from reservoir_cli.redaction.find_secrets import find

    return [(secret.start, secret.end, len(_replacement(secret))) for secret in find(text)]


def _replacement(secret: "Secret") -> str:
    return f"[redacted:{secret.kind}]"


def describe_secrets(counts: Counter[str]) -> str:
    """Describe counts of secrets: ``3 secrets (aws-access-key, password-in-url 2)``."""
    kinds = ", ".join(
        kind if count == 1 else f"{kind} {count:,}" for kind, count in sorted(counts.items())
    )
    return f"{counted(counts.total(), 'secret')} ({kinds})"


def redact_id(text: str) -> str:
    """Return an id, or a hash of it if it contains a secret, so that ids stay distinct."""
    if not replacements(text):
        return text
    import hashlib  # loads OpenSSL, which few messages need

    return f"{MASKED_ID}{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:32]}"


def redact_conversation(conversation: Conversation) -> Conversation:
    """Return the metadata of a conversation without its secrets."""
    names = ("title", "source", "model", "project", "branch")
    texts = {name: text for name in names if (text := getattr(conversation, name))}
    redacted = {name: without_secrets(text)[0] for name, text in texts.items()}
    return replace(conversation, id=redact_id(conversation.id), **redacted)


def _redact(message: _AnyMessage) -> tuple[_AnyMessage, Sequence[str]]:
    """Return a message without its secrets, and their kinds; the same object if it has none."""
    from reservoir_cli.redaction.find_secrets import find, find_values

    arguments: list[str] = [call.arguments for call in message.tool_calls]
    texts = [message.content, *arguments, *_collect_names(message)]
    if not find(_BETWEEN.join(texts)):  # one scan in the usual case
        return message, ()
    known = find_values(texts)
    content, kinds = without_secrets(message.content, known)
    calls = []
    for call in message.tool_calls:
        masked, further = without_secrets(call.arguments, known)
        calls.append(replace(call, arguments=masked))
        kinds += further
    name, further = without_secrets(message.name or "", known)
    tags = [without_secrets(tag, known) for tag in message.tags]
    # The same id in another message has to be replaced by the same hash, so only by its own text.
    further += [kind for _, tag_kinds in tags for kind in tag_kinds]
    further += [secret.kind for text in _collect_ids(message) for secret in find(text)]
    if further:
        ids: dict[str, Any] = {
            field: redact_id(text) for field in _ID_FIELDS if (text := getattr(message, field))
        }
        clean_tags = tuple(tag for tag, _ in tags)
        message = replace(message, name=message.name and name, tags=clean_tags, **ids)
        calls = [
            replace(call, id=redact_id(call.id), name=without_secrets(call.name)[0])
            for call in calls
        ]
        kinds += further
    if not kinds:
        return message, ()
    return replace(message, content=content, tool_calls=tuple(calls)), kinds


_ID_FIELDS = ("trace_id", "conversation_id", "tool_call_id", "source", "source_id")


def _collect_names(message: Message | StoredMessage) -> list[str]:
    return [*filter(None, [message.name]), *message.tags, *_collect_ids(message)]


def _collect_ids(message: Message | StoredMessage) -> list[str]:
    values = [getattr(message, field) for field in _ID_FIELDS]
    values += [text for call in message.tool_calls for text in (call.id, call.name)]
    return [text for text in values if text]
