"""Keep a store in sync with the histories of other tools on this machine.

The store records how far each file was read: unchanged files are not opened, and only the new end
of a longer file is read. Messages and the position are written in one transaction.
"""

import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from reservoir_cli.errors import ReservoirError, StoreError
from reservoir_cli.retrieval.lookup import retention
from reservoir_cli.settings import paths
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.sources import (
    LEFT_OUT,
    MARKED,
    FileRow,
    SourceFile,
    Sources,
    parse_state,
)
from reservoir_cli.transfer.detect_format import DetectedFile, is_of_tool
from reservoir_cli.transfer.formats.registry import importer_named
from reservoir_cli.transfer.ingest import Ingestor
from reservoir_cli.transfer.leave_out import (
    compile_exclusion,
    leave_out,
    marked_by,
    may_contain_mark,
)
from reservoir_cli.transfer.reading.checkpoints import StartOver
from reservoir_cli.transfer.reading.decompressed_file import COMPRESSED, DATABASES, File, Unreadable
from reservoir_cli.transfer.reading.importer import Checkpoint, Importer, Record, Skipped
from reservoir_cli.transfer.reading.times import count_unread_times, moment
from reservoir_cli.transfer.skip_duplicates import ElsewhereFilter
from reservoir_cli.transfer.stages import Destination, ImportOptions
from reservoir_cli.transfer.store_records import INTERRUPTED, FileImport
from reservoir_cli.transfer.sync import watched_files
from reservoir_cli.transfer.sync.history_sources import Source
from reservoir_cli.transfer.sync.sync_reports import SourceReport, SyncReport
from reservoir_cli.transfer.sync.watched_files import FileState, escape_path
from reservoir_cli.util.private_files import exclusive_lock
from reservoir_cli.util.progress import Progress, explain_interrupt, no_progress, report_megabytes
from reservoir_cli.util.read_files import NotTextError, open_regular
from reservoir_cli.util.timeouts import UNFINISHED_TURN

#: Messages stored in one transaction. An unfinished turn of as many is stored except its end.
_BATCH = 1_000
_DAMAGED = "the store's record of a file was damaged, and the file read again from its beginning"
_UNREAD = FileRow(-1, -1, 1, 0)  #: A file that was not read yet.

Item = Record | Skipped


def sync(
    ingestor: Ingestor,
    sources: Iterable[Source],
    *,
    whole: bool = False,
    copies: bool = False,
    now: datetime | None = None,
    progress: Progress = no_progress,
) -> SyncReport:
    """Import the new messages of sources; do nothing if another sync of the store is running.

    :param whole: also store unfinished last turns.
    :param copies: also store messages that other partitions and instances already have.
    """
    lock = paths.sync_lock(ingestor.store.location)
    with exclusive_lock(lock, wait=False) as acquired:
        if not acquired:
            return SyncReport(busy=True)
        moment = now or datetime.now(UTC)
        known_files = _KnownFiles(ingestor.store)
        syncs = [
            _SourceSync(ingestor, source, moment, known_files, whole=whole, copies=copies)
            for source in sources
        ]
        with explain_interrupt(ingestor.notify, INTERRUPTED):
            return SyncReport(tuple(source_sync.run(progress) for source_sync in syncs))


class _KnownFiles:
    """What the store knows of the files of this machine, read once for many sources."""

    def __init__(self, store: Store) -> None:
        self.machine = platform.node()
        self._table = Sources(store)
        self._by_partition: dict[str, dict[str, dict[str, FileRow]]] = {}

    def of(self, source: Source) -> dict[str, FileRow]:
        """Return the known files of a source's tool in its partition, by their path."""
        if source.partition not in self._by_partition:
            states = self._table.file_states(source.partition, self.machine)
            self._by_partition[source.partition] = states
        return self._by_partition[source.partition].get(source.tool, {})

    def expire(self) -> None:
        """Read them again for the next source: files were read."""
        self._by_partition.clear()


