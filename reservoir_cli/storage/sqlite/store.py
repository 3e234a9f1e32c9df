"""The store in one SQLite file: opening it, and every write.

Writers take the lock at once (``BEGIN IMMEDIATE``): a transaction that reads first and asks for
the lock later fails when another process got there in between.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reservoir_cli.errors import ReservoirError, StoreCorruptError, StoreError, StoreLockedError
from reservoir_cli.messages import (
    Conversation,
    Key,
    Message,
    Scope,
    StoredMessage,
    clean_name,
    to_epoch_ms,
)
from reservoir_cli.settings import paths
from reservoir_cli.storage import unfinished
from reservoir_cli.storage.base import LinkThreshold
from reservoir_cli.storage.records import Fault, Filter, Passage
from reservoir_cli.storage.sqlite import own_schema, properties, reads, secure_delete
from reservoir_cli.storage.sqlite.keeping import Keeping
from reservoir_cli.util.private import make_private_dir, remove_leftovers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reservoir_cli.storage.records import Candidates, Talk
    from reservoir_cli.tokens import TokenCounter

#: The number of migrations in ``schema.py``.
SCHEMA_VERSION = 7
#: Stands in the file's header and says whose it is: "Rsvr".
APPLICATION_ID = 0x52737672


class SqliteStore(Keeping):
    """A :class:`~reservoir_cli.storage.base.Store` in one file."""

    def __init__(self, location: str, *, create: bool, patience: float) -> None:
        self.location = location
        self.read_only = self.receiving = False
        self._patience = patience
        self._lock = threading.RLock()
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

    def _open(self, path: Path, create: bool) -> sqlite3.Connection:
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

    def _connect(self, uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=self._patience,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.create_function("holds", 3, reads.holds, deterministic=True)
        return connection

    def _prepare(self) -> None:
        version = self._known_version()
        for pragma, value in (
            ("foreign_keys", "ON"),
            ("secure_delete", "ON"),
            ("synchronous", "FULL"),
            # Sorted and looked up words would lie in a temporary file otherwise.
            ("temp_store", "MEMORY"),
            # What a file says of itself is not run: it may come from anywhere.
            ("trusted_schema", "OFF"),
        ):
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
        """The schema of the file; asked in each transaction, for a newer program may change it."""
        version: int = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"the store was written by a newer reservoir "
                f"(schema {version}, this one knows {SCHEMA_VERSION})",
                hint="upgrade reservoir-cli",
            )
        return version

    def _require_same_file(self) -> None:
        """What is written to a file that has no name any more would be lost."""
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
    def writing(self, wait: float | None = None) -> Iterator[None]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self._lock, self._errors():
            if self._connection.in_transaction:
                yield
                return
            self._require_writable()
            if wait is not None:
                self._set("busy_timeout", int(wait * 1000))
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            finally:
                if wait is not None:
                    self._set("busy_timeout", int(self._patience * 1000))
            with self._until("COMMIT"):
                self._require_same_file()
                self._known_version()
                self._refuse_code()
                self._refuse_unfinished()
                yield
            self._require_same_file()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self._lock, self._errors():
            self._set("synchronous", "NORMAL")
            try:
                yield
            finally:
                self._set("synchronous", "FULL")

    def _set(self, pragma: str, value: str | int) -> None:
        self._connection.execute(f"PRAGMA {pragma} = {value}").fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """One read transaction; inner ones join it."""
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
    def _decoding(self) -> Iterator[None]:
        """Call what is packed in rows and cannot be unpacked what it is: a damaged file."""
        try:
            yield
        except (ValueError, TypeError, LookupError, OverflowError, ArithmeticError) as error:
            raise StoreCorruptError(
                f"the store {self.location} is corrupt: what ranking reads is damaged",
                hint="reservoir doctor --repair",
            ) from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """The connection to oneself, outside of transactions."""
        with self._lock, self._errors():
            self._require_writable()
            yield

    # Writing

    def add(
        self,
        scope: Scope,
        messages: Sequence[Message],
        *,
        counter: "TokenCounter",
        now: datetime,
        pair: bool = False,
    ) -> list[StoredMessage | None]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite.writes import add

        with self.writing():
            return add(self._connection, scope, messages, counter, to_epoch_ms(now), pair=pair)

    def add_conversations(self, scope: Scope, conversations: Sequence[Conversation]) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        place = scope.partition, scope.instance
        with self.writing():
            self._connection.executemany(
                f"""
                INSERT INTO conversations (partition, instance, {reads.CONVERSATION_COLUMNS})
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (partition, instance, id) DO UPDATE SET
                title = coalesce(excluded.title, title), source = coalesce(excluded.source, source),
                model = coalesce(excluded.model, model),
                project = coalesce(excluded.project, project),
                branch = coalesce(excluded.branch, branch)
                """,
                [(*place, clean_name(each.id), *astuple(each)[1:]) for each in conversations],
            )

    def add_passages(
        self,
        model_id: str,
        passages: Mapping[Key, Sequence[Passage]],
        synapse_threshold: LinkThreshold,
    ) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        import numpy as np

        from reservoir_cli.storage.sqlite import links, vector_blocks
        from reservoir_cli.storage.sqlite.vectors import pack

        with self.writing(), self._decoding():
            # A message may have been forgotten, or embedded by another process, since it was read.
            lacking = self._lacking(model_id)
            ids = [number for _, number in passages]
            due = reads.still_pending(self._connection, ids, lacking)
            vectors: dict[int, list[NDArray[np.float32]]] = {}
            rows = []
            for (_, number), of_message in passages.items():
                for each in of_message if number in due else ():
                    vectors.setdefault(number, []).append(each.vector)
                    rows.append(
                        (number, model_id, each.number, each.start, each.end, pack(each.vector))
                    )
            self._connection.executemany("INSERT INTO embeddings VALUES (?, ?, ?, ?, ?, ?)", rows)
            self._connection.executemany(
                f"DELETE FROM {lacking} WHERE message_id = ?", [(each,) for each in ids]
            )
            stacked = {number: np.stack(some) for number, some in vectors.items()}
            vector_blocks.append(self._connection, model_id, sorted(due), stacked)
            links.tie(self._connection, sorted(due), model_id, synapse_threshold)

    def _lacking(self, model_id: str) -> str:
        """The table of messages without vectors of a model.

        :raises ReservoirError: vectors of it are of no use, as of a model given up meanwhile.
        """
        if model_id == properties.get(self._connection, properties.NEXT_ID):
            return "rebuilding"
        if properties.get(self._connection, properties.MODEL_ID) in (None, model_id):
            return "pending"
        raise ReservoirError(
            "the model of this store was changed meanwhile", hint="run the command again"
        )

    def faults(self) -> list[Fault]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import repair, vector_blocks

        with self._lock, self._errors():
            # Whatever these say may be about an index, so it is worth trying.
            found = [Fault(each, repairable=True) for each in repair.file_faults(self._connection)]
            if found:
                return found
        with self.snapshot():
            code = own_schema.find_code(self._connection)
            found = [Fault(f"there is {code}: nothing is written", False)] if code else []
            active = self.active_model()
            for count, what in (
                (repair.missing_from_full_text(self._connection), "the full text"),
                (
                    vector_blocks.faults(self._connection, active[0] if active else ""),
                    "what ranking reads",
                ),
            ):
                if count:
                    found.append(Fault(f"{what} is wrong about {_messages(count)}", True))
            if unreadable := repair.unreadable(self._connection):
                ids = ", ".join(map(str, unreadable[:10]))
                found.append(Fault(f"{_messages(len(unreadable))} cannot be read: {ids}", False))
            return found

    def repair(self, synapse_threshold: LinkThreshold) -> list[int]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import repair

        with self._lock, self._errors():
            self._require_writable()
            damaged = repair.file_faults(self._connection)
        if damaged:
            return self._rewrite(synapse_threshold)
        with self.writing():
            mended = repair.mend_texts(self._connection)
            repair.mend_model(self._connection)
            repair.rebuild_full_text(self._connection)
            if active := self.active_model():
                repair.rebuild_chunks(self._connection, active[0])
                repair.rebuild_synapses(self._connection, active[0], synapse_threshold)
        return mended

    def _rewrite(self, synapse_threshold: LinkThreshold) -> list[int]:
        """Write the store anew, in a file beside it that only the user can read."""
        import tempfile

        from reservoir_cli.storage.sqlite import salvage

        remove_leftovers(self._file)
        beside = f".{self._file.name}."
        with tempfile.TemporaryDirectory(prefix=beside, dir=self._file.parent) as folder:
            fresh = SqliteStore(f"{folder}/fresh.db", create=True, patience=self._patience)
            mended: list[int] = []
            try:
                with self._alone():
                    salvage.rewrite(
                        self._file,
                        fresh._file,
                        lambda: mended.extend(fresh.repair(synapse_threshold)),
                        self._patience,
                    )
            finally:
                fresh.close()
        return mended

    def renew_counts(self, counts: Mapping[Key, int], counter: str) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.writing():
            self._connection.executemany(
                "UPDATE messages SET tokens = ?, counter = ? WHERE id = ?",
                [(tokens, counter, number) for (_, number), tokens in counts.items()],
            )

    def mark_secrets(self, found: Mapping[Key, Sequence[str]]) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.writing():
            self._connection.executemany(
                "UPDATE messages SET secrets = ? WHERE id = ?",
                [
                    (" ".join(sorted(set(kinds))) or None, number)
                    for (_, number), kinds in found.items()
                ],
            )

    def add_run(self, run: Mapping[str, Any]) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.writing():
            self._connection.execute(
                f"INSERT INTO context_runs ({', '.join(run)}) VALUES ({reads.marks(list(run))})",
                list(run.values()),
            )

    def activate_model(self, model_id: str, name: str) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.writing():
            properties.put(self._connection, properties.MODEL_ID, model_id)
            properties.put(self._connection, properties.MODEL_NAME, name)

    # Reading

    def active_model(self) -> tuple[str, str] | None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            found = properties.get(self._connection, properties.MODEL_ID)
            name = properties.get(self._connection, properties.MODEL_NAME)
        return (found, name) if found and name else None

    def pending(self, limit: int, scope: Scope, *, newest: bool = False) -> list[StoredMessage]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return reads.pending(self._connection, scope, limit, newest=newest)

    def pending_count(self, scope: Scope) -> int:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return reads.pending_count(self._connection, scope)

    def last(
        self,
        scope: Scope,
        count: int,
        where: Filter = Filter(),  # noqa: B008 - it is frozen
    ) -> list[StoredMessage]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return reads.last(self._connection, scope, count, where)

    def by_id(self, ids: Sequence[int], scope: Scope) -> list[StoredMessage]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return reads.by_id(self._connection, ids, scope)

    def by_key(self, keys: Sequence[Key]) -> list[StoredMessage]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self.by_id([number for _, number in keys], Scope(None))

    def with_partners(self, ids: Sequence[int], scope: Scope) -> list[StoredMessage]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return reads.with_partners(self._connection, ids, scope)

    def keyword(
        self,
        text: str,
        scope: Scope,
        limit: int,
        where: Filter = Filter(),  # noqa: B008 - it is frozen
    ) -> tuple[list[tuple[int, float]], bool]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite.keyword_search import search

        with self.snapshot(), self._decoding():
            active = self.active_model()
            keys = None if where == Filter() else self.find(scope, where)
            model_id = active[0] if active else None
            return search(self._connection, text, scope, limit, model_id, keys)

    def candidates(
        self,
        scope: Scope,
        own: str | None,
        question: str,
        vector: "NDArray[np.float32] | None",
        where: Filter = Filter(),  # noqa: B008 - it is frozen
        talk: "Talk | None" = None,
    ) -> "Candidates":
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite.candidates import candidates

        with self.snapshot(), self._decoding():
            active = self.active_model()
            model_id = active[0] if active else None
            found = candidates(self._connection, scope, own, question, model_id, vector, talk)
            return found if where == Filter() else found.mark(self.find(scope, where))

    def tied(self, ids: Iterable[int], depth: int, scope: Scope) -> list[int]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite.links import tied

        with self.snapshot(), self._decoding():
            return tied(self._connection, ids, depth, scope)

    def runs(self, since: datetime | None) -> list[dict[str, Any]]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return reads.runs(self._connection, to_epoch_ms(since) if since else 0)

    def holdings(self) -> dict[str, int]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return reads.holdings(self._connection)

    def newest_instance(self, partition: str) -> str | None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return reads.newest_instance(self._connection, partition)

    def places(self) -> list[tuple[str, str, int]]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            return reads.places(self._connection)


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
    """What tells a file from another one that takes its name; nothing if there is none."""
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
