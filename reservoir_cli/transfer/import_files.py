"""Import the messages of files, folders and zips."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path, PurePath

from reservoir_cli.transfer.detect_format import DetectedFile, find
from reservoir_cli.transfer.ingest import Ingestor
from reservoir_cli.transfer.leave_out import compile_exclusion, find_marked, leave_out
from reservoir_cli.transfer.reading.decompressed_file import File
from reservoir_cli.transfer.reading.input_files import name_of
from reservoir_cli.transfer.reading.times import count_unread_times
from reservoir_cli.transfer.reports import ImportReport
from reservoir_cli.transfer.skip_duplicates import ElsewhereFilter
from reservoir_cli.transfer.stages import Destination, ImportOptions
from reservoir_cli.transfer.store_records import INTERRUPTED, FileImport
from reservoir_cli.util.progress import explain_interrupt, report_megabytes

#: Why a file gave nothing that was named itself, or with nothing else.
_REPEATED = "the messages are in other files"


def import_files(
    ingestor: Ingestor,
    sources: Sequence[Path | File],
    *,
    form: str | None = None,
    partition: str | None = None,
    instance: str | None = None,
    dry_run: bool = False,
    embed: bool = False,
    copies: bool = True,
    include_forgotten: bool = False,
    exclude: Sequence[str] = (),
) -> ImportReport:
    """Store the messages of files, folders and zips.

    All files are opened before the first is stored: if one cannot be read, nothing is stored.
    Conversations in which the user wrote ``DO NOT INDEX`` are left out.

    :param copies: also store messages that other partitions and instances already have.
    :param exclude: folders whose files are not read, and whose conversations are not stored.
    """
    excluded = compile_exclusion(list(exclude))
    if include_forgotten:
        ingestor.store.require_removable_tombstones()
    options = ImportOptions(
        dry_run=dry_run,
        elsewhere=None if copies else ElsewhereFilter(ingestor.store),
        include_forgotten=include_forgotten,
    )
    report = ImportReport()
    with ExitStack() as open_files:
        detected = [find(source, form, open_files) for source in sources]
        for selection in detected:
            selection.files[:] = [it for it in selection.files if not excluded(str(it.file.path))]
        marked = find_marked(chain.from_iterable(selection.files for selection in detected))
        if not dry_run:
            open_files.enter_context(explain_interrupt(ingestor.notify, INTERRUPTED))
        for source, selection in zip(sources, detected, strict=True):
            source_report = ImportReport(
                passed_over=len(selection.ignored),
                ignored=[PurePath(name).name for name in selection.ignored],
                links=selection.links,
            )
            for file in selection.files:
                default, home = ingestor.config.settings().partition, file.importer.instance
                destination = Destination(partition, instance, default, home)
                file_report = _import_file(ingestor, file, destination, options, marked, excluded)
                source_report.add(file_report)
            if not source_report.total and not source_report.nothing:
                for file in selection.files:
                    source_report.nothing[file.importer.name, _REPEATED] += 1
            if source_report.skipped and not source_report.total - source_report.skipped:
                source_report.unreadable.append(name_of(source))
            report.add(source_report)
    ingestor.report(report, set() if dry_run else report.modes, partition)
    if embed and report.imported and not dry_run:
        ingestor.indexer.embed_if_possible()
    return report


def _import_file(
    ingestor: Ingestor,
    detected: DetectedFile,
    destination: Destination,
    options: ImportOptions,
    marked: set[str],
    excluded: Callable[[str], bool],
) -> ImportReport:
    file = detected.file
    file_import = FileImport(ingestor, destination, options, file.name, datetime.now(UTC))
    with count_unread_times() as undated:
        report = file_import.load(
            leave_out(detected.records(), marked, excluded, file_import.report),
            after_batch=lambda: report_megabytes(ingestor.progress, file.done, file.size),
        )
    report.undated = undated.count
    if not report.total and not detected.importer.is_repeated(file):
        report.nothing[detected.importer.name, detected.describe_nothing()] += 1
    return report
