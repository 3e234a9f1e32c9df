"""Bringing messages in: read, checked, and stored in batches that each are whole."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from itertools import islice

from reservoir_cli.messages import (
    Conversation,
    Message,
    Scope,
    StoredMessage,
    clean_name,
    clean_text,
)
from reservoir_cli.redaction import Mode, inspected, redact_conversation, redact_id
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.links import LinkThreshold
from reservoir_cli.storage.records import Passage
from reservoir_cli.tokens import TokenCounter
from reservoir_cli.transfer.echoes import quotes, without_contexts
from reservoir_cli.transfer.importers import Record, Skipped, Vectors
from reservoir_cli.util.times import is_far_ahead

_BATCH = 1_000
#: So many reasons are kept; of a file in which everything is wrong, the others are counted only.
_REASONS = 1_000


@dataclass
class Totals:
    """What an import did, or with a dry run would do.

    :param forgotten: messages that were forgotten once, and stay so.
    :param contexts: contexts of our own that were taken out of what is new.
    :param ahead: messages whose time is more than a day ahead.
    :param mended: messages in which something that is no text was replaced by U+FFFD.
    :param secrets: how many secrets of each kind were found in what was imported.
    :param modes: what was done about secrets, in one partition or another.
    :param passed_over: files of a folder or zip that are of no use here.
    :param conversations: ids of those that were met, whether new or not.
    :param reasons: each of the ``skipped`` with its place, up to a thousand.
    :param unreadable: what was named to be imported, and holds nothing but what was skipped.
    """

    imported: int = 0
    already: int = 0
    skipped: int = 0
    forgotten: int = 0
    contexts: int = 0
    ahead: int = 0
    mended: int = 0
    passed_over: int = 0
    secrets: Counter[str] = field(default_factory=Counter)
    modes: set[Mode] = field(default_factory=set)
    conversations: set[str] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def add(self, other: "Totals") -> None:
        """Count what another import did."""
        self.imported += other.imported
        self.already += other.already
        self.skipped += other.skipped
        self.forgotten += other.forgotten
        self.contexts += other.contexts
        self.ahead += other.ahead
        self.mended += other.mended
        self.passed_over += other.passed_over
        self.secrets += other.secrets
        self.modes |= other.modes
        self.conversations |= other.conversations
        self.reasons += other.reasons[: _REASONS - len(self.reasons)]
        self.unreadable += other.unreadable

    def skip(self, reason: str) -> None:
        """Count something that is no message."""
        self.skipped += 1
        if len(self.reasons) < _REASONS:
            self.reasons.append(reason)

    def line(self, *, dry_run: bool = False) -> str:
        """The one line a person reads."""
        done = "would import" if dry_run else "imported"
        line = f"{done} {self.imported:,}, already there {self.already:,}, skipped {self.skipped:,}"
        return f"{line}, contexts taken out {self.contexts:,}" if self.contexts else line


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the records of a file go.

    :param partition: put everything there, whatever the records say; so with ``instance``.
    :param home: the instance of the format, for records that name none.
    """

    partition: str | None
    instance: str | None
    default_partition: str
    home: str | None = None

    def of(self, record: Record) -> Scope:
        """The place of a record; it keeps its instance unless the whole file goes elsewhere."""
        there = self.partition or clean_name(record.partition or self.default_partition)
        own = clean_name(record.instance) if record.instance and self.partition is None else None
        return Scope(there, self.instance or own or self.home or there)


@dataclass(frozen=True, slots=True)
class Model:
    """The model whose vectors a store takes.

    :param synapse_threshold: from this likeness on messages are linked.
    """

    model_id: str
    name: str
    dimensions: int
    synapse_threshold: LinkThreshold


