"""Bring messages into a store: the one way in, for single messages and for files.

Contexts that Reservoir printed are removed, secrets are redacted, messages are stored, what was
found is reported, and then they are embedded. Of a file each batch is one transaction.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from reservoir_cli.embedding import Progress
from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import (
    Conversation,
    Key,
    Message,
    Scope,
    StoredMessage,
    clean_name,
    clean_text,
)
from reservoir_cli.redaction import Mode, Redactor, redact_conversation, redact_id
from reservoir_cli.retrieval.indexing import Indexer, Model
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import Passage
from reservoir_cli.storage.sources import Sources
from reservoir_cli.tokens import ApproximateCounter, TokenCounter, storing_counter
from reservoir_cli.transfer import importers
from reservoir_cli.transfer.echoes import quotes, without_contexts
from reservoir_cli.transfer.importers import File, Found, Record, Skipped, Vectors
from reservoir_cli.transfer.importers.blocks import THINKING
from reservoir_cli.transfer.proxied import Proxied
from reservoir_cli.transfer.reports import ImportReport, report_secrets
from reservoir_cli.util.times import is_far_ahead

_BATCH = 1_000

#: Source and source id of a message.
Origin = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the records of a file go.

    :param partition: put everything there, whatever the records say; likewise ``instance``.
    :param home: the instance of the format, for records that name none.
    """

    partition: str | None
    instance: str | None
    default_partition: str
    home: str | None = None

    def of(self, record: Record) -> Scope:
        """Return the scope of a record; it keeps its instance unless the file goes elsewhere."""
        partition = self.partition or clean_name(record.partition or self.default_partition)
        own = clean_name(record.instance) if record.instance and self.partition is None else None
        return Scope(partition, self.instance or own or self.home or partition)


class Added(NamedTuple):
    """Messages of one scope after they were redacted and stored.

    :param messages: as they were given to the store.
    :param secrets: what was found in each.
    :param stored: ``None`` for one that was stored before.
    """

    messages: list[Message]
    secrets: list[Counter[str]]
    stored: list[StoredMessage | None]