class _SourceSync:
    def __init__(
        self,
        ingestor: Ingestor,
        source: Source,
        now: datetime,
        known_files: _KnownFiles,
        *,
        whole: bool,
        copies: bool,
    ) -> None:
        self._whole, self._known_files = whole, known_files
        self._ingestor, self._store, self._source = ingestor, ingestor.store, source
        self._table, self._now = Sources(self._store), now
        self.importer: Importer = importer_named(source.tool)
        self._version = self.importer.version
        self._machine = known_files.machine
        self._excluded = compile_exclusion(list(source.exclude))
        age = retention(ingestor.config, source.partition)
        settings = json.dumps([sorted(source.exclude), str(age)])
        self._settings = hashlib.sha256(settings.encode()).hexdigest()[:32]
        self._leaves_out = False
        self.report = SourceReport(source)
        self._marked: set[str] | None = None
        self.file_marks: set[str] = set()
        elsewhere = None if copies else ElsewhereFilter(self._store)
        self._options = ImportOptions(renew=True, elsewhere=elsewhere)
        self._progress: Callable[[int], None] = lambda _: None

    def run(self, progress: Progress) -> SourceReport:
        links = self.report.imports.links
        root = self._source.path
        endings = self.importer.endings
        walked = watched_files.walk(root, self._excluded, self._report_unreadable, links, endings)
        files = [] if self._source.is_left_out else list(walked)
        rows = self._known_files.of(self._source)
        changed = []
        for file in files:
            if not self._is_unchanged(file, rows):
                changed.append(file)
            elif not rows[escape_path(file.path)].settled:
                self.report.held += 1
        changed.sort(key=self._reading_order)
        self.report.files = len(files)
        total, bytes_read = sum(file.size for file in changed), 0
        for file in changed:
            self._progress = partial(self._report_progress, progress, bytes_read, total)
            self._read_or_report(file)
            bytes_read += file.size
        if changed:
            report_megabytes(progress, total, total)
            self._known_files.expire()
        self._forget_vanished(rows, files)
        report = self.report.imports
        self._ingestor.report(report, report.modes, self._source.partition)
        return self.report

    def _reading_order(self, file: FileState) -> tuple[int, int, str]:
        """Sort a session before its forks and sub-agents, which are deeper or have later dates."""
        time = 0 if self.importer.names_are_dated else file.mtime_ns
        return file.path.count(os.sep), time, file.path

    @staticmethod
    def _report_progress(progress: Progress, before: int, total: int, read: int) -> None:
        report_megabytes(progress, before + read, total)

    def _is_unchanged(self, file: FileState, rows: Mapping[str, FileRow]) -> bool:
        row = rows.get(escape_path(file.path), _UNREAD)
        if row.left_out and self._differs_in_settings(parse_state(row.left_out)):
            return False
        is_same = row[:2] == (file.size, file.mtime_ns) and row.version == self._version
        return is_same and (bool(row.settled) or not self._is_old(file))

    def _differs_in_settings(self, state: Mapping[str, Any] | None) -> bool:
        """Return whether other settings left out messages of a file, or its state is damaged."""
        return state is None or bool(state.get(LEFT_OUT, self._settings) != self._settings)

    def _is_old(self, file: FileState) -> bool:
        if self._whole:
            return True
        age = self._now.timestamp() - file.mtime_ns / 1e9
        return not abs(age) < UNFINISHED_TURN

    def _forget_vanished(self, rows: Mapping[str, FileRow], files: Sequence[FileState]) -> None:
        root = escape_path(str(self._source.path))
        below = f"{root}{os.sep}"
        present = {escape_path(file.path) for file in files}
        vanished = [
            path
            for path in rows
            if path not in present and (path == root or path.startswith(below))
        ]
        if vanished and self._source.path.exists():  # otherwise a disk may just not be mounted
            self._table.drop(self._source.partition, self._machine, vanished)

    def _read_or_report(self, file: FileState) -> None:
        self.report.read += 1
        try:
            self._read(file)
        except StoreError:
            raise
        except FileNotFoundError:  # deleted since it was listed
            self.report.files -= 1
        except OSError as error:
            self._report_unreadable(file.path, error)
        except (Unreadable, ReservoirError) as error:
            prefix = "" if file.path in str(error) else f"cannot read {file.path}: "
            hint = f"; {error.hint}" if isinstance(error, ReservoirError) and error.hint else ""
            self.report.failures.append(f"{prefix}{error}{hint}")

    def _report_unreadable(self, path: str, error: OSError) -> None:
        self.report.failures.append(watched_files.describe_unreadable(path, error))

    def _read(self, file: FileState) -> None:
        self._time: datetime | None = None
        source = self._source
        key = (source.partition, self._machine, escape_path(file.path), source.tool)
        row = SourceFile(*key, self._version, file.size, file.mtime_ns)
        previous = self._table.get(row.partition, row.machine, row.path)
        state = parse_state(previous.state if previous else "")
        if state is None:
            self._ingestor.notify(f"{_DAMAGED}: {file.path}")
            previous, state = None, {}
        self.file_marks = set(state.get(MARKED, ()))
        path = Path(file.path)
        start = self._find_start(previous, state, row, path)
        self._leaves_out = bool(start.state) and LEFT_OUT in state
        is_new = not start.offset and not start.state
        try:
            if is_new and not is_of_tool(path, self._source.tool):
                self.report.imports.passed_over += 1
                self.report.imports.ignored.append(path.name)
                self._table.put(row)
            else:
                before = self.report.read_total
                with count_unread_times() as undated:
                    _FileSync(self, row, path, start, self._time).run(old=self._is_old(file))
                self.report.imports.undated += undated.count
                if is_new and self.report.read_total == before:
                    self._count_nothing(path)
        except NotTextError as error:
            self._table.put(row)  # reported once, and read again when the file changes
            problem = f"cannot read {path} as a history of {self._source.tool}: it is not text"
            raise ReservoirError(problem, hint=error.hint) from None
        except StartOver as reason:
            if str(reason):
                self._ingestor.notify(f"{_DAMAGED}: {file.path}")
            _FileSync(self, row, path, Checkpoint()).run(old=self._is_old(file))

    def _count_nothing(self, path: Path) -> None:
        """Count a file that gave nothing, unless its messages are in another one."""
        file = File.of_path(path, path.stat())
        if not self.importer.is_repeated(file):
            why = DetectedFile(file, self.importer).describe_nothing()
            self.report.imports.nothing[self._source.tool, why] += 1

    def _find_start(
        self, previous: SourceFile | None, state: dict[str, Any], row: SourceFile, path: Path
    ) -> Checkpoint:
        """Return the position to read from: the last one, if the file before it is unchanged."""
        if not previous or not state:
            return Checkpoint()
        is_same = (previous.tool, previous.version) == (row.tool, row.version)
        if not is_same or previous.bytes_read > row.size or self._differs_in_settings(state):
            return Checkpoint()
        with open_regular(path) as stream:
            ends = watched_files.hash_ends(stream, previous.bytes_read)
        if ends != (previous.head, previous.tail):
            return Checkpoint()
        self._time = moment(state.get("time"))
        return Checkpoint(previous.bytes_read, state.get("importer"))

    @property
    def marked(self) -> set[str]:
        """The ids of conversations marked as not to be stored."""
        if self._marked is None:
            source = self._source
            states = self._table.find_marked(source.partition, self._machine, source.tool)
            parsed = filter(None, map(parse_state, states))
            self._marked = {identity for state in parsed for identity in state.get(MARKED, ())}
        return self._marked

    def store(self, items: Sequence[Item], row: SourceFile) -> None:
        """Store messages and the position in their file in one transaction."""
        destination = Destination(row.partition, None, row.partition, self.importer.instance)
        file = FileImport(self._ingestor, destination, self._options, row.path, self._now)
        with self._store.write(durable=False):
            file.load(leave_out(items, self.marked, self._excluded, file.report))
            self._leaves_out |= bool(file.report.expired or file.report.excluded)
            self._table.put(self._add_settings(row))
        self.report.imports.add(file.report)
        self._progress(row.bytes_read)

    def _add_settings(self, row: SourceFile) -> SourceFile:
        """Add the settings to a row if they leave out messages: if changed, it is read again."""
        if not self._leaves_out:
            return row
        state = json.loads(row.state) | {LEFT_OUT: self._settings}
        return row._replace(state=json.dumps(state))