def load(
    store: Store,
    records: Iterable[Record | Skipped],
    destination: Destination,
    *,
    where: str,
    counter: TokenCounter,
    now: datetime,
    redact: Callable[[str], str] = lambda _: Mode.OFF,
    dry_run: bool = False,
    after_batch: Callable[[], None] = lambda: None,
    model: Callable[[], Model | None] = lambda: None,
) -> Totals:
    """Save the messages of a file; what is there already is left as it is.

    :param where: the file's name, for the reasons.
    :param redact: what is done about secrets in a partition, a :class:`Mode`.
    :param dry_run: find out what would be done, and leave the store as it was.
    :param after_batch: called each time a batch is safe.
    :param model: asked for when a file has vectors; those of another model are left out.
    """
    loader = _Loader(store, destination, counter, now, where, redact)
    source = iter(records)
    while batch := list(islice(source, _BATCH)):
        if not dry_run and loader.model is None and any(map(_has_vectors, batch)):
            loader.model = model()
        if dry_run:
            with suppress(_Undone), store.write():
                loader.save(batch, dry_run=True)
                raise _Undone
        else:
            with store.write():
                loader.save(batch)
        after_batch()
    return loader.totals


def _has_vectors(record: Record | Skipped) -> bool:
    return isinstance(record, Record) and record.vectors is not None


def _passages_of(vectors: Vectors, message_id: int, model: Model) -> list[Passage]:
    """Vectors of a file as passages; none if they are of another model, or no unit vectors."""
    import numpy as np

    if vectors.model_id != model.model_id:
        return []
    if any(len(vector) != model.dimensions for *_, vector in vectors.passages):
        return []
    matrix = np.array([vector for *_, vector in vectors.passages], np.float32)
    if not np.allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-3):
        return []
    return [
        Passage(message_id, number, start, end, vector)
        for number, ((start, end, _), vector) in enumerate(
            zip(vectors.passages, matrix, strict=True)
        )
    ]


def _with_clean_ids(message: Message) -> Message:
    """A message with its source and id as they are stored where secrets are removed."""
    source, number = (text and redact_id(text) for text in (message.source, message.source_id))
    if (source, number) == (message.source, message.source_id):
        return message
    return replace(message, source=source, source_id=number)


class _Undone(Exception):
    """Takes a transaction back."""


