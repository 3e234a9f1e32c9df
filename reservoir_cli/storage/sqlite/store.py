"""The store in one SQLite file: what only a file does."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reservoir_cli.messages import Key, Scope, check_name
from reservoir_cli.settings import paths
from reservoir_cli.storage.base import EVERYTHING, Store
from reservoir_cli.storage.links import LinkThreshold
from reservoir_cli.storage.records import Filter, Passage, Problem
from reservoir_cli.storage.session import Result
from reservoir_cli.storage.sqlite import secure_delete
from reservoir_cli.storage.sqlite.connection import errors
from reservoir_cli.storage.sqlite.session import SCHEMA_VERSION, Session
from reservoir_cli.storage.sqlite.store_file import path_of
from reservoir_cli.storage.writes import COLUMNS
from reservoir_cli.util.private_files import remove_leftovers, temporary_folder
from reservoir_cli.util.progress import Progress, no_progress

if TYPE_CHECKING:
    from reservoir_cli.storage.candidates import Asked, Candidates
    from reservoir_cli.storage.sqlite.candidates import Kept

#: Seconds that a checkpoint waits for readers; a question takes less than one.
_FOR_READERS = 5.0
#: KiB of pages that a process keeps which answers many questions.
_WARM_PAGES = 32_000


class SqliteStore(Session, Store):
    """A :class:`~reservoir_cli.storage.base.Store` in one file."""

    _warm = False
    _kept: "Kept | None" = None

    def keep_warm(self) -> None:
        """Keep pages and vectors between questions.

        SQLite drops pages when another connection has written; vectors are read again if they
        changed.
        """
        self._connection.execute(f"PRAGMA cache_size = -{_WARM_PAGES}")
        self._warm = True

    def beside(self, question: str, work: Callable[[], Result]) -> Result:
        """See :class:`~reservoir_cli.storage.session.Session`."""
        if not self._warm:
            return work()
        kept = self._kept_between()
        result = kept.helper.submit(work)
        try:
            self._seen(lambda: kept.look_up(self._connection, question))
        finally:
            result.exception()  # waits for it
        return result.result()

    def _kept_between(self) -> "Kept":
        from reservoir_cli.storage.sqlite.candidates import Kept

        if self._kept is None:
            self._kept = Kept()
        return self._kept

    def files(self) -> list[Path]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        if "://" in self.location:  # it stands in for a server
            return []
        return paths.store_files(path_of(self.location))

    def size(self) -> int | None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        there = self.files()[:1]
        return there[0].stat().st_size if there and there[0].exists() else None

    def engine(self) -> str:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return f"SQLite {sqlite3.sqlite_version}, schema {SCHEMA_VERSION}"

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
        numbers = [number for of_partition in ids.values() for number in of_partition]
        self._remove_rows(numbers, mark=True, progress=progress)
        progress("rewriting the full text", 0, 0)
        self._seal()

    def _remove(self, partition: str, ids: Sequence[int]) -> None:
        self._remove_rows(ids, mark=False)

    def _remove_rows(
        self, ids: Sequence[int], *, mark: bool, progress: Progress = no_progress
    ) -> None:
        from reservoir_cli.storage.sqlite import delete

        delete.remove(self._connection, ids, mark=mark, progress=progress)

    def _seal(self) -> None:
        secure_delete.seal(self._connection)

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

        with self._lock, errors(self.location):
            # Whatever these say may be about an index, so it is worth trying.
            damage = repair.file_problems(self._connection)
            if damage:
                return [Problem(detail, repairable=True) for detail in damage]
        with self.snapshot():
            return list(repair.problems(self._connection, self._model_id()))

    def repair(self, link_threshold: LinkThreshold) -> list[int]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import repair, rewrite

        with self._lock, errors(self.location):
            self._require_writable()
            damaged = repair.file_problems(self._connection)
        if not damaged:
            with self.write():
                return repair.rebuild(self._connection, self._model_id, link_threshold)
        with self._beside() as fresh:
            mended: list[int] = []
            with self._alone():
                rewrite.rewrite(
                    self._file,
                    fresh._file,
                    lambda: mended.extend(fresh.repair(link_threshold)),
                    self._patience,
                )
        return mended

    @contextmanager
    def _beside(self) -> "Iterator[SqliteStore]":
        """Yield an empty store in a folder beside this one that only the user can read."""
        remove_leftovers(self._file)
        with temporary_folder(self._file.parent, f".{self._file.name}.") as folder:
            fresh = SqliteStore(f"{folder}/fresh.db", create=True, patience=self._patience)
            with closing(fresh):
                yield fresh

    # Questions

    def keyword(
        self, text: str, scope: Scope, limit: int, where: Filter = EVERYTHING
    ) -> tuple[list[tuple[int, float]], bool]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.sqlite import keyword_search

        def search() -> tuple[list[tuple[int, float]], bool]:
            matching = self._matching(scope, where)
            model_id = self._model_id()
            return keyword_search.search(self._connection, text, scope, limit, model_id, matching)

        return self._seen(search)

    def _gather(self, asked: "Asked") -> "Candidates":
        from reservoir_cli.storage.sqlite import candidates

        kept = self._kept_between() if self._warm else None
        return candidates.candidates(self._connection, asked, kept)
