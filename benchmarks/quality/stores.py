"""Fill stores with a benchmark's messages, and open them as they are when a question is asked."""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from protocols import ask_before, grow
from sets import Collection, Question, time_of
from vectors import CachedEmbedder

from reservoir_cli import Message, Reservoir
from reservoir_cli.settings.schema import SETTINGS
from reservoir_cli.storage.schema import VERSION

#: The conversation of the talk before a question.
TALK = "talk"

Item = TypeVar("Item")


@contextmanager
def open_reservoir(
    path: Path, embedder: CachedEmbedder, settings: Mapping[str, Any]
) -> Iterator[Reservoir]:
    """Open a store with the benchmark's embedder, ignoring unknown settings."""
    known = {key: value for key, value in settings.items() if key in SETTINGS}
    options = {"embedding_model": embedder.name, **known}
    with Reservoir.open(path, settings=options, embedder=embedder) as reservoir:
        yield reservoir


def fill_store(collection: Collection, embedder: CachedEmbedder, cache: Path) -> Path:
    """Store a collection's messages, unless an earlier run did; return the store's path."""
    digest = hashlib.sha256(f"{VERSION} {embedder.model_id}".encode())
    digest.update(repr((collection.name, collection.messages)).encode())
    for file in collection.files:
        digest.update(file.read_bytes())
    path = cache / f"store-{digest.hexdigest()[:16]}.db"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            fresh = Path(folder) / "store.db"
            with open_reservoir(fresh, embedder, {}) as reservoir:
                store(reservoir, collection.name, collection.messages)
                if collection.files:
                    reservoir.import_files(*collection.files)
                    reservoir.embed()
            fresh.replace(path)
    return path


def store(
    reservoir: Reservoir, name: str, messages: Sequence[Message], partition: str | None = None
) -> None:
    """Store messages in the instance of a collection, by default in its own partition."""
    for start in range(0, len(messages), 1_000):
        reservoir.ingest(
            messages[start : start + 1_000], partition=partition or name, instance=name
        )


class Stores:
    """The stores of collections, each opened as it is when a question is asked.

    Only the messages before a question's place in time are stored; then the talk just before it,
    and earlier conversations in which it was asked in vain.

    :param asked_before: how many such conversations there are.
    :param grown: how many times as large a store becomes with conversations of ``others``.
    """

    def __init__(
        self,
        collections: Sequence[Collection],
        embedder: CachedEmbedder,
        cache: Path,
        settings: Mapping[str, Any],
        *,
        asked_before: int = 0,
        grown: int = 1,
        others: Sequence[Collection] = (),
    ) -> None:
        self._cache, self._embedder, self._settings = cache, embedder, settings
        self._asked_before, self._grown, self._others = asked_before, grown, others
        self._collections = {collection.name: collection for collection in collections}
        self._around: dict[str, list[Message]] = {}
        self._growing: tuple[str, Path, int] | None = None
        self._opened: tuple[Any, Reservoir] | None = None
        self._exit, self._folder = ExitStack(), ExitStack()

    def __enter__(self) -> "Stores":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._exit.close()
        self._folder.close()

    def collection(self, question: Question) -> Collection:
        """Return the collection of a question."""
        name = question.partition
        return self._collections.get(name) or next(iter(self._collections.values()))

    def around(self, collection: Collection) -> list[Message]:
        """Return the conversations of other sets that a collection's store has grown by."""
        if collection.name not in self._around:
            messages, wanted = grow(collection, self._others, self._grown)
            if len(messages) < 0.95 * wanted:
                print(
                    f"{collection.name}: {len(messages):,} of {wanted:,} other messages",
                    file=sys.stderr,
                )
            self._around[collection.name] = messages
        return self._around[collection.name]

    def extra(self, question: Question) -> tuple[list[Message], datetime | None]:
        """Return the messages that are stored for one question only, and the time of asking."""
        collection = self.collection(question)
        stored = collection.messages[: question.stored]
        newest = max(map(time_of, stored), default=None)
        extra: list[Message] = []
        if self._asked_before and newest is not None:
            extra = ask_before(question, self._asked_before, newest)
        if not question.talk or newest is None:
            return extra, question.asked_at
        times = [newest + timedelta(days=1, minutes=minute) for minute in range(len(question.talk))]
        extra += [
            Message(
                role,
                text,
                created_at=created_at,
                conversation_id=TALK,
                trace_id=f"talk {number // 2}",
            )
            for number, ((role, text), created_at) in enumerate(
                zip(question.talk, times, strict=True)
            )
        ]
        return extra, times[-1] + timedelta(minutes=1)

    @contextmanager
    def at(
        self, question: Question, settings: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[Reservoir, datetime | None]]:
        """Open the store of a question, and return it with the time of asking."""
        settings = {**self._settings, **(settings or {})}
        collection, (extra, now) = self.collection(question), self.extra(question)
        path = self._path(collection, question.stored, settings)
        if not extra:
            yield self._open(path, settings), now
            return
        self._exit.close()
        self._opened = None
        with tempfile.TemporaryDirectory(dir=self._cache) as folder:
            copy = Path(shutil.copy(path, Path(folder) / "store.db"))
            with open_reservoir(copy, self._embedder, settings) as reservoir:
                reservoir.ingest(extra, partition=question.partition, instance=question.instance)
                yield reservoir, now

    def running_conversation(self, question: Question) -> str | None:
        """Return the conversation of the session in which a question is asked."""
        if question.talk:
            return TALK
        if question.asked_at is None or not question.stored:
            return None
        last = self.collection(question).messages[question.stored - 1]
        is_running = question.asked_at - time_of(last) <= timedelta(hours=4)
        return last.conversation_id if is_running else None

    def _path(
        self, collection: Collection, stored: int | None, settings: Mapping[str, Any]
    ) -> Path:
        around = tuple(self.around(collection)) if self._grown > 1 else ()
        if stored is None:
            whole = replace(collection, messages=(*collection.messages, *around))
            return fill_store(whole, self._embedder, self._cache)
        if not self._growing or self._growing[0] != collection.name or self._growing[2] > stored:
            self._exit.close()
            self._opened = None
            self._folder.close()
            folder = self._folder.enter_context(tempfile.TemporaryDirectory(dir=self._cache))
            base = fill_store(replace(collection, messages=around), self._embedder, self._cache)
            path = Path(shutil.copy(base, Path(folder) / "store.db"))
            self._growing = (collection.name, path, 0)
        name, path, count = self._growing
        store(self._open(path, settings), name, collection.messages[count:stored])
        self._growing = (name, path, stored)
        return path

    def _open(self, path: Path, settings: Mapping[str, Any]) -> Reservoir:
        """Return an open store; the last one stays open."""
        key = path, sorted(settings.items())
        if self._opened is None or self._opened[0] != key:
            self._exit.close()
            reservoir = self._exit.enter_context(open_reservoir(path, self._embedder, settings))
            self._opened = key, reservoir
        return self._opened[1]


def progress(items: Sequence[Item], label: str) -> Iterator[Item]:
    """Yield items, and show a progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(items, label, console=console, disable=not sys.stderr.isatty())


def by_session(messages: Sequence[Message]) -> list[list[Message]]:
    """Group messages by conversation, in order."""
    return [list(group) for _, group in groupby(messages, lambda message: message.conversation_id)]
