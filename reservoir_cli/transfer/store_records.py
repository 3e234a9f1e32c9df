"""Store the new records of one file, batch by batch: read, passed by the stages, redacted."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import compress, islice

from reservoir_cli.messages import (
    THINKING,
    Conversation,
    Message,
    Scope,
    StoredMessage,
    clean_text,
)
from reservoir_cli.redaction import Mode, redact_conversation, redact_id
from reservoir_cli.retrieval.embed_messages import EmbeddingModel
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.sources import Sources
from reservoir_cli.transfer.ingest import Added, Ingestor
from reservoir_cli.transfer.reading.importer import Record, Skipped, Vectors
from reservoir_cli.transfer.reports import ImportReport
from reservoir_cli.transfer.returned_contexts import is_excerpt, remove_contexts
from reservoir_cli.transfer.stages import (
    ALREADY,
    STAGES,
    Destination,
    ImportOptions,
    Passed,
    Stages,
)
from reservoir_cli.util.clock import is_far_ahead

_Origin = tuple[str | None, str | None]  # source and source id of a message

_BATCH = 1_000
#: Printed when Ctrl-C ends an import.
INTERRUPTED = "interrupted; stored messages are kept, and the same command imports the rest"


class FileImport:
    """Stores the records of one file in batches; ``where`` is its name, for reasons."""

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
        self._options = options
        self._now = now
        self._model: EmbeddingModel | None = None
        self._last_conversations: dict[Scope, Conversation] = {}
        is_copy = options.elsewhere is None
        follower = _Follower(self._store, ingestor.config, destination, only_moved=is_copy)
        self._reader = _RecordReader(follower.scope_of, self.report, where, now)
        self._stages = Stages(ingestor, options, now)

    def load(
        self, records: Iterable[Record | Skipped], after_batch: Callable[[], None] = lambda: None
    ) -> ImportReport:
        """Store the new records of the file; each batch is a transaction, followed by a call."""
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
        if self._model is None and any(
            isinstance(record, Record) and record.vectors is not None for record in batch
        ):
            self._model = self._ingestor.indexer.importable_model()

    def _save(self, batch: Sequence[Record | Skipped]) -> None:
        for scope, records in self._reader.read(batch).items():
            self.report.modes.add(self._mode(scope))
            remaining, gone = records, set[int]()
            for stage in STAGES:
                passed = stage(self._stages, scope, remaining)
                remaining = passed.kept
                self._count(scope, passed)
                if stage is not Stages.drop_known:
                    gone |= {id(record) for rows in passed.dropped.values() for record in rows}
            described = [record for record in records if id(record) not in gone]
            self._store.add_conversations(scope, self._changed_conversations(scope, described))
            if remaining:
                self._add(scope, remaining)

    def _count(self, scope: Scope, passed: Passed) -> None:
        """Add what a stage dropped to the report, and the conversations of known messages."""
        for reason, records in passed.dropped.items():
            setattr(self.report, reason, getattr(self.report, reason) + len(records))
        stored = passed.dropped.get(ALREADY, ())
        ids = {record.message.conversation_id for record in stored} - {None, ""}
        names = {str(conversation) for conversation in ids}
        is_hidden = self._mode(scope) is Mode.REMOVE
        self.report.conversations |= set(map(redact_id, names)) if is_hidden else names

    def _add(self, scope: Scope, records: Sequence[Record]) -> None:
        messages = [record.message for record in records]
        added = self._ingestor.add(scope, messages, self._now)
        self._store_vectors(records, added)
        new = [stored is not None for stored in added.stored]
        new = self._select_first(scope, added, new) if self._options.dry_run else new
        self._update_report(added, new)
        if self._options.include_forgotten:
            self._restore(compress(zip(messages, added.messages, strict=True), new))
        if self._options.renew:
            self._replace_grown(scope, added)

    def _update_report(self, added: Added, new: Sequence[bool]) -> None:
        report, messages = self.report, added.messages
        imported = [message for message, is_new in zip(messages, new, strict=True) if is_new]
        report.conversations.update(
            message.conversation_id for message in messages if message.conversation_id
        )
        report.secrets += added.secrets_of(new)
        report.ahead += sum(is_far_ahead(message.created_at, self._now) for message in imported)
        report.contexts += sum(
            self._reader.contexts[message.source, message.source_id] for message in imported
        )
        report.mended += sum(clean_text(message.content) != message.content for message in messages)
        report.imported += len(imported)
        report.already += len(messages) - len(imported)

    def _replace_grown(self, scope: Scope, added: Added) -> None:
        repeated = {
            (message.source, message.source_id): message
            for message, result in zip(added.messages, added.stored, strict=True)
            if result is None and message.source and message.source_id
        }
        known = Sources(self._store).find_stored(scope, list(repeated))
        longer = [stored for own, stored in known.items() if _has_grown(stored, repeated[own])]
        edited = {stored.key for stored in self._store.edited(longer)} if longer else set()
        grown = {
            stored.key: repeated[stored.source, stored.source_id]
            for stored in longer
            if stored.key not in edited
        }
        counter = self._ingestor.counter(str(scope.partition))
        self._store.replace(grown, counter=counter, now=self._now)
        self.report.renewed += len(grown)
        self.report.already -= len(grown)

    def _mode(self, scope: Scope) -> Mode:
        return self._ingestor.redactor.mode(str(scope.partition))

    def _restore(self, imported: Iterable[tuple[Message, Message]]) -> None:
        """Remove the tombstones of messages that were forgotten earlier, and count them."""
        pairs = list(imported)
        by_id = self._stages.check_forgotten([message for message, _ in pairs])
        others = [stored for (_, stored), is_own in zip(pairs, by_id, strict=True) if not is_own]
        by_content = iter(self._store.forgotten_contents(others))
        restored = list(compress(pairs, [is_own or next(by_content) for is_own in by_id]))
        self._store.remove_tombstones([message for pair in restored for message in pair])
        self.report.restored += len(restored)

    def _store_vectors(self, records: Sequence[Record], added: Added) -> None:
        """Store embeddings by the store's model; that of a redacted text is of the old one."""
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

    def _changed_conversations(self, scope: Scope, records: Iterable[Record]) -> list[Conversation]:
        new: list[Conversation] = []
        for record in records:
            conversation = record.conversation
            if conversation is not None and conversation != self._last_conversations.get(scope):
                self._last_conversations[scope] = conversation
                if (conversation.id, conversation.title) in self._reader.context_titles:
                    conversation = replace(conversation, title=None)
                if self._mode(scope) is Mode.REMOVE:
                    conversation = redact_conversation(conversation)
                new.append(conversation)
        return new

    def _select_first(self, scope: Scope, added: Added, new: Iterable[bool]) -> list[bool]:
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
    """Return whether a message continues the stored one, or a reply only its thinking."""
    if stored.name == THINKING != message.name:
        return True
    content = clean_text(message.content)
    stored_size = (len(stored.content), len(stored.tool_calls))
    is_longer = (len(content), len(message.tool_calls)) > stored_size
    return is_longer and content.startswith(stored.content)