class Ingestor:
    """Brings messages into one store."""

    def __init__(
        self,
        store: Store,
        config: Config,
        redactor: Redactor,
        indexer: Indexer,
        *,
        notify: Callable[[str], None] = lambda _: None,
        progress: Progress = lambda *_: None,
    ) -> None:
        self.store, self.redactor, self.indexer = store, redactor, indexer
        self._config, self._notify, self._progress = config, notify, progress
        self._counters: dict[str, TokenCounter] = {}

    def ingest(
        self, scope: Scope, messages: Sequence[Message], *, embed: bool = True, pair: bool = False
    ) -> list[StoredMessage]:
        """Store messages of one scope.

        :param pair: a reply without a trace id answers the newest open question.
        :returns: the new ones among them.
        """
        now = datetime.now(UTC)
        cleaned = [without_contexts(message) for message in messages]
        if contexts := sum(each.contexts for each in cleaned):
            self._notify(f"contexts taken out, their questions kept: {contexts:,}")
        added = self.add(scope, [each.message for each in cleaned if each.message], now, pair=pair)
        report = ImportReport(modes={self.redactor.mode(str(scope.partition))})
        new = [stored is not None for stored in added.stored]
        report.ahead = sum(
            is_far_ahead(stored.created_at, now) for stored in added.stored if stored
        )
        report.secrets = _sum_secrets(added, new)
        self.report(report, report.modes, scope.partition)
        if embed:
            self.indexer.embed_added(scope, len(added.stored))
        return [stored for stored in added.stored if stored is not None]

    def import_files(
        self,
        sources: Sequence[Path | File],
        *,
        form: str | None = None,
        partition: str | None = None,
        instance: str | None = None,
        dry_run: bool = False,
        embed: bool = False,
    ) -> ImportReport:
        """Store the messages of files, folders and zips.

        All are opened before the first is stored: if one cannot be read, nothing is stored.
        """
        report = ImportReport()
        with ExitStack() as open_files:
            found = [importers.find(source, form, open_files) for source in sources]
            for source, (files, passed_over) in zip(sources, found, strict=True):
                done = ImportReport(passed_over=passed_over)
                for file in files:
                    done.add(self._import_file(file, partition, instance, dry_run))
                if done.skipped and not done.total - done.skipped:
                    done.unreadable.append(_name(source))
                report.add(done)
        self.report(report, set() if dry_run else report.modes, partition)
        if embed and report.imported and not dry_run:
            self.indexer.embed_if_possible()
        return report

    def _import_file(
        self, found: Found, partition: str | None, instance: str | None, dry_run: bool
    ) -> ImportReport:
        file, default = found.file, self._config.settings().partition
        return self.load(
            found.records(),
            Destination(partition, instance, default, found.importer.instance),
            where=file.name,
            now=datetime.now(UTC),
            dry_run=dry_run,
            after_batch=lambda: self._progress("MB read", file.done >> 20, file.size >> 20),
        )

    def load(
        self,
        records: Iterable[Record | Skipped],
        destination: Destination,
        *,
        where: str,
        now: datetime,
        dry_run: bool = False,
        renew: bool = False,
        after_batch: Callable[[], None] = lambda: None,
    ) -> ImportReport:
        """Store the records of one file; what is stored already is left as it is.

        :param where: the file's name, for the reasons.
        :param renew: replace what is stored already if it is longer now.
        :param dry_run: find out what would be done, and leave the store as it was.
        :param after_batch: called each time a batch is committed.
        """
        counter = self.counter(destination.partition or destination.default_partition)
        loader = _FileImport(self, destination, counter, now, where, renew=renew)
        source = iter(records)
        while batch := list(islice(source, _BATCH)):
            if dry_run:
                with suppress(_Undone), self.store.write():
                    loader.save(batch, dry_run=True)
                    raise _Undone
            else:
                loader.choose_model(batch)
                with self.store.write():
                    loader.save(batch)
            after_batch()
        return loader.report

    def add(
        self,
        scope: Scope,
        messages: Sequence[Message],
        now: datetime,
        *,
        counter: TokenCounter | None = None,
        pair: bool = False,
    ) -> Added:
        """Redact messages and store them."""
        partition = str(scope.partition)
        scanned = [self.redactor.scan(message, partition) for message in messages]
        redacted = [message for message, _ in scanned]
        counter = counter or self.counter(partition)
        stored = self.store.add(scope, redacted, counter=counter, now=now, pair=pair)
        return Added(redacted, [secrets for _, secrets in scanned], stored)

    def edit(self, old: StoredMessage, text: str) -> None:
        """Replace the text of a stored message; embed the new one if a model is there.

        :raises ReservoirError: it is done, but a reader keeps the old words in the files.
        """
        from reservoir_cli.transfer.forget import still_there

        names = [each.name for each in fields(Message)]
        values = {name: getattr(old, name) for name in names}
        edited = Message(**{**values, "role": old.role.value, "content": text, "secrets": ()})
        message, secrets = self.redactor.scan(edited, old.partition)
        # Only the text is changed: what it says of itself stays, even where it holds a secret.
        message = replace(message, source=old.source, source_id=old.source_id)
        counter = self.counter(old.partition)
        gone = self.store.edit(old.key, message, counter=counter, now=datetime.now(UTC))
        modes = {self.redactor.mode(old.partition)}
        self.report(ImportReport(modes=modes, secrets=secrets), modes, old.partition)
        self.indexer.embed_added(Scope(old.partition), 0)
        if not gone:
            raise still_there("the text is replaced, but words of the old one")

    def counter(self, partition: str) -> TokenCounter:
        """Return the counter of a partition; without it tokens are counted approximately."""
        name = str(self._config.lookup("token_counter", partition)[0])
        if name not in self._counters:
            try:
                self._counters[name] = storing_counter(name)
            except ReservoirError as error:
                self._notify(f"tokens are counted approximately: {error.message}")
                self._counters[name] = ApproximateCounter()
        return self._counters[name]

    def retention(self, partition: str) -> timedelta | None:
        """Return how long messages of a partition are kept; ``None`` for ever."""
        days = self._config.settings(partition).retention_days
        return None if days is None else timedelta(days=days)

    def report(self, report: ImportReport, modes: set[Mode], partition: str | None) -> None:
        """Report what a person should know of messages that came in."""
        if report.ahead:
            noun = "message" if report.ahead == 1 else "messages"
            self._notify(
                f"{report.ahead:,} {noun} with a time more than a day ahead, kept as given"
            )
        if report.secrets:
            self._notify(report_secrets(report.secrets, modes, self._config, partition))


def _sum_secrets(added: Added, new: Sequence[bool]) -> Counter[str]:
    """Return what was found in the messages that are new."""
    found: Counter[str] = Counter()
    for secrets, is_new in zip(added.secrets, new, strict=True):
        found += secrets if is_new else Counter()
    return found


def _name(source: Path | File) -> str:
    return str(source) if isinstance(source, Path) else source.name


class _Undone(Exception):
    """Rolls a transaction back."""


