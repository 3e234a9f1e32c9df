"""Store the new records of one file, batch by batch, each in its partition and instance."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import compress, islice

from reservoir_cli.messages import (
    Conversation,
    Key,
    Message,
    Scope,
    StoredMessage,
    clean_name,
    clean_text,
)
from reservoir_cli.redaction import Mode, redact_conversation, redact_id
from reservoir_cli.retrieval.embed_messages import Model
from reservoir_cli.retrieval.expired_messages import retention
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.sources import Sources
from reservoir_cli.transfer.importers import Record, Skipped, Vectors
from reservoir_cli.transfer.importers.content_blocks import THINKING
from reservoir_cli.transfer.ingest import Added, Ingestor
from reservoir_cli.transfer.reports import ImportReport
from reservoir_cli.transfer.returned_contexts import is_excerpt, remove_contexts
from reservoir_cli.transfer.skip_duplicates import ElsewhereFilter, ProxyFilter
from reservoir_cli.util.clock import is_far_ahead

_BATCH = 1_000
#: Printed when Ctrl-C ends an import.
INTERRUPTED = "interrupted; stored messages are kept, and the same command imports the rest"
#: Source and source id of a message.
Origin = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Destination:
    """The partition and instance that the records of a file go to.

    :param partition: overrides the partitions of the records; likewise ``instance``.
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

    :param dry_run: report what would be imported, and leave the store unchanged.
    :param renew: replace stored messages that are longer now.
    :param elsewhere: skip messages that other partitions and instances already have.
    :param include_forgotten: also store messages that were forgotten earlier.
    :param counted: what a dry run has counted so far.
    """

    dry_run: bool = False
    renew: bool = False
    elsewhere: ElsewhereFilter | None = None
    include_forgotten: bool = False
    counted: set[int] = field(default_factory=set)


class FileImport:
    """Stores the records of one file in batches.

    :param where: the file's name, for the reasons of skipped records.
    """

    def __init__(
        self,
        ingestor: Ingestor,
        destination: Destination,
        options: ImportOptions,
        where: str,
        now: datetime,
    ) -> None:
        self.report = ImportReport()
        self._ingestor, self._store = ingestor, ingestor.store
        self._destination, self._options = destination, options
        self._counter = ingestor.counter(destination.partition or destination.default_partition)
        self._where, self._now = where, now
        self._model: Model | None = None
        self._clock = _Clock(now)
        self._last_conversations: dict[Scope, Conversation] = {}
        self._context_titles: set[tuple[str, str]] = set()
        self._contexts: Counter[Origin] = Counter()
        self._retention: dict[str, timedelta | None] = {}
        self._proxied = ProxyFilter(self._store, ingestor.redactor)
        self._skipped_reply = False

    def load(
        self, records: Iterable[Record | Skipped], after_batch: Callable[[], None] = lambda: None
    ) -> ImportReport:
        """Store the new records of the file; each batch is one transaction.

        :param after_batch: called after each batch.
        """
        source = iter(records)
        while batch := list(islice(source, _BATCH)):
            if self._options.dry_run:
                with suppress(_DryRunRollback), self._store.write():
                    self._save(batch)
                    raise _DryRunRollback
            else:
                self._choose_model(batch)
                with self._store.write():
                    self._save(batch)
            after_batch()
        return self.report

    def _choose_model(self, batch: Sequence[Record | Skipped]) -> None:
        """Determine the model whose embeddings can be imported, once a batch has embeddings."""
        if self._model is None and any(
            isinstance(record, Record) and record.vectors is not None for record in batch
        ):
            self._model = self._ingestor.indexer.importable_model()

    def _save(self, batch: Sequence[Record | Skipped]) -> None:
        """Store a batch and add it to the report."""
        self._contexts.clear()
        records = self._skip_forgotten(batch)
        records = [cleaned for cleaned in map(self._remove_contexts, records) if cleaned]
        for scope, scoped in self._group_by_scope(records).items():
            remaining = self._proxied.skip_known(scope, scoped)
            if self._options.elsewhere:
                remaining = self._options.elsewhere.skip_known(scope, remaining)
            self._count_known(scope, scoped, remaining)
            remaining = self._skip_forgotten_texts(scope, remaining)
            self._store.add_conversations(scope, self._changed_conversations(scope, remaining))
            messages = [record.message for record in remaining]
            added = self._ingestor.add(scope, messages, self._now, counter=self._counter)
            self._store_vectors(remaining, added)
            new = [stored is not None for stored in added.stored]
            new = self._select_first(scope, added, new) if self._options.dry_run else new
            self._update_report(scope, added, new)
            if self._options.include_forgotten:
                self._restore(compress(zip(messages, added.messages, strict=True), new))
            if self._options.renew:
                self._replace_grown(scope, added)
        for skipped in batch:
            if isinstance(skipped, Skipped):
                self.report.skip(f"{self._where}, {skipped.place}: {skipped.reason}")

    def _update_report(self, scope: Scope, added: Added, new: Sequence[bool]) -> None:
        report, messages = self.report, added.messages
        imported = [message for message, is_new in zip(messages, new, strict=True) if is_new]
        report.modes.add(self._mode(scope))
        report.conversations.update(
            message.conversation_id for message in messages if message.conversation_id
        )
        report.secrets += added.secrets_of(new)
        report.ahead += sum(is_far_ahead(message.created_at, self._now) for message in imported)
        report.contexts += sum(
            self._contexts[message.source, message.source_id] for message in imported
        )
        report.mended += sum(clean_text(message.content) != message.content for message in messages)
        report.imported += len(imported)
        report.already += len(messages) - len(imported)

    def _replace_grown(self, scope: Scope, added: Added) -> None:
        """Replace messages that were stored before they were complete."""
        known = {
            (message.source, message.source_id): message
            for message, result in zip(added.messages, added.stored, strict=True)
            if result is None and message.source and message.source_id
        }
        grown: dict[Key, Message] = {}
        for source in {source for source, _ in known if source}:
            ids = [source_id for name, source_id in known if name == source and source_id]
            stored_by_id = Sources(self._store).find_stored(scope, source, ids)
            longer = [
                stored
                for source_id, stored in stored_by_id.items()
                if _has_grown(stored, known[source, source_id])
            ]
            edited = {stored.key for stored in self._store.edited(longer)} if longer else set()
            grown |= {
                stored.key: known[source, stored.source_id]
                for stored in longer
                if stored.key not in edited
            }
        self._store.replace(grown, counter=self._counter, now=self._now)
        self.report.renewed += len(grown)
        self.report.already -= len(grown)

    def _is_expired(self, scope: Scope, message: Message) -> bool:
        partition = str(scope.partition)
        if partition not in self._retention:
            self._retention[partition] = retention(self._ingestor.config, partition)
        age, moment = self._retention[partition], message.created_at or self._now
        return age is not None and moment <= self._now - age

    def _mode(self, scope: Scope) -> Mode:
        return self._ingestor.redactor.mode(str(scope.partition))

    def _skip_forgotten(self, batch: Sequence[Record | Skipped]) -> list[Record]:
        """Return the records of a batch, without forgotten messages unless they are included."""
        records = [record for record in batch if isinstance(record, Record)]
        if self._options.include_forgotten:
            return records
        remaining: list[Record] = []
        dropped: dict[Scope, list[Record]] = {}
        forgotten = self._check_forgotten([record.message for record in records])
        for record, is_forgotten in zip(records, forgotten, strict=True):
            if is_forgotten:
                dropped.setdefault(self._destination.scope_of(record), []).append(record)
            else:
                remaining.append(record)
        for scope, scoped in dropped.items():
            self._count_forgotten(scope, scoped)
        return remaining

    def _check_forgotten(self, messages: Sequence[Message]) -> list[bool]:
        """Return for each message whether one with its source and source id was forgotten."""
        forgotten = self._store.forgotten(messages)
        # In the mode "remove" an id with a secret is stored as its hash.
        clean = [_redact_ids(message) for message in messages]
        if all(new is old for new, old in zip(clean, messages, strict=True)):
            return forgotten
        return [a or b for a, b in zip(forgotten, self._store.forgotten(clean), strict=True)]

    def _restore(self, imported: Iterable[tuple[Message, Message]]) -> None:
        """Remove the tombstones of messages that were forgotten earlier, and count them.

        :param imported: new messages, each as in the file and as stored.
        """
        pairs = list(imported)
        by_id = self._check_forgotten([message for message, _ in pairs])
        others = [stored for (_, stored), is_own in zip(pairs, by_id, strict=True) if not is_own]
        by_content = iter(self._store.forgotten_contents(others))
        restored = list(compress(pairs, [is_own or next(by_content) for is_own in by_id]))
        self._store.remove_tombstones([message for pair in restored for message in pair])
        self.report.restored += len(restored)

    def _count_forgotten(self, scope: Scope, records: Sequence[Record]) -> None:
        """Count messages that were forgotten: those of another place may be stored in this one."""
        elsewhere = self._options.elsewhere
        unknown = elsewhere.skip_known(scope, records) if elsewhere else records
        messages = [record.message for record in unknown]
        if self._mode(scope) is Mode.REMOVE:
            messages = list(map(_redact_ids, messages))
        stored = self._store.stored(scope, messages)
        self._count_known(scope, records, unknown)
        self.report.already += sum(stored)
        self.report.forgotten += len(unknown) - sum(stored)
        self._count_conversations(scope, compress(messages, stored))

    def _count_known(self, scope: Scope, records: Iterable[Record], new: Iterable[Record]) -> None:
        """Count the records of a scope that are stored elsewhere, or by the proxy.

        :param new: those among them that are not.
        """
        unknown = set(map(id, new))
        known = [record.message for record in records if id(record) not in unknown]
        self.report.already += len(known)
        self._count_conversations(scope, known)

    def _count_conversations(self, scope: Scope, messages: Iterable[Message]) -> None:
        """Count the conversations of known messages, by the ids that the scope stores."""
        ids = {message.conversation_id for message in messages if message.conversation_id}
        self.report.conversations |= (
            set(map(redact_id, ids)) if self._mode(scope) is Mode.REMOVE else ids
        )

    def _skip_forgotten_texts(self, scope: Scope, records: list[Record]) -> list[Record]:
        """Return records without messages that were forgotten under another source's id.

        If those are included, only messages that an edit replaced are left out.
        """
        conversations = {record.message.conversation_id for record in records}
        if not self._store.forgotten_sessions(conversations):
            return records
        messages = [self._redact(record.message, str(scope.partition)) for record in records]
        if self._options.include_forgotten:
            by_id = self._check_forgotten([record.message for record in records])
            others = [text for text, is_own in zip(messages, by_id, strict=True) if not is_own]
            replaced = iter(self._store.replaced_contents(others))
            forgotten = [not is_own and next(replaced) for is_own in by_id]
        else:
            forgotten = self._store.forgotten_contents(messages)
        remaining: list[Record] = []
        dropped: list[Record] = []
        for record, is_forgotten in zip(records, forgotten, strict=True):
            if record.message.name != THINKING:  # thinking belongs to the reply before it
                self._skipped_reply = is_forgotten
            is_dropped = is_forgotten or (record.message.name == THINKING and self._skipped_reply)
            (dropped if is_dropped else remaining).append(record)
        self._count_forgotten(scope, dropped)
        return remaining

    def _redact(self, message: Message, partition: str) -> Message:
        return self._ingestor.redactor.scan(message, partition)[0]

    def _remove_contexts(self, record: Record) -> Record | None:
        """Return a record without contexts printed by Reservoir; ``None`` if nothing remains.

        A title and an embedding that were made from such a context are dropped, too.
        """
        message, count = remove_contexts(record.message)
        if not count:
            return record
        conversation, content = record.conversation, record.message.content
        if conversation and conversation.title and is_excerpt(conversation.title, content):
            self._context_titles.add((conversation.id, conversation.title))
        if message is None:
            self.report.contexts += count
            return None
        self._contexts[message.source, message.source_id] += count
        return replace(record, message=message, vectors=None)

    def _store_vectors(self, records: Sequence[Record], added: Added) -> None:
        """Store the embeddings that come with messages, if they are from the store's model.

        The embedding of a message from which a secret was removed is dropped: it is of the old
        text.
        """
        if self._model is None:
            return
        passages = {
            stored.key: embedded
            for record, message, stored in zip(records, added.messages, added.stored, strict=True)
            if stored and record.vectors and message.content == record.message.content
            if (embedded := _to_passages(record.vectors, stored.id, self._model))
        }
        if passages:
            if self._store.active_model() is None:
                self._store.activate_model(self._model.model_id, self._model.name)
            self._store.add_passages(self._model.model_id, passages)

    def _group_by_scope(self, records: Sequence[Record]) -> dict[Scope, list[Record]]:
        """Group records by scope, in the order of the file, with times filled in."""
        groups: dict[Scope, list[Record]] = {}
        self._clock.look_ahead(record.message for record in records)
        for record in records:
            timed = replace(record, message=self._clock.set_time(record.message))
            scope = self._destination.scope_of(record)
            if self._is_expired(scope, timed.message):
                self.report.expired += 1
            else:
                groups.setdefault(scope, []).append(timed)
        return groups

    def _changed_conversations(self, scope: Scope, records: Iterable[Record]) -> list[Conversation]:
        """Return the conversations whose metadata differ from those stored last."""
        new: list[Conversation] = []
        for record in records:
            conversation = record.conversation
            if conversation is not None and conversation != self._last_conversations.get(scope):
                self._last_conversations[scope] = conversation
                if (conversation.id, conversation.title) in self._context_titles:
                    conversation = replace(conversation, title=None)
                if self._mode(scope) is Mode.REMOVE:
                    conversation = redact_conversation(conversation)
                new.append(conversation)
        return new

    def _select_first(self, scope: Scope, added: Added, new: Iterable[bool]) -> list[bool]:
        """Return which messages are new and were not in an earlier batch or file of a dry run."""
        first = []
        for message, is_new in zip(added.messages, new, strict=True):
            key = hash((scope, message.source, message.source_id))
            is_repeated = key in self._options.counted
            first.append(is_new and not is_repeated)
            self.report.repeated += is_repeated
            if is_new:
                self._options.counted.add(key)
        return first


def _has_grown(stored: StoredMessage, message: Message) -> bool:
    """Return whether a message continues the stored one.

    A reply has the id of its thinking if only the thinking was stored.
    """
    if stored.name == THINKING != message.name:
        return True
    content = clean_text(message.content)
    stored_size = (len(stored.content), len(stored.tool_calls))
    is_longer = (len(content), len(message.tool_calls)) > stored_size
    return is_longer and content.startswith(stored.content)


def _to_passages(vectors: Vectors, message_id: int, model: Model) -> list[Passage]:
    """Return a file's vectors as passages; none if their model, size or length differs."""
    import numpy as np

    if vectors.model_id != model.model_id:
        return []
    if any(len(vector) != model.dimensions for *_, vector in vectors.passages):
        return []
    matrix = np.array([vector for *_, vector in vectors.passages], np.float32)
    if not np.allclose(np.linalg.norm(matrix, axis=1), 1, atol=2e-2):
        return []
    return [
        Passage(message_id, number, start, end, vector)
        for number, ((start, end, _), vector) in enumerate(
            zip(vectors.passages, matrix, strict=True)
        )
    ]


def _redact_ids(message: Message) -> Message:
    """Return a message with secrets in its source and source id replaced by hashes."""
    source, source_id = (text and redact_id(text) for text in (message.source, message.source_id))
    if (source, source_id) == (message.source, message.source_id):
        return message
    return replace(message, source=source, source_id=source_id)


@dataclass
class _Clock:
    """Gives records without a time that of the previous record, or else the first in the file.

    In a file without times they get the time of the import. A time far ahead is not passed on.
    """

    now: datetime
    previous: datetime | None = None
    begun: bool = False

    def look_ahead(self, messages: Iterable[Message]) -> None:
        """Take the first time of a file from its first batch."""
        if not self.begun:
            self.previous = next(filter(None, map(self._usable_time, messages)), None)
        self.begun = True

    def set_time(self, message: Message) -> Message:
        """Return a message with its time, or with that of the previous message."""
        if message.created_at is None:
            return replace(message, created_at=self.previous)
        self.previous = self._usable_time(message) or self.previous
        return message

    def _usable_time(self, message: Message) -> datetime | None:
        return None if is_far_ahead(message.created_at, self.now) else message.created_at


class _DryRunRollback(Exception):
    """Raised to roll back the transaction of a dry run."""
