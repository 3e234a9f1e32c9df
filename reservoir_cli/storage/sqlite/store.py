"""The store in one SQLite file.

Writers take the lock immediately (``BEGIN IMMEDIATE``): a transaction that reads first and takes
the lock later fails if another process has written in between.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reservoir_cli.errors import StoreError
from reservoir_cli.messages import (
    EVERYTHING,
    Channel,
    Filter,
    Key,
    Scope,
    StoredMessage,
    check_name,
)
from reservoir_cli.settings import paths
from reservoir_cli.storage import properties
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.portable_sql import batches
from reservoir_cli.storage.schema import OF_MESSAGES, VERSION
from reservoir_cli.storage.search.links import Vectors
from reservoir_cli.storage.search.quantize import restore
from reservoir_cli.storage.sqlite import blocks, foreign_code
from reservoir_cli.storage.sqlite.care import erase_deleted_text
from reservoir_cli.storage.sqlite.connection import Connection, errors
from reservoir_cli.storage.sqlite.store_file import (
    check_and_migrate,
    known_version,
    open_file,
    path_of,
    refuse_hard_link,
)
from reservoir_cli.storage.store import Problem, Repaired, Store
from reservoir_cli.storage.tables import reads
from reservoir_cli.storage.tables.writes import COLUMNS
from reservoir_cli.storage.transactions import Result, reading
from reservoir_cli.util.private_files import remove_leftovers, temporary_folder
from reservoir_cli.util.progress import Progress, no_progress
from reservoir_cli.util.timeouts import CHECKPOINT

if TYPE_CHECKING:
    from reservoir_cli.storage.search.candidates import Query, Uncompared
    from reservoir_cli.storage.sqlite.read_candidates import QuestionCache


class SqliteStore(Store):
    """A :class:`~reservoir_cli.storage.store.Store` in one file."""

    _warm = False
    _cache: "QuestionCache | None" = None
    _connection: Connection
    _writes = 0  #: How often a write transaction has begun or ended.

    def __init__(self, location: str, *, create: bool, patience: float) -> None:
        path = path_of(location)
        self.location = str(path)
        self.receiving = False
        self._patience = patience
        self._checked_schema = -1
        self._lock = threading.RLock()
        with errors(self.location):
            self._connection, self.read_only = open_file(path, create, patience)
            self._file = path.absolute()
            self._identity = paths.file_identity(str(self._file))
            self.missing = not create and self._identity is None
            try:
                check_and_migrate(self._connection, self.location, self.read_only, patience)
                # Reads still work; a write raises an error that names the code.
                self.read_only = (
                    self.read_only or foreign_code.find_code(self._connection) is not None
                )
            except BaseException:
                self._connection.close()
                raise

    def _require_same_file(self) -> None:
        """Refuse to write to a file that was deleted or replaced: the write would be lost."""
        if self._identity and paths.file_identity(str(self._file)) != self._identity:
            raise StoreError(
                f"the store {self.location} was removed or replaced while it was in use",
                hint="nothing more was stored; run the command again",
            )
        if self._identity:
            refuse_hard_link(self._file)

    def close(self) -> None:
        """Close the file after the transactions of other threads, and finish a deletion."""
        with self._lock:
            with suppress(sqlite3.Error):
                if not self.read_only and properties.get(self._connection, properties.UNFINISHED):
                    erase_deleted_text.finish(self._connection, wait=0)
            self._connection.close()

    @contextmanager
    def write(self, wait: float | None = None, *, durable: bool = True) -> Iterator[None]:
        patience = self._patience if wait is None else wait
        with self._reserve(patience) as seconds, errors(self.location):
            if self._connection.in_transaction:
                self._require_write_transaction()
                yield
                return
            self._require_writable()
            with self._pragma("synchronous", "FULL" if durable else "NORMAL", "FULL"):
                with self._pragma("busy_timeout", int(seconds * 1000), int(self._patience * 1000)):
                    self._connection.execute("BEGIN IMMEDIATE")
                with self._transaction(writes=True):
                    self._require_same_file()
                    known_version(self._connection)
                    schema = self._connection.execute("PRAGMA schema_version").fetchone()[0]
                    if schema != self._checked_schema:
                        foreign_code.refuse_code(self._connection, self.location)
                        self._checked_schema = schema
                    self._refuse_unfinished()
                    yield
                    if self.missing:  # an empty store in memory
                        raise StoreError(
                            f"there is no store at {self.location}",
                            hint="reservoir ingest creates it",
                        )
            self._require_same_file()

    @contextmanager
    def _pragma(self, name: str, value: str | int, usual: str | int) -> Iterator[None]:
        if value == usual:
            yield
            return
        self._connection.execute(f"PRAGMA {name} = {value}").fetchall()
        try:
            yield
        finally:
            self._connection.execute(f"PRAGMA {name} = {usual}").fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._lock, errors(self.location):
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN")
            with self._transaction(writes=False):
                known_version(self._connection)
                yield

    @contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[None]:
        self._writing = writes
        self._writes += writes
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        finally:
            self._writing = False
            self._writes += writes

    def _refuse_unfinished(self) -> None:
        if self.receiving:
            return
        mark = None
        with suppress(sqlite3.DatabaseError):  # a damaged file must stay writable for repair
            mark = properties.get(self._connection, properties.UNFINISHED_COPY)
        properties.refuse_unfinished(mark, self.location)

    def _require_writable(self) -> None:
        self._refuse_unfinished()
        if self.read_only:
            foreign_code.refuse_code(self._connection, self.location)
            raise StoreError(
                f"the store {self.location} cannot be written to",
                hint="check the permissions of the file and its folder",
            )

    @contextmanager
    def _outside_transaction(self) -> Iterator[None]:
        with self._lock, errors(self.location):
            self._require_writable()
            yield

    def keep_warm(self) -> None:
        """Keep vectors in memory between questions; those that have changed are read again."""
        self._warm = True

    def start(self, work: Callable[[], Result]) -> Callable[[], Result]:
        if not self._warm:
            return super().start(work)
        return self._get_cache().helper.submit(work).result

    def _get_cache(self) -> "QuestionCache":
        from reservoir_cli.storage.sqlite.read_candidates import QuestionCache

        if self._cache is None:
            self._cache = QuestionCache()
        return self._cache

    def files(self) -> list[Path]:
        if "://" in self.location:  # an empty store in memory in place of a missing one on a server
            return []
        return paths.store_files(path_of(self.location))

    def size(self) -> int | None:
        files = self.files()
        return files[0].stat().st_size if files and files[0].exists() else None

    def engine(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}, schema {VERSION}"

    def _insert_messages(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._connection.insert("messages", COLUMNS, rows)

    def _index(self, channel: Channel, messages: Sequence[StoredMessage]) -> None:
        from reservoir_cli.storage.sqlite import keyword_search

        keyword_search.index(self._connection, channel, messages)

    def _add_vectors(
        self, partition: str, model_id: str, passages: Mapping[int, Sequence[Passage]]
    ) -> None:
        blocks.append(self._connection, model_id, passages)

    def _renew_ranking_data(self, ids: Mapping[str, Sequence[int]]) -> None:
        blocks.renew(self._connection, list(chain(*ids.values())))

    def _read_passages(
        self, partition: str, model_id: str, ids: Sequence[int]
    ) -> dict[int, list[Passage]]:
        return blocks.read_passages(self._connection, model_id, ids)

    def _read_vectors(self, channel: Channel, model_id: str, ids: Sequence[int]) -> Vectors | None:
        entries = blocks.read(self._connection, channel, model_id, ids)
        return None if entries is None else (entries.ids, restore(entries.scales, entries.codes))

    @reading
    def dimensions(self) -> int | None:
        return blocks.dimensions(self._connection, self._model_id())

    def _unindex(self, channel: Channel, messages: Sequence[StoredMessage]) -> None:
        from reservoir_cli.storage.sqlite import keyword_search

        keyword_search.unindex(self._connection, channel, messages)
        blocks.remove(self._connection, channel, [message.id for message in messages])

    def _seal(self, progress: Progress = no_progress) -> None:
        progress("rewriting the full-text index", 0, 0)
        erase_deleted_text.seal(self._connection)

    def _purge(self, _partitions: Iterable[str] = ()) -> bool:
        with self._outside_transaction():
            return erase_deleted_text.finish(self._connection, CHECKPOINT)

    def move_partition(self, old: str, new: str) -> tuple[int, int]:
        with self.write():
            moved, dropped = self._move(old, check_name(new))
            if dropped:  # one of two texts may be gone, which an edit was to erase
                self._seal()
        if dropped:
            self._purge()  # if a reader prevents it, a later command does it
        return moved, dropped

    def _move_messages(self, old: Channel, new: Channel) -> int:
        from reservoir_cli.storage.sqlite import keyword_search

        connection = self._connection
        select = "SELECT id FROM messages WHERE partition = ? AND instance = ? ORDER BY id"
        ids = [row[0] for row in connection.execute(select, old)]
        for batch in batches(ids):
            messages = reads.by_id(connection, batch, Scope(*old))
            keyword_search.unindex(connection, old, messages)
            keyword_search.index(connection, new, messages)
            listed, bound = connection.in_list("message_id", batch)
            for table in OF_MESSAGES:
                connection.execute(
                    f"UPDATE {table} SET partition = ? WHERE partition = ? AND {listed}",
                    [new[0], old[0], *bound],
                )
        connection.execute(
            "UPDATE messages SET partition = ?, instance = ? WHERE partition = ? AND instance = ?",
            [*new, *old],
        )
        blocks.move(connection, old, new)
        return len(ids)

    def _move_runs(self, old: str, new: str) -> None:
        self._connection.execute(
            "UPDATE context_runs SET partition = ? WHERE partition = ?", [new, old]
        )

    def copy_to(self, target: Path, progress: Progress = no_progress) -> None:
        from reservoir_cli.storage.sqlite.care import repair

        with self.snapshot():
            repair.write_copy(self._connection, target, progress)

    def _messages_after(self, after: Key | None, count: int) -> list[Any]:
        return self._connection.execute(
            f"SELECT {COLUMNS} FROM messages WHERE id > ? ORDER BY id LIMIT ?",
            [after.id if after else 0, count],
        ).fetchall()

    def problems(self) -> list[Problem]:
        from reservoir_cli.storage.sqlite.care import repair

        with self._lock, errors(self.location):
            # The damage may be in an index only, so a repair is worth trying.
            damage = repair.file_problems(self._connection)
            if damage:
                return [Problem(detail, repairable=True) for detail in damage]
        with self.snapshot():
            return list(repair.problems(self._connection, self._model_id()))

    def repair(self) -> Repaired:
        from reservoir_cli.storage.sqlite.care import repair

        with self._lock, errors(self.location):
            self._require_writable()
            damaged = repair.file_problems(self._connection)
        if not damaged:
            with self.write():
                return Repaired(repair.rebuild(self._connection, self._model_id))
        texts: list[int] = []
        remove_leftovers(self._file)
        with temporary_folder(self._file.parent, f".{self._file.name}.") as folder:
            fresh = SqliteStore(f"{folder}/fresh.db", create=True, patience=self._patience)
            with closing(fresh), self._outside_transaction():
                summaries = repair.rewrite_damaged(
                    self._file,
                    fresh._file,
                    lambda: texts.extend(fresh.repair().texts),
                    self._patience,
                )
        return Repaired(texts, summaries)

    @reading
    def keyword(
        self, text: str, scope: Scope, limit: int, where: Filter = EVERYTHING
    ) -> tuple[list[tuple[int, float]], bool]:
        from reservoir_cli.storage.sqlite import keyword_search

        matching = self._matching(scope, where)
        model_id = self._model_id()
        return keyword_search.search(self._connection, text, scope, limit, model_id, matching)

    def _gather(self, query: "Query") -> "Uncompared":
        from reservoir_cli.storage.sqlite import read_candidates

        cache = self._get_cache() if self._warm else None
        return read_candidates.gather(self._connection, query, cache, self._writes)
