"""The stages that records pass before they are stored, in :data:`STAGES` by their cost.

Each returns the records that pass it and, by reason, those that it drops.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import compress
from typing import NamedTuple

from reservoir_cli.messages import THINKING, Message, Scope, StoredMessage, clean_name, clean_text
from reservoir_cli.redaction import Mode, redact_id
from reservoir_cli.retrieval.lookup import retention
from reservoir_cli.storage.tables.sources import Sources
from reservoir_cli.transfer.ingest import Ingestor
from reservoir_cli.transfer.reading.importer import Record
from reservoir_cli.transfer.skip_duplicates import ElsewhereFilter, ProxyFilter

#: Why records are dropped, as fields of :class:`~reservoir_cli.transfer.reports.ImportReport`.
ALREADY, FORGOTTEN, EXPIRED = "already", "forgotten", "expired"


class Passed(NamedTuple):
    """The result of a stage: the records that pass, and the others by the reason."""

    kept: list[Record]
    dropped: dict[str, list[Record]]


@dataclass(frozen=True, slots=True)
class Destination:
    """The partition and instance that the records of a file go to, and that override theirs.

    :param home: the instance of the format, for records that name none.
    """

    partition: str | None
    instance: str | None
    default_partition: str
    home: str | None = None

    def scope_of(self, record: Record) -> Scope:
        """Return the scope of a record; it keeps its instance unless ``partition`` is set."""
        partition = self.partition or clean_name(record.partition or self.default_partition)
        instance = record.instance if self.partition is None else None
        instance = instance and clean_name(instance)
        return Scope(partition, self.instance or instance or self.home or partition)


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How records are imported, the same for all files of an import.

    :param elsewhere: skip messages that other scopes have, and store new ones where their
        conversation or project is.
    :param counted: what a dry run has counted so far.
    """

    dry_run: bool = False
    renew: bool = False
    elsewhere: ElsewhereFilter | None = None
    include_forgotten: bool = False
    counted: set[int] = field(default_factory=set)