class _FileSync:
    def __init__(
        self,
        sync: _SourceSync,
        row: SourceFile,
        path: Path,
        start: Checkpoint,
        time: datetime | None = None,
    ) -> None:
        self._sync, self._row, self._path, self._start = sync, row, path, start
        self._own_marks: set[str] = set()
        self._time = time
        self._resumes = False

    def run(self, *, old: bool) -> None:
        """Store the new messages of the file, and of an old one also an unfinished turn."""
        file = self._open_part(old=old)
        # Later reads of a database yield only a few changed conversations, each as a whole.
        is_read_again = self._start.state and file.name.endswith(DATABASES)
        if not is_read_again and may_contain_mark(file):
            with suppress(Unreadable):  # raised again below
                for item in self._items(file):
                    self._record_mark(item)
        ready: list[Item] = []
        unfinished: list[Item] = []
        checkpoint = self._start
        held = False
        try:
            for item in self._items(file):
                if not isinstance(item, Checkpoint):
                    unfinished.append(self._set_time(item))
                    self._record_mark(item)
                    continue
                if item.complete or old or (len(unfinished) >= _BATCH and not item.last):
                    ready, unfinished = ready + unfinished, []
                held = item.last and bool(unfinished)
                if not unfinished and item.offset >= checkpoint.offset:
                    checkpoint = item
                if len(ready) >= _BATCH:
                    self._store_unfinished(ready, checkpoint)
                    ready = []
        except Unreadable:  # keep what was read before the damage
            self._store_unfinished(ready, checkpoint)
            raise
        self._sync.report.held += held
        self._sync.store(ready, self._row_at(checkpoint, settled=not held))

    def _store_unfinished(self, items: Sequence[Item], checkpoint: Checkpoint) -> None:
        """Store messages so that the file is read again: none has this size and time."""
        row = self._row_at(checkpoint, settled=False)
        self._sync.store(items, row._replace(size=0, mtime_ns=0))

    def _open_part(self, *, old: bool) -> File:
        """Return the part of the file to read: complete lines, or up to its end if it is old."""
        with open_regular(self._path) as stream:
            is_database = watched_files.is_database(stream)
            resumes_lines = self._sync.importer.resumes_lines
            is_part = resumes_lines and not watched_files.is_converted(stream)
            self._resumes = is_database or is_part
            if is_database or not self._resumes or self._path.name.endswith(COMPRESSED):
                return File.of_path(self._path, os.fstat(stream.fileno()))
            end = self._row.size
            if not old:
                end = watched_files.find_last_line_end(stream, self._start.offset, end)
        return watched_files.open_part(self._path, self._start.offset, end)

    def _items(self, file: File) -> Iterator[Item | Checkpoint]:
        importer = self._sync.importer
        resume = importer.resume if self._resumes else partial(Importer.resume, importer)
        return resume(file, self._start)

    def _record_mark(self, item: Item | Checkpoint) -> None:
        if conversation_id := marked_by(item):
            self._own_marks.add(conversation_id)
            self._sync.marked.add(conversation_id)

    def _set_time(self, item: Item) -> Item:
        """Return a message with a time; without one, that of the previous message."""
        if isinstance(item, Record):
            if item.message.created_at is None:
                return replace(item, message=replace(item.message, created_at=self._time))
            self._time = item.message.created_at
        return item

    def _row_at(self, checkpoint: Checkpoint, *, settled: bool) -> SourceFile:
        """Return the file's row for the store once everything before a checkpoint is stored."""
        state: dict[str, object] = {"importer": checkpoint.state}
        if self._time:
            state["time"] = self._time.isoformat()
        marks = self._own_marks | self._earlier_marks()
        if marks:
            state[MARKED] = sorted(marks)
        with open_regular(self._path) as stream:
            head, tail = watched_files.hash_ends(stream, checkpoint.offset)
        row = self._row._replace(head=head, tail=tail, bytes_read=checkpoint.offset)
        return row._replace(state=json.dumps(state), settled=int(settled))

    def _earlier_marks(self) -> set[str]:
        session = str((self._start.state or {}).get("session", self._path.stem))
        is_resumed = bool(self._start.offset or self._start.state)
        return {session} & self._sync.marked | (self._sync.file_marks if is_resumed else set())
