"""Ingest messages into a store, one at a time or from files.

Contexts that Reservoir printed are removed, secrets are redacted, and the messages are stored,
reported and embedded. Each batch of a file is one transaction.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice
from pathlib import Path

from reservoir_cli.errors import TextRemainsError
from reservoir_cli.messages import Message, Scope, StoredMessage
from reservoir_cli.redaction import Mode
from reservoir_cli.transfer import importers
from reservoir_cli.transfer.do_not_index import find_marked, skip_marked
from reservoir_cli.transfer.file_import import Destination, FileImport
from reservoir_cli.transfer.importers import DetectedFile, File, Record, Skipped
from reservoir_cli.transfer.redact_and_store import Intake
from reservoir_cli.transfer.reports import ImportReport, report_secrets
from reservoir_cli.transfer.returned_contexts import remove_contexts
from reservoir_cli.transfer.skip_duplicates import ElsewhereFilter
from reservoir_cli.util.clock import is_far_ahead
from reservoir_cli.util.interrupts import explain_interrupt
from reservoir_cli.util.progress import report_megabytes

_BATCH = 1_000
#: Printed when Ctrl-C ends an import.
INTERRUPTED = "interrupted; stored messages are kept, and the same command imports the rest"


class Ingestor(Intake):
    """Ingests messages into one store."""

    def ingest(
        self, scope: Scope, messages: Sequence[Message], *, embed: bool = True, pair: bool = False
    ) -> list[StoredMessage]:
        """Store messages of one scope.

        :param pair: link a reply without a trace id to the newest open question.
        :returns: the messages that are new.
        """
        now = datetime.now(UTC)
        cleaned = [remove_contexts(message) for message in messages]
        if contexts := sum(result.contexts for result in cleaned):
            self.notify(f"contexts taken out, their questions kept: {contexts:,}")
        remaining = [result.message for result in cleaned if result.message]
        added = self.add(scope, remaining, now, pair=pair)
        report = ImportReport(modes={self.redactor.mode(str(scope.partition))})
        new = [stored is not None for stored in added.stored]
        report.ahead = sum(
            is_far_ahead(stored.created_at, now) for stored in added.stored if stored
        )
        report.secrets = added.secrets_of(new)
        self.report(report, report.modes, scope.partition)
        if embed:
            self.indexer.embed_if_possible(scope, newest=len(added.stored))
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
        copies: bool = True,
        include_forgotten: bool = False,
    ) -> ImportReport:
        """Store the messages of files, folders and zips.

        All files are opened before the first is stored: if one cannot be read, nothing is stored.
        Conversations in which the user wrote ``DO NOT INDEX`` are left out.

        :param copies: also store messages that other partitions and instances already have.
        :param include_forgotten: also store messages that were forgotten earlier.
        """
        if include_forgotten:
            self.store.require_removable_tombstones()
        load = partial(
            self._import_file,
            partition=partition,
            instance=instance,
            counted=set() if dry_run else None,
            elsewhere=None if copies else ElsewhereFilter(self.store),
            include_forgotten=include_forgotten,
        )
        report = ImportReport()
        with ExitStack() as open_files:
            detected = [importers.find(source, form, open_files) for source in sources]
            marked = find_marked(chain.from_iterable(files for files, _ in detected))
            if not dry_run:
                open_files.enter_context(explain_interrupt(self.notify, INTERRUPTED))
            for source, (files, passed_over) in zip(sources, detected, strict=True):
                source_report = ImportReport(passed_over=passed_over)
                for file in files:
                    source_report.add(load(file, marked))
                if source_report.skipped and not source_report.total - source_report.skipped:
                    source_report.unreadable.append(_name(source))
                report.add(source_report)
        self.report(report, set() if dry_run else report.modes, partition)
        if embed and report.imported and not dry_run:
            self.indexer.embed_if_possible()
        return report

    def _import_file(
        self,
        detected: DetectedFile,
        marked: set[str],
        *,
        partition: str | None,
        instance: str | None,
        counted: set[int] | None,
        elsewhere: ElsewhereFilter | None,
        include_forgotten: bool,
    ) -> ImportReport:
        file, default = detected.file, self._config.settings().partition
        left_out: set[str] = set()
        report = self.load(
            skip_marked(detected.records(), marked, left_out),
            Destination(partition, instance, default, detected.importer.instance),
            where=file.name,
            now=datetime.now(UTC),
            dry_run=counted is not None,
            counted=counted,
            elsewhere=elsewhere,
            include_forgotten=include_forgotten,
            after_batch=lambda: report_megabytes(self._progress, file.done, file.size),
        )
        report.marked = left_out
        return report

    def load(
        self,
        records: Iterable[Record | Skipped],
        destination: Destination,
        *,
        where: str,
        now: datetime,
        dry_run: bool = False,
        counted: set[int] | None = None,
        renew: bool = False,
        elsewhere: ElsewhereFilter | None = None,
        include_forgotten: bool = False,
        after_batch: Callable[[], None] = lambda: None,
    ) -> ImportReport:
        """Store the new records of one file.

        :param where: the file's name, for the reasons of skipped records.
        :param renew: replace stored messages that are longer now.
        :param dry_run: report what would be imported, and leave the store unchanged.
        :param counted: what a dry run has counted in other files, which is extended.
        :param elsewhere: skip messages that other partitions and instances already have.
        :param include_forgotten: also store messages that were forgotten earlier.
        :param after_batch: called after each batch.
        """
        counter = self.counter(destination.partition or destination.default_partition)
        loader = FileImport(
            self,
            destination,
            counter,
            now,
            where,
            renew=renew,
            elsewhere=elsewhere,
            include_forgotten=include_forgotten,
            counted=counted,
        )
        source = iter(records)
        while batch := list(islice(source, _BATCH)):
            if dry_run:
                with suppress(_DryRunRollback), self.store.write():
                    loader.save(batch, dry_run=True)
                    raise _DryRunRollback
            else:
                loader.choose_model(batch)
                with self.store.write():
                    loader.save(batch)
            after_batch()
        return loader.report

    def edit(self, old: StoredMessage, text: str) -> None:
        """Replace the text of a stored message, and embed the new text if a model is available.

        :raises ReservoirError: the text is replaced, but a concurrent reader keeps the old text
            in the store's files.
        """
        names = [field.name for field in fields(Message)]
        values = {name: getattr(old, name) for name in names}
        edited = Message(**{**values, "role": old.role.value, "content": text, "secrets": ()})
        message, secrets = self.redactor.scan(edited, old.partition)
        # Only the text changes: keep the source and its id, even if they contain a secret.
        message = replace(message, source=old.source, source_id=old.source_id)
        counter = self.counter(old.partition)
        erased = self.store.edit(old.key, message, counter=counter, now=datetime.now(UTC))
        modes = {self.redactor.mode(old.partition)}
        self.report(ImportReport(modes=modes, secrets=secrets), modes, old.partition)
        self.indexer.embed_if_possible(Scope(old.partition), newest=1)
        if not erased:
            raise TextRemainsError("the text is replaced, but parts of the old one")

    def report(self, report: ImportReport, modes: set[Mode], partition: str | None) -> None:
        """Notify the user of secrets and of times in the future among imported messages."""
        if report.ahead:
            noun = "message" if report.ahead == 1 else "messages"
            self.notify(f"{report.ahead:,} {noun} with a time more than a day ahead, kept as given")
        if report.secrets:
            self.notify(report_secrets(report.secrets, modes, self._config, partition))


def _name(source: Path | File) -> str:
    return str(source) if isinstance(source, Path) else source.name


class _DryRunRollback(Exception):
    """Raised to roll back the transaction of a dry run."""