def _to_passages(vectors: Vectors, message_id: int, model: EmbeddingModel) -> list[Passage]:
    """Return a file's vectors as passages; none if their model, size or length differs."""
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


class _DryRunRollback(Exception):
    """Raised to roll back the transaction of a dry run."""


class _RecordReader:
    """Reads the records of one file, batch by batch.

    :ivar contexts: how many contexts were removed from each message of the last batch.
    :ivar context_titles: ids and titles of conversations whose title was made from a context.
    """

    def __init__(
        self, scope_of: Callable[[Record], Scope], report: ImportReport, where: str, now: datetime
    ) -> None:
        self.contexts: Counter[_Origin] = Counter()
        self.context_titles: set[tuple[str, str]] = set()
        self._scope_of, self._report, self._where = scope_of, report, where
        self._clock = _Clock(now)

    def read(self, batch: Sequence[Record | Skipped]) -> dict[Scope, list[Record]]:
        """Return the records of a batch by scope, in the order of the file."""
        self.contexts.clear()
        records: list[Record] = []
        for item in batch:
            if isinstance(item, Skipped):
                self._report.skip(f"{self._where}, {item.place}: {item.reason}")
            elif cleaned := self._remove_contexts(item):
                records.append(cleaned)
        self._clock.look_ahead(record.message for record in records)
        groups: dict[Scope, list[Record]] = {}
        for record in records:
            groups.setdefault(self._scope_of(record), []).append(self._clock.set_time(record))
        return groups

    def _remove_contexts(self, record: Record) -> Record | None:
        """Return a record without contexts printed by Reservoir; ``None`` if nothing remains."""
        message, count = remove_contexts(record.message)
        if not count:
            return record
        conversation, content = record.conversation, record.message.content
        if conversation and conversation.title and is_excerpt(conversation.title, content):
            self.context_titles.add((conversation.id, conversation.title))
        if message is None:
            self._report.contexts += count
            return None
        self.contexts[message.source, message.source_id] += count
        return replace(record, message=message, vectors=None)