class Stages:
    """The stages of one file."""

    def __init__(self, ingestor: Ingestor, options: ImportOptions, now: datetime) -> None:
        self._store, self._redactor = ingestor.store, ingestor.redactor
        self._config = ingestor.config
        self._options, self._now = options, now
        self._elsewhere = options.elsewhere or ElsewhereFilter(ingestor.store)
        self._proxied = ProxyFilter(ingestor.store, ingestor.redactor)
        self._retention: dict[str, timedelta | None] = {}
        self._skipped_reply = False

    def drop_known(self, scope: Scope, records: Sequence[Record]) -> Passed:
        """Drop records that the scope has stored, or had until they were moved.

        One with another text passes if it may replace it, and so does a reply with new thinking.
        """
        messages = [record.message for record in records]
        known = self._store.stored(scope, messages)
        if self._options.renew and any(known):
            known = self._find_unchanged(scope, records, known)
        known = self._add_moved(scope, messages, known)
        for index in range(len(records) - 1, 0, -1):
            if not known[index] and records[index].message.name == THINKING:
                known[index - 1] = False
        return _split(records, known, ALREADY)

    def _add_moved(
        self, scope: Scope, messages: Sequence[Message], known: Sequence[bool]
    ) -> list[bool]:
        """Return ``known`` with those that are elsewhere since they were moved from the scope."""
        known = list(known)
        unknown = [index for index, is_known in enumerate(known) if not is_known]
        rest = [messages[index] for index in unknown]
        if self._redactor.mode(str(scope.partition)) is Mode.REMOVE:
            rest = list(map(_redact_ids, rest))
        is_moved = self._store.moved_away(scope, rest)
        moved = [message for message, is_away in zip(rest, is_moved, strict=True) if is_away]
        is_elsewhere = self._elsewhere.find_known(scope, moved)
        for index, is_there in zip(compress(unknown, is_moved), is_elsewhere, strict=True):
            known[index] = is_there
        return known

    def _find_unchanged(
        self, scope: Scope, records: Sequence[Record], known: Sequence[bool]
    ) -> list[bool]:
        ids = [(str(record.message.source), str(record.message.source_id)) for record in records]
        stored = Sources(self._store).find_stored(scope, list(compress(ids, known)))
        return [
            is_known and (own not in stored or _has_same_text(stored[own], record.message))
            for record, own, is_known in zip(records, ids, known, strict=True)
        ]

    def drop_forgotten(self, scope: Scope, records: Sequence[Record]) -> Passed:
        """Drop records of messages that were forgotten, unless these are included."""
        if self._options.include_forgotten:
            return Passed(list(records), {})
        forgotten = self.check_forgotten([record.message for record in records])
        kept = _split(records, forgotten, FORGOTTEN).kept
        return Passed(kept, self._sort_forgotten(scope, _select(records, forgotten)))

    def check_forgotten(self, messages: Sequence[Message]) -> list[bool]:
        """Return for each message whether one with its source and source id was forgotten."""
        forgotten = self._store.forgotten(messages)
        # In the mode "remove" an id with a secret is stored as its hash.
        clean = [_redact_ids(message) for message in messages]
        if all(new is old for new, old in zip(clean, messages, strict=True)):
            return forgotten
        return [a or b for a, b in zip(forgotten, self._store.forgotten(clean), strict=True)]

    def _sort_forgotten(self, scope: Scope, records: Sequence[Record]) -> dict[str, list[Record]]:
        """Return forgotten records by reason; those of another channel may be stored here."""
        unknown = self._skip_elsewhere(scope, records)
        messages = [record.message for record in unknown]
        if self._redactor.mode(str(scope.partition)) is Mode.REMOVE:
            messages = list(map(_redact_ids, messages))
        forgotten = _split(unknown, self._store.stored(scope, messages), ALREADY).kept
        return {ALREADY: _without(records, forgotten), FORGOTTEN: forgotten}

    def drop_expired(self, scope: Scope, records: Sequence[Record]) -> Passed:
        """Drop records older than the setting ``retention_days``."""
        partition = str(scope.partition)
        if partition not in self._retention:
            self._retention[partition] = retention(self._config, partition)
        age = self._retention[partition]
        if age is None:
            return Passed(list(records), {})
        oldest = self._now - age
        times = [record.message.created_at or self._now for record in records]
        return _split(records, [time <= oldest for time in times], EXPIRED)

    def drop_repeated(self, scope: Scope, records: Sequence[Record]) -> Passed:
        """Drop records that the proxy has stored, or another scope if copies are unwanted."""
        kept = self._skip_elsewhere(scope, self._proxied.skip_known(scope, records))
        return Passed(kept, {ALREADY: _without(records, kept)})

    def _skip_elsewhere(self, scope: Scope, records: Sequence[Record]) -> list[Record]:
        """Return records without those that another scope has, if copies are unwanted."""
        if not self._options.elsewhere:
            return list(records)
        known = self._elsewhere.find_known(scope, [record.message for record in records])
        return _split(records, known, ALREADY).kept

    def drop_forgotten_texts(self, scope: Scope, records: Sequence[Record]) -> Passed:
        """Drop messages forgotten under another id, or if included, replaced by an edit."""
        conversations = {record.message.conversation_id for record in records}
        if not self._store.forgotten_sessions(conversations):
            return Passed(list(records), {})
        forgotten = self._check_forgotten_texts(scope, [record.message for record in records])
        for index, record in enumerate(records):
            if record.message.name != THINKING:  # thinking belongs to the reply before it
                self._skipped_reply = forgotten[index]
            elif self._skipped_reply:
                forgotten[index] = True
        kept = _split(records, forgotten, FORGOTTEN).kept
        return Passed(kept, self._sort_forgotten(scope, _without(records, kept)))

    def _check_forgotten_texts(self, scope: Scope, messages: Sequence[Message]) -> list[bool]:
        partition = str(scope.partition)
        redacted = [self._redactor.scan(message, partition)[0] for message in messages]
        if not self._options.include_forgotten:
            return self._store.forgotten_contents(redacted)
        by_id = self.check_forgotten(messages)
        others = [text for text, is_own in zip(redacted, by_id, strict=True) if not is_own]
        replaced = iter(self._store.replaced_contents(others))
        return [not is_own and next(replaced) for is_own in by_id]


#: The stages, cheapest first.
STAGES: Sequence[Callable[[Stages, Scope, Sequence[Record]], Passed]] = (
    Stages.drop_known,
    Stages.drop_forgotten,
    Stages.drop_expired,
    Stages.drop_repeated,
    Stages.drop_forgotten_texts,
)


def _has_same_text(stored: StoredMessage, message: Message) -> bool:
    old = stored.content, stored.name, len(stored.tool_calls)
    return old == (clean_text(message.content), message.name, len(message.tool_calls))


def _split(records: Sequence[Record], dropped: Sequence[bool], reason: str) -> Passed:
    kept = [record for record, is_out in zip(records, dropped, strict=True) if not is_out]
    return Passed(kept, {reason: _select(records, dropped)})


def _select(records: Sequence[Record], flags: Sequence[bool]) -> list[Record]:
    return [record for record, is_chosen in zip(records, flags, strict=True) if is_chosen]


def _without(records: Sequence[Record], others: Sequence[Record]) -> list[Record]:
    excluded = set(map(id, others))
    return [record for record in records if id(record) not in excluded]


def _redact_ids(message: Message) -> Message:
    names = message.source, message.source_id, message.conversation_id
    source, source_id, conversation = redacted = tuple(text and redact_id(text) for text in names)
    if redacted == names:
        return message
    return replace(message, source=source, source_id=source_id, conversation_id=conversation)