class _FileImport:
    """Stores the batches of one file."""

    def __init__(
        self,
        ingestor: Ingestor,
        destination: Destination,
        counter: TokenCounter,
        now: datetime,
        where: str,
        *,
        renew: bool = False,
    ) -> None:
        self.report = ImportReport()
        self._renew = renew
        self._ingestor, self._store = ingestor, ingestor.store
        self._destination, self._counter = destination, counter
        self._now, self._where = now, where
        self._model: Model | None = None
        self._clock = _Clock(now)
        self._described: dict[Scope, Conversation] = {}
        self._quoting: set[tuple[str, str]] = set()
        self._contexts: Counter[Origin] = Counter()
        self._counted: set[int] = set()
        self._retention: dict[str, timedelta | None] = {}
        self._proxied = Proxied(self._store, self._redacted)
        self._left_out_reply = False

    def choose_model(self, batch: Sequence[Record | Skipped]) -> None:
        """Find out which embeddings the store takes, once the file has some."""
        if self._model is None and any(map(_has_vectors, batch)):
            self._model = self._ingestor.indexer.importable_model()

    def save(self, batch: Sequence[Record | Skipped], *, dry_run: bool = False) -> None:
        """Store a batch, and add it to the report."""
        self._contexts.clear()
        records = self._not_forgotten(batch)
        records = [cleaned for cleaned in map(self._without_contexts, records) if cleaned]
        for scope, given in self._by_scope(records).items():
            group = self._proxied.without(scope, given)
            self.report.already += len(given) - len(group)
            group = self._not_forgotten_elsewhere(scope, group)
            self._store.add_conversations(scope, self._new_descriptions(scope, group))
            messages = [record.message for record in group]
            added = self._ingestor.add(scope, messages, self._now, counter=self._counter)
            self._take_vectors(group, added)
            new = [stored is not None for stored in added.stored]
            self._count(scope, added, self._first_time(scope, added, new) if dry_run else new)
            if self._renew:
                self._renew_grown(scope, added)
        for skipped in batch:
            if isinstance(skipped, Skipped):
                self.report.skip(f"{self._where}, {skipped.place}: {skipped.reason}")

    def _count(self, scope: Scope, added: Added, new: Sequence[bool]) -> None:
        report, messages = self.report, added.messages
        fresh = [message for message, is_new in zip(messages, new, strict=True) if is_new]
        report.modes.add(self._mode(scope))
        report.conversations.update(
            message.conversation_id for message in messages if message.conversation_id
        )
        report.secrets += _sum_secrets(added, new)
        report.ahead += sum(is_far_ahead(message.created_at, self._now) for message in fresh)
        report.contexts += sum(
            self._contexts[message.source, message.source_id] for message in fresh
        )
        report.mended += sum(clean_text(message.content) != message.content for message in messages)
        report.imported += len(fresh)
        report.already += len(messages) - len(fresh)

    def _renew_grown(self, scope: Scope, added: Added) -> None:
        """Replace messages that were stored while they were still being written."""
        known = {
            (message.source, message.source_id): message
            for message, stored in zip(added.messages, added.stored, strict=True)
            if stored is None and message.source and message.source_id
        }
        grown: dict[Key, Message] = {}
        for source in {source for source, _ in known if source}:
            ids = [own for name, own in known if name == source and own]
            there = Sources(self._store).stored(scope, source, ids)
            longer = [each for own, each in there.items() if _has_grown(each, known[source, own])]
            edited = {each.key for each in self._store.edited(longer)} if longer else set()
            grown |= {
                each.key: known[source, each.source_id] for each in longer if each.key not in edited
            }
        self._store.replace(grown, counter=self._counter, now=self._now)
        self.report.renewed += len(grown)
        self.report.already -= len(grown)

    def _is_expired(self, scope: Scope, message: Message) -> bool:
        partition = str(scope.partition)
        if partition not in self._retention:
            self._retention[partition] = self._ingestor.retention(partition)
        age, moment = self._retention[partition], message.created_at or self._now
        return age is not None and moment <= self._now - age

    def _mode(self, scope: Scope) -> Mode:
        return self._ingestor.redactor.mode(str(scope.partition))

    def _not_forgotten(self, batch: Sequence[Record | Skipped]) -> list[Record]:
        """Return the records of a batch, without what was forgotten once."""
        records = [record for record in batch if isinstance(record, Record)]
        messages = [record.message for record in records]
        gone = self._store.forgotten(messages)
        # Under "remove" an id with a secret is stored as its fingerprint.
        clean = [_with_clean_ids(message) for message in messages]
        if any(new is not old for new, old in zip(clean, messages, strict=True)):
            gone = [a or b for a, b in zip(gone, self._store.forgotten(clean), strict=True)]
        self.report.forgotten += sum(gone)
        return [record for record, was in zip(records, gone, strict=True) if not was]

    def _not_forgotten_elsewhere(self, scope: Scope, records: list[Record]) -> list[Record]:
        """Return records without what was forgotten under the id of another source."""
        conversations = {record.message.conversation_id for record in records}
        if not self._store.forgotten_sessions(conversations):
            return records
        messages = [self._redacted(record.message, str(scope.partition)) for record in records]
        kept: list[Record] = []
        for record, gone in zip(records, self._store.forgotten_said(messages), strict=True):
            if record.message.name != THINKING:  # it goes with the reply before it
                self._left_out_reply = gone
            if not (gone or (record.message.name == THINKING and self._left_out_reply)):
                kept.append(record)
        self.report.forgotten += len(records) - len(kept)
        return kept

    def _redacted(self, message: Message, partition: str) -> Message:
        return self._ingestor.redactor.scan(message, partition)[0]

    def _without_contexts(self, record: Record) -> Record | None:
        """Return a record without contexts, and without the embedding and the title of those."""
        message, count = without_contexts(record.message)
        if not count:
            return record
        about = record.conversation
        if about and about.title and quotes(about.title, record.message.content):
            self._quoting.add((about.id, about.title))
        if message is None:
            self.report.contexts += count
            return None
        self._contexts[message.source, message.source_id] += count
        return replace(record, message=message, vectors=None)

    def _take_vectors(self, records: Sequence[Record], added: Added) -> None:
        """Store the embeddings that come with messages, if they are of the store's model.

        A message from which a secret was removed is not what was embedded.
        """
        if self._model is None:
            return
        passages = {
            stored.key: taken
            for record, message, stored in zip(records, added.messages, added.stored, strict=True)
            if stored and record.vectors and message.content == record.message.content
            if (taken := _passages_of(record.vectors, stored.id, self._model))
        }
        if passages:
            if self._store.active_model() is None:
                self._store.activate_model(self._model.model_id, self._model.name)
            self._store.add_passages(self._model.model_id, passages, self._model.link_threshold)

    def _by_scope(self, records: Sequence[Record]) -> dict[Scope, list[Record]]:
        """Return records by their scope, in the order of the file, and with a time."""
        groups: dict[Scope, list[Record]] = {}
        self._clock.look_ahead(record.message for record in records)
        for record in records:
            timed = replace(record, message=self._clock.timed(record.message))
            scope = self._destination.of(record)
            if self._is_expired(scope, timed.message):
                self.report.expired += 1
            else:
                groups.setdefault(scope, []).append(timed)
        return groups

    def _new_descriptions(self, scope: Scope, records: Iterable[Record]) -> list[Conversation]:
        """Return the conversations that are described other than before."""
        new: list[Conversation] = []
        for record in records:
            described = record.conversation
            if described is not None and described != self._described.get(scope):
                self._described[scope] = described
                if described.title and (described.id, described.title) in self._quoting:
                    described = replace(described, title=None)
                if self._mode(scope) is Mode.REMOVE:
                    described = redact_conversation(described)
                new.append(described)
        return new

    def _first_time(self, scope: Scope, added: Added, new: Iterable[bool]) -> list[bool]:
        """Return which messages are new that no batch before has added and rolled back."""
        first = []
        for message, is_new in zip(added.messages, new, strict=True):
            key = hash((scope, message.source, message.source_id))
            first.append(is_new and key not in self._counted)
            self._counted.add(key)
        return first


def _has_grown(stored: StoredMessage, message: Message) -> bool:
    """Return whether a message goes on where the stored one ends.

    A reply of which only the thinking was there gets the id of that.
    """
    if stored.name == THINKING != message.name:
        return True
    content = clean_text(message.content)
    more = (len(content), len(message.tool_calls)) > (len(stored.content), len(stored.tool_calls))
    return more and content.startswith(stored.content)


def _has_vectors(record: Record | Skipped) -> bool:
    return isinstance(record, Record) and record.vectors is not None


def _passages_of(vectors: Vectors, message_id: int, model: Model) -> list[Passage]:
    """Return vectors of a file as passages; none if they are of another model or length."""
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
    """Return a message with its source and id as they are stored if secrets are removed."""
    source, number = (text and redact_id(text) for text in (message.source, message.source_id))
    if (source, number) == (message.source, message.source_id):
        return message
    return replace(message, source=source, source_id=number)


@dataclass
class _Clock:
    """Gives a time to records that have none: that of the one before, or of the first with one.

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