@dataclass
class _Clock:
    """Gives records the previous time, or the first or the import's; none that is far ahead."""

    now: datetime
    previous: datetime | None = None
    begun: bool = False

    def look_ahead(self, messages: Iterable[Message]) -> None:
        if not self.begun:
            self.previous = next(filter(None, map(self._usable_time, messages)), None)
        self.begun = True

    def set_time(self, record: Record) -> Record:
        message = record.message
        if message.created_at is None:
            return replace(record, message=replace(message, created_at=self.previous))
        self.previous = self._usable_time(message) or self.previous
        return record

    def _usable_time(self, message: Message) -> datetime | None:
        return None if is_far_ahead(message.created_at, self.now) else message.created_at


class _Follower:
    """Chooses where records go: a conversation stays in its channel, folders go to their project.

    :param only_moved: conversations stay only if they were moved, and folders have no project.
    """

    def __init__(
        self, store: Store, config: Config, destination: Destination, *, only_moved: bool
    ) -> None:
        self._store, self._destination, self._only_moved = store, destination, only_moved
        self._partition_of = cache(config.partition_of)
        self._has_moved = cache(store.has_moved)
        self._channels: list[Scope] | None = None
        self._scopes: dict[tuple[Scope | None, str], Scope] = {}

    def scope_of(self, record: Record) -> Scope:
        """Return the scope of a record."""
        conversation = record.message.conversation_id
        usual = self._destination.scope_of(record) if self._only_moved else None
        if not conversation or (usual and not self._has_moved(usual)):
            return usual or self._assigned(record)
        if (usual, conversation) not in self._scopes:
            self._scopes[usual, conversation] = self._find(record, conversation, usual)
        return self._scopes[usual, conversation]

    def _assigned(self, record: Record) -> Scope:
        usual = self._destination.scope_of(record)
        partition = self._partition_of(record.folder) if record.folder else None
        if partition is None or partition == usual.partition:
            return usual
        instance = self._destination.instance or self._destination.home
        return Scope(partition, instance or record.instance or partition)

    def _find(self, record: Record, conversation: str, usual: Scope | None) -> Scope:
        session = conversation.partition("/")[0]
        names = list(dict.fromkeys(filter(None, (conversation, session, record.parent))))
        if usual:
            turns = [replace(record.message, conversation_id=name) for name in names]
            if not any(self._store.moved_away(usual, turns)):
                return usual
        assigned = usual or self._assigned(record)
        if self._channels is None:
            self._channels = [Scope(*row[:2]) for row in self._store.channels()]
        scopes = [assigned, *self._channels]
        partitions = sorted({str(scope.partition) for scope in scopes})
        for name in names:
            if (usual, name) in self._scopes:
                return self._scopes[usual, name]
            stored = {Scope(*channel) for channel in self._store.channels_of(partitions, name)}
            if match := next((scope for scope in scopes if scope in stored), None):
                return match
        return assigned