class _Loader:
    """Saves the batches of one file."""

    def __init__(
        self,
        store: Store,
        destination: Destination,
        counter: TokenCounter,
        now: datetime,
        where: str,
        redact: Callable[[str], str],
    ) -> None:
        self.totals = Totals()
        self.model: Model | None = None
        self._store, self._destination, self._counter = store, destination, counter
        self._now, self._where = now, where
        self._mode = cache(lambda partition: Mode(redact(partition)))
        self._clock = _Clock(now)
        self._told: dict[Scope, Conversation] = {}
        self._quoting: set[tuple[str, str]] = set()
        self._counted: set[int] = set()

    def save(self, batch: Sequence[Record | Skipped], *, dry_run: bool = False) -> None:
        """Add a batch to the store, and to the totals."""
        records = self._not_forgotten(batch)
        contexts: Counter[tuple[str | None, str | None]] = Counter()
        records = [each for each in map(partial(self._cleaned, contexts), records) if each]
        for scope, some in self._by_place(records).items():
            mode = self._mode(str(scope.partition))
            self.totals.modes.add(mode)
            checked = [inspected(each.message, mode) for each in some]
            messages = [message for message, _ in checked]
            self._store.add_conversations(scope, self._news(scope, some))
            met = (each.conversation_id for each in messages)
            self.totals.conversations.update(each for each in met if each)
            added = self._store.add(scope, messages, counter=self._counter, now=self._now)
            self._take_vectors(some, messages, added)
            new = [each is not None for each in added]
            if dry_run:
                new = self._first_time(scope, messages, new)
            fresh = sum(new)
            self.totals.ahead += sum(
                is_new and is_far_ahead(each.created_at, self._now)
                for each, is_new in zip(messages, new, strict=True)
            )
            for (_, kinds), is_new in zip(checked, new, strict=True):
                self.totals.secrets += kinds if is_new else Counter()
            self.totals.mended += sum(clean_text(each.content) != each.content for each in messages)
            self.totals.contexts += sum(
                contexts[each.source, each.source_id]
                for each, is_new in zip(messages, new, strict=True)
                if is_new
            )
            self.totals.imported += fresh
            self.totals.already += len(added) - fresh
        for bad in batch:
            if isinstance(bad, Skipped):
                self.totals.skip(f"{self._where}, {bad.place}: {bad.reason}")

    def _not_forgotten(self, batch: Sequence[Record | Skipped]) -> list[Record]:
        """The records of a batch, without what was forgotten once."""
        records = [each for each in batch if isinstance(each, Record)]
        messages = [each.message for each in records]
        gone = self._store.forgotten(messages)
        # Under "remove" an id with a secret is stored as its fingerprint.
        clean = [_with_clean_ids(message) for message in messages]
        if any(new is not old for new, old in zip(clean, messages, strict=True)):
            gone = [a or b for a, b in zip(gone, self._store.forgotten(clean), strict=True)]
        self.totals.forgotten += sum(gone)
        return [each for each, was in zip(records, gone, strict=True) if not was]

    def _cleaned(
        self, contexts: Counter[tuple[str | None, str | None]], record: Record
    ) -> Record | None:
        """A record without contexts of our own, and without the vectors and the title of those.

        :param contexts: counts them by source and id; those of which nothing is left count at once.
        """
        message, count = without_contexts(record.message)
        if not count:
            return record
        about = record.conversation
        if about and about.title and quotes(about.title, record.message.content):
            self._quoting.add((about.id, about.title))
        if message is None:
            self.totals.contexts += count
            return None
        contexts[message.source, message.source_id] += count
        return replace(record, message=message, vectors=None)

    def _take_vectors(
        self,
        records: Sequence[Record],
        messages: Sequence[Message],
        added: Sequence[StoredMessage | None],
    ) -> None:
        """Take over the vectors that come with messages, where they are of the store's model.

        A message from which a secret was taken says something else than its vectors.
        """
        if self.model is None:
            return
        given = {
            stored.key: passages
            for record, message, stored in zip(records, messages, added, strict=True)
            if stored and record.vectors and message.content == record.message.content
            if (passages := _passages_of(record.vectors, stored.id, self.model))
        }
        if given:
            if self._store.active_model() is None:
                self._store.activate_model(self.model.model_id, self.model.name)
            self._store.add_passages(self.model.model_id, given, self.model.synapse_threshold)

    def _by_place(self, records: Sequence[Record]) -> dict[Scope, list[Record]]:
        """Records by partition and instance, each in the order of the file, and with a time."""
        places: dict[Scope, list[Record]] = {}
        self._clock.look_ahead(each.message for each in records)
        for each in records:
            there = self._destination.of(each)
            timed = self._clock.timed(each.message)
            places.setdefault(there, []).append(replace(each, message=timed))
        return places

    def _news(self, scope: Scope, records: Iterable[Record]) -> list[Conversation]:
        """Conversations of which something is told that was not told before."""
        news: list[Conversation] = []
        for each in records:
            told = each.conversation
            if told is not None and told != self._told.get(scope):
                self._told[scope] = told
                if told.title and (told.id, told.title) in self._quoting:
                    told = replace(told, title=None)
                if self._mode(str(scope.partition)) is Mode.REMOVE:
                    told = redact_conversation(told)
                news.append(told)
        return news

    def _first_time(
        self, scope: Scope, messages: Iterable[Message], added: Iterable[bool]
    ) -> list[bool]:
        """Which were added that no batch before has added, and taken back."""
        first = []
        for message, was_added in zip(messages, added, strict=True):
            key = hash((scope, message.source, message.source_id))
            first.append(was_added and key not in self._counted)
            self._counted.add(key)
        return first


@dataclass
class _Clock:
    """Times for records that have none: the predecessor's, and for the first ones the successor's.

    In a file without any it is the import's. A time far ahead is given to no other record.
    """

    now: datetime
    previous: datetime | None = None
    begun: bool = False

    def look_ahead(self, messages: Iterable[Message]) -> None:
        """Learn the first time of a file from its first batch."""
        if not self.begun:
            self.previous = next(filter(None, map(self._usable, messages)), None)
        self.begun = True

    def timed(self, message: Message) -> Message:
        """Return a message with the time it has in its file, if there is one."""
        if message.created_at is None:
            return replace(message, created_at=self.previous)
        self.previous = self._usable(message) or self.previous
        return message

    def _usable(self, message: Message) -> datetime | None:
        return None if is_far_ahead(message.created_at, self.now) else message.created_at
