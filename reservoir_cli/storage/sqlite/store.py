"""The store in one SQLite file: opening it, and every write.

Writers take the lock at once (``BEGIN IMMEDIATE``): a transaction that reads first and asks for
the lock later fails when another process got there in between.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reservoir_cli.errors import ReservoirError, StoreCorruptError, StoreError, StoreLockedError
from reservoir_cli.messages import Key, Scope, check_name
from reservoir_cli.settings import paths
from reservoir_cli.storage import mark_rows, properties, unfinished
from reservoir_cli.storage.base import EVERYTHING, Result, Store
from reservoir_cli.storage.links import LinkThreshold
from reservoir_cli.storage.records import (
    Candidates,
    Filter,
    Passage,
    Problem,
    Progress,
    Talk,
    no_progress,
)
from reservoir_cli.storage.sqlite import own_schema, secure_delete
from reservoir_cli.storage.sqlite.connection import PRAGMAS, Connection, connect
from reservoir_cli.storage.writes import COLUMNS
from reservoir_cli.util.private import make_private_dir, remove_leftovers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reservoir_cli.storage.sqlite.candidates import Kept

#: The number of migrations in ``schema.py``.
SCHEMA_VERSION = 10
#: Stands in the file's header and says whose it is: "Rsvr".
APPLICATION_ID = 0x52737672
#: Seconds that a checkpoint waits for readers; a question takes less than one.
_FOR_READERS = 5.0
#: KiB of pages that a process keeps which answers many questions.
_WARM_PAGES = 32_000


class SqliteStore(Store):
    """A :class:`~reservoir_cli.storage.base.Store` in one file."""

    _connection: Connection

    def __init__(self, location: str, *, create: bool, patience: float) -> None:
        self.location = location
        self.read_only = self.receiving = False
        self._patience = patience
        self._lock = threading.RLock()
        self._kept: Kept | None = None
        with self._errors():
            path = _path(location)
            self.location = str(path)
            self._connection = self._open(path, create)
            self._file = path.absolute()
            self._identity = _identity(self._file)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    # Opening

    def _open(self, path: Path, create: bool) -> Connection:
        if str(path) == ":memory:" or not _exists(path):
            if not create or str(path) == ":memory:":
                return self._connect("file::memory:")
            _refuse_emptied(path)
            self._create(path)
        if path.is_dir():
            raise StoreError(f"{path} is a folder", hint="give the path of a file")
        _refuse_emptied(path)
        _refuse_hard_link(path)
        # SQLite keeps files beside the store, so the folder must be writable too.
        if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
            return self._connect(f"{_uri(path)}?mode=rw")
        self.read_only = True
        connection = self._connect(f"{_uri(path)}?mode=ro")
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            # A WAL file cannot be read in a folder that cannot be written to: nobody writes to
            # it then, and it may be taken as it lies.
            connection.close()
            connection = self._connect(f"{_uri(path)}?immutable=1")
        return connection

    def _create(self, path: Path) -> None:
        """Make an empty file before SQLite opens it: its companions take over the mode."""
        try:
            make_private_dir(path.parent)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise StoreError(
                f"cannot make the store {self.location}: {error.strerror}",
                hint="check the path and its permissions, or give another with --db",
            ) from error

    def _connect(self, uri: str) -> Connection:
        return connect(uri, self._patience)

    def _prepare(self) -> None:
        version = self._known_version()
        for pragma, value in PRAGMAS.items():
            self._set(pragma, value)
        self._refuse_others()
        if version < SCHEMA_VERSION:
            if self.read_only:
                raise StoreError(
                    f"the store is of an older schema ({version}) and cannot be written to",
                    hint="make it writable once, so that it can be brought up to date",
                )
            self._migrate()
        # Reading goes on; whoever writes is told why it is refused.
        self.read_only = self.read_only or own_schema.find_code(self._connection) is not None

    def _known_version(self) -> int:
        """Return the schema version; read in each transaction, as a newer program may change it."""
        version: int = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"the store was written by a newer reservoir "
                f"(schema {version}, this one knows {SCHEMA_VERSION})",
                hint="upgrade reservoir-cli",
            )
        return version

    def _require_same_file(self) -> None:
        """Refuse to write to a file that has been deleted or replaced: it would be lost."""
        if self._identity and _identity(self._file) != self._identity:
            raise StoreError(
                f"the store {self.location} was removed or replaced while it was in use",
                hint="nothing more was stored; run the command again",
            )
        if self._identity:
            _refuse_hard_link(self._file)

    def _refuse_code(self) -> None:
        """Refuse to write where code of whoever made the file would take part."""
        if code := own_schema.find_code(self._connection):
            raise StoreError(
                f"the store {self.location} has {code}, and is not written to",
                hint="drop it if it is yours; else reservoir doctor --salvage FILE makes a store "
                "without it",
            )

    def _refuse_others(self) -> None:
        """Refuse a database that another program made; an empty one may become ours."""
        mark = self._connection.execute("PRAGMA application_id").fetchone()[0]
        tables = self._connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        # Read again: another process may have set the file up between the two.
        if tables and mark != APPLICATION_ID:
            mark = self._connection.execute("PRAGMA application_id").fetchone()[0]
        if (tables or mark) and mark != APPLICATION_ID:
            raise StoreError(
                f"{self.location} is another program's database",
                hint="give --db the path of a Reservoir store or of a new file",
            )

    def _migrate(self) -> None:
        from reservoir_cli.storage.sqlite.schema import migrate

        migrate(self._connection, SCHEMA_VERSION, APPLICATION_ID, self._refuse_code)
        # This pragma ignores the busy timeout, so it is tried until it comes through.
        deadline = time.monotonic() + self._patience
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def close(self) -> None:
        """Close the file, and finish what a reader stopped :meth:`forget` from finishing."""
        with suppress(sqlite3.Error):
            if not self.read_only:
                secure_delete.finish(self._connection, wait=0)
        self._connection.close()

    def keep_warm(self) -> None:
        """Keep pages and vectors between questions.

        SQLite drops pages when another connection has written; vectors are read again if they
        changed.
        """
        from reservoir_cli.storage.sqlite.candidates import Kept

        self._connection.execute(f"PRAGMA cache_size = -{_WARM_PAGES}")
        self._kept = Kept()

    def beside(self, question: str, work: Callable[[], Result]) -> Result:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        kept = self._kept
        if kept is None:
            return work()
        result = kept.helper.submit(work)
        try:
            self._seen(lambda: kept.look_up(self._connection, question))
        finally:
            result.exception()  # waits for it
        return result.result()

    def files(self) -> list[Path]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        if "://" in self.location:  # it stands in for a server
            return []
        return paths.store_files(_path(self.location))

    def size(self) -> int | None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        there = self.files()[:1]
        return there[0].stat().st_size if there and there[0].exists() else None

    def engine(self) -> str:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return f"SQLite {sqlite3.sqlite_version}, schema {SCHEMA_VERSION}"

    # Transactions

    @contextmanager
    def write(self, wait: float | None = None, *, durable: bool = True) -> Iterator[None]:
        """See :class:`~reservoir_cli.storage.base.Session`."""
        with self._lock, self._errors():
            if self._connection.in_transaction:
                yield
                return
            self._require_writable()
            patience = self._patience if wait is None else wait
            with self._pragma("synchronous", "FULL" if durable else "NORMAL", "FULL"):
                with self._pragma("busy_timeout", patience * 1000, self._patience * 1000):
                    self._connection.execute("BEGIN IMMEDIATE")
                with self._until("COMMIT"):
                    self._require_same_file()
                    self._known_version()
                    self._refuse_code()
                    self._refuse_unfinished()
                    yield
            self._require_same_file()

    @contextmanager
    def _pragma(self, name: str, value: str | float, usual: str | float) -> Iterator[None]:
        """Change a setting for a while, if it is to be another than usual."""
        if value != usual:
            self._set(name, value if isinstance(value, str) else int(value))
        try:
            yield
        finally:
            if value != usual:
                self._set(name, usual if isinstance(usual, str) else int(usual))

    def _set(self, pragma: str, value: str | int) -> None:
        self._connection.execute(f"PRAGMA {pragma} = {value}").fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See :class:`~reservoir_cli.storage.base.Session`."""
        with self._lock, self._errors():
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN")
            with self._until("COMMIT"):
                self._known_version()
                yield

    @contextmanager
    def _until(self, end: str) -> Iterator[None]:
        try:
            yield
            self._connection.execute(end)
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _refuse_unfinished(self) -> None:
        if self.receiving:
            return
        mark = None
        with suppress(sqlite3.DatabaseError):  # a damaged file is to be repaired
            mark = properties.get(self._connection, unfinished.UNFINISHED_COPY)
        unfinished.refuse(mark, self.location)

    def _require_writable(self) -> None:
        self._refuse_unfinished()
        if self.read_only:
            self._refuse_code()
            raise StoreError(
                f"the store {self.location} cannot be written to",
                hint="check the permissions of the file and its folder",
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn what SQLite says into an error of ours; it never contains message text."""
        try:
            yield
        except sqlite3.Error as error:
            raise _translated(error, self.location) from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Lend the connection outside of transactions."""
        with self._lock, self._errors():
            self._require_writable()
            yield

    # Writing

    def _insert_messages(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._connection.insert("messages", COLUMNS, rows)

    def _index(self, place: tuple[str, str], texts: Sequence[tuple[int, str]]) -> None:
        from reservoir_cli.storage.sqlite import keyword_search

        keyword_search.index(self._connection, place, texts)

    def _add_vectors(
        self, partition: str, model_id: str, passages: Mapping[int, Sequence[Passage]]
    ) -> None:
        from reservoir_cli.storage.sqlite import vectors

        vectors.add(self._connection, partition, model_id, passages)

    def _delete(self, ids: Mapping[str, Sequence[int]], progress: Progress) -> None:
        from reservoir_cli.storage.sqlite import delete

        numbers = [number for of_partition in ids.values() for number in of_partition]
        delete.remove(self._connection, numbers, mark=True, progress=progress)
        progress("rewriting the full text", 0, 0)
        self._seal()

    def _seal(self) -> None:
        secure_delete.seal(self._connection)

    def _remove(self, partition: str, ids: Sequence[int]) -> None:
        from reservoir_cli.storage.sqlite import delete

        delete.remove(self._connection, ids, mark=False)

    def _purge(self) -> bool:
        with self._alone():
            return secure_delete.finish(self._connection, _FOR_READERS)

    def move_partition(self, old: str, new: str) -> tuple[int, int]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import move_partition

        with self.write():
            return move_partition.move(self._connection, old, check_name(new))

    def copy_to(self, target: Path, progress: Progress = no_progress) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import backup

        with self.snapshot():
            backup.copy(self._connection, target, progress)

    def _messages_after(self, after: Key | None, count: int) -> list[Any]:
        return self._connection.execute(
            f"SELECT {COLUMNS} FROM messages WHERE id > ? ORDER BY id LIMIT ?",
            [after.id if after else 0, count],
        ).fetchall()

    def shared_ids(self) -> list[Key]:
        """Return nothing: an id is unique in a file."""
        return []

    # Checking and repairing

    def problems(self) -> list[Problem]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import repair

        with self._lock, self._errors():
            # Whatever these say may be about an index, so it is worth trying.
            damage = repair.file_problems(self._connection)
            if damage:
                return [Problem(detail, repairable=True) for detail in damage]
        with self.snapshot():
            return list(self._derived_problems())

    def _derived_problems(self) -> Iterator[Problem]:
        from reservoir_cli.storage.sqlite import repair, vector_blocks

        if code := own_schema.find_code(self._connection):
            yield Problem(f"there is {code}: nothing is written", repairable=False)
        active = self.active_model()
        if count := repair.missing_from_full_text(self._connection):
            yield Problem(f"the full text is wrong about {_messages(count)}", repairable=True)
        if count := vector_blocks.problems(self._connection, active[0] if active else ""):
            yield Problem(f"what ranking reads is wrong about {_messages(count)}", repairable=True)
        if count := mark_rows.count_orphans(self._connection):
            yield Problem(f"{count:,} tags and pins are of no message", repairable=True)
        if unreadable := repair.unreadable(self._connection):
            ids = ", ".join(map(str, unreadable[:10]))
            detail = f"{_messages(len(unreadable))} cannot be read: {ids}"
            yield Problem(detail, repairable=False)

    def repair(self, link_threshold: LinkThreshold) -> list[int]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import repair

        with self._lock, self._errors():
            self._require_writable()
            damaged = repair.file_problems(self._connection)
        if damaged:
            return self._rewrite(link_threshold)
        with self.write():
            mended = repair.mend_texts(self._connection)
            mark_rows.remove_orphans(self._connection)
            repair.mend_model(self._connection)
            repair.rebuild_full_text(self._connection)
            if active := self.active_model():
                repair.rebuild_vector_blocks(self._connection, active[0])
                repair.rebuild_links(self._connection, active[0], link_threshold)
        return mended

    def _rewrite(self, link_threshold: LinkThreshold) -> list[int]:
        """Rewrite the store in a file beside it that only the user can read."""
        from tempfile import TemporaryDirectory

        from reservoir_cli.storage.sqlite import rewrite

        remove_leftovers(self._file)
        beside = f".{self._file.name}."
        with TemporaryDirectory(prefix=beside, dir=self._file.parent) as folder:
            fresh = SqliteStore(f"{folder}/fresh.db", create=True, patience=self._patience)
            mended: list[int] = []
            try:
                with self._alone():
                    rewrite.rewrite(
                        self._file,
                        fresh._file,
                        lambda: mended.extend(fresh.repair(link_threshold)),
                        self._patience,
                    )
            finally:
                fresh.close()
        return mended

    # Questions

    def keyword(
        self, text: str, scope: Scope, limit: int, where: Filter = EVERYTHING
    ) -> tuple[list[tuple[int, float]], bool]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import keyword_search

        def search() -> tuple[list[tuple[int, float]], bool]:
            active = self.active_model()
            matching = self._matching(scope, where)
            model_id = active[0] if active else None
            return keyword_search.search(self._connection, text, scope, limit, model_id, matching)

        return self._seen(search)

    def candidates(
        self,
        scope: Scope,
        own: str | None,
        question: str,
        vector: "NDArray[np.float32] | None",
        where: Filter = EVERYTHING,
        talk: Talk | None = None,
    ) -> Candidates:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import candidates

        def gather() -> Candidates:
            active = self.active_model()
            model_id = active[0] if active else None
            gathered = candidates.candidates(
                self._connection, scope, own, question, model_id, vector, talk, self._kept
            )
            return gathered.mark(self._matching(scope, where))

        return self._seen(gather)


def _messages(count: int) -> str:
    return f"{count:,} message{'' if count == 1 else 's'}"


def _path(location: str) -> Path:
    try:
        return Path(location).expanduser()
    except RuntimeError:
        raise StoreError(f"there is no home folder for {location}") from None


def _uri(path: Path) -> str:
    try:
        return path.absolute().as_uri()
    except OSError:
        raise StoreError(
            f"cannot open the store {path}: the current folder is gone", hint="give a whole path"
        ) from None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise StoreError(
            f"cannot open the store {path}: {reason}", hint="check the path and its permissions"
        ) from None


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another of the same name; nothing if there is none."""
    try:
        state = path.stat()
    except (OSError, ValueError):
        return None
    return state.st_dev, state.st_ino


def _refuse_emptied(path: Path) -> None:
    """Refuse a file that is empty or gone while its log is there: SQLite would delete the log."""
    log = path.with_name(path.name + "-wal")
    there = _exists(path)
    if (there and path.stat().st_size) or not _exists(log) or not log.stat().st_size:
        return
    happened = "emptied" if there else "removed"
    raise StoreError(f"the store {path} was {happened}, but its log was not", hint=_WAY_BACK)


def _refuse_hard_link(path: Path) -> None:
    """Refuse a file with several names: each has a log of its own, and one overwrites the other.

    File systems that do not count names say 0 or 1, as some do on Windows.
    """
    try:
        names = path.stat().st_nlink
    except OSError:  # removed this instant
        return
    if names > 1:
        raise StoreError(
            f"the store {path} has {names} names (hard links): what is written by one is lost by "
            "the other",
            hint="remove the others, not the one with a -wal file beside it (find FOLDER -samefile "
            f"{path} lists them); a symbolic link is fine",
        )


def _translated(error: sqlite3.Error, location: str) -> ReservoirError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreLockedError(
            "the store is locked by another process", hint="try again when it has finished"
        )
    if isinstance(error, sqlite3.OperationalError) and not hasattr(error, "sqlite_errorcode"):
        code = sqlite3.SQLITE_CORRUPT  # Python's own error: a text that is no UTF-8
    # Not the error's own text: it may quote what was searched for, or what is stored.
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if code in _FAULTS:
        corrupt = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
        kind = StoreCorruptError if corrupt else StoreError
        return kind(*(part.format(location=location, name=name) for part in _FAULTS[code]))
    return StoreError(f"the store {location} failed: {name}", hint="reservoir doctor")


_WAY_BACK = "move it and the files -wal and -shm beside it away, then copy a backup there"
_PERMISSIONS = "check the permissions of the file and its folder"
#: What is wrong, and the way out, by SQLite's primary result code.
_FAULTS = {
    sqlite3.SQLITE_NOTADB: (
        "{location} is not a database",
        "give --db the path of a Reservoir store; if it was one, restore it from a backup",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "the store {location} is corrupt",
        StoreCorruptError.WAY_OUT,
    ),
    sqlite3.SQLITE_READONLY: ("the store {location} cannot be written to", _PERMISSIONS),
    sqlite3.SQLITE_CANTOPEN: ("cannot open the store {location}", _PERMISSIONS),
    sqlite3.SQLITE_FULL: (
        "the disk is full: the store {location} has no room",
        "make room, then run the command again",
    ),
    sqlite3.SQLITE_IOERR: (
        "the disk failed under the store {location}: {name}",
        "check the disk, the room on it and your quota, then run the command again",
    ),
}
