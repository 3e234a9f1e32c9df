"""The store's base class: everything that SQLite and PostgreSQL do alike.

Messages and their full-text rows are written in one transaction; vectors follow in a second one,
so that a message is safe before it is embedded.
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reservoir_cli.messages import (
    Conversation,
    Key,
    Message,
    Scope,
    StoredMessage,
    ThreadName,
    to_epoch_ms,
)
from reservoir_cli.storage import (
    context_runs,
    conversations,
    holdings,
    links,
    proxy_ledger,
    reads,
    tag_and_pin_rows,
    tombstones,
    writes,
)
from reservoir_cli.storage.compact_keys import Keys, by_partition
from reservoir_cli.storage.conversations import ConversationSummary
from reservoir_cli.storage.embeddings import Embeddings
from reservoir_cli.storage.filter_conditions import Filter, IdField
from reservoir_cli.storage.holdings import NamedField, PlaceSummary
from reservoir_cli.storage.portable_sql import Connection
from reservoir_cli.storage.transactions import reading, writing
from reservoir_cli.util.progress import Progress, counted, no_progress

if TYPE_CHECKING:
    from array import array

    import numpy as np
    from numpy.typing import NDArray

    from reservoir_cli.storage.candidates import Candidates, Query, QuestionVector, Talk
    from reservoir_cli.tokens import TokenCounter

EVERYTHING = Filter()


class Problem(NamedTuple):
    """A fault of a store.

    :param detail: a description, without any text of a message.
    :param repairable: whether ``repair`` fixes it; otherwise a backup is needed.
    """

    detail: str
    repairable: bool


class Repaired(NamedTuple):
    """What a repair could not restore.

    :param texts: ids of messages whose texts had invalid bytes, now replaced by U+FFFD.
    :param summaries: the conversations whose summaries could not be read, and are deleted;
        ``None`` if it is unknown which.
    """

    texts: Sequence[int] = ()
    summaries: Sequence[ThreadName] | None = ()


def derived_problems(connection: Connection, unindexed: int, unranked: int) -> Iterator[Problem]:
    """Yield the problems of derived data.

    :param unindexed: how many messages are wrong in the full-text index.
    :param unranked: how many are wrong in the ranking data.
    """
    for data, count in (("full-text index", unindexed), ("ranking data", unranked)):
        if count:
            yield Problem(f"the {data} is wrong for {counted(count, 'message')}", repairable=True)
    if count := tag_and_pin_rows.count_orphans(connection):
        yield Problem(f"{count:,} tags and pins belong to no message", repairable=True)


class Writes(Embeddings):
    """The methods that write messages."""

    @writing
    def add(
        self,
        scope: Scope,
        messages: Sequence[Message],
        *,
        counter: "TokenCounter",
        now: datetime,
        pair: bool = False,
    ) -> list[StoredMessage | None]:
        """Store messages in a partition and instance in one durable transaction.

        :param now: the time of messages without one; a reply is placed after its question.
        :param pair: whether an assistant message without a trace id answers the newest open
            question.
        :returns: one entry per message; ``None`` if its source id was already stored.
        """
        self._connection.lock([str(scope.partition)])
        ids = self._connection.new_ids(str(scope.partition))
        added: list[StoredMessage | None] = []
        # One by one: a reply may answer a question of the same call.
        for batch in [[message] for message in messages] if pair else [messages]:
            added += self._put(scope, batch, counter, to_epoch_ms(now), ids, pair=pair)
        return added

    def _put(
        self,
        scope: Scope,
        messages: Sequence[Message],
        counter: "TokenCounter",
        now: int,
        ids: Iterator[int],
        *,
        pair: bool = False,
    ) -> list[StoredMessage | None]:
        """Write messages under new ids and everything derived from them except embeddings."""
        from reservoir_cli.storage.prepare_rows import prepare  # it loads the counters

        place = str(scope.partition), str(scope.instance)
        prepared = prepare(self._connection, scope, messages, counter, now, ids, pair=pair)
        self._insert_messages(prepared.rows)
        new = [stored for stored in prepared.added if stored]
        self._index(place, new)
        writes.add_waiting(self._connection, place[0], [message.id for message in new])
        return [
            tag_and_pin_rows.add(self._connection, stored, message)
            for stored, message in zip(prepared.added, messages, strict=True)
        ]

    def add_conversations(self, scope: Scope, added: Sequence[Conversation]) -> None:
        """Store titles and models of conversations; update those already stored."""
        self._run_write(lambda: conversations.add(self._connection, scope, added))

    @writing
    def update_counts(self, counts: Mapping[Key, int], counter: str) -> None:
        """Replace stored token counts with those of another counter."""
        self._connection.lock(by_partition(counts))
        self._connection.executemany(
            "UPDATE messages SET tokens = ?, counter = ? WHERE partition = ? AND id = ?",
            [(tokens, counter, *key) for key, tokens in counts.items()],
        )

    @writing
    def mark_secrets(self, secrets: Mapping[Key, Sequence[str]]) -> None:
        """Replace the stored kinds of secrets that messages contain."""
        ids_by_partition = by_partition(secrets)
        self._connection.lock(ids_by_partition)
        self._connection.executemany(
            "UPDATE messages SET secrets = ? WHERE partition = ? AND id = ?",
            [(writes.join_kinds(kinds), *key) for key, kinds in secrets.items()],
        )
        for partition, ids in ids_by_partition.items():
            proxy_ledger.forget(self._connection, partition, ids)  # they may quote one

    def add_run(self, run: Mapping[str, Any]) -> None:
        """Record a built context: numbers and names, never text."""
        self._run_write(lambda: context_runs.add(self._connection, run))

    def delete(self, keys: Sequence[Key], progress: Progress = no_progress) -> bool:
        """Delete messages and everything derived from them; imports skip them from now on.

        :returns: whether no word of them is left in any file of the store; a concurrent reader
            may prevent that.
        """

        def write() -> None:
            self._remove(by_partition(keys), mark=True, progress=progress)
            self._seal(progress)

        self._run_write(write)
        progress("rewriting the store", 0, 0)
        return self._purge()

    def remove_tombstones(self, messages: Sequence[Message]) -> None:
        """Remove the tombstones of messages that are stored again."""
        self._run_write(lambda: tombstones.remove(self._connection, messages))

    def require_removable_tombstones(self) -> None:
        """Check that this user may remove tombstones.

        :raises StoreError: only the owner may.
        """

    @writing
    def replace(
        self, messages: Mapping[Key, Message], *, counter: "TokenCounter", now: datetime
    ) -> None:
        """Rewrite messages and everything derived from them; their ids stay."""
        for key, message in messages.items():
            for old in reads.by_id(self._connection, [key.id], Scope(key.partition)):
                self._replace(old, message, counter, to_epoch_ms(now))

    def _replace(
        self, old: StoredMessage, message: Message, counter: "TokenCounter", now: int
    ) -> None:
        scope = Scope(old.partition, old.instance)
        thread = old.partition, old.instance, old.conversation_id
        known = list(conversations.read_known(self._connection, [thread]).values())
        self._connection.lock([old.partition])
        self._remove({old.partition: [old.id]}, mark=False)
        conversations.add(self._connection, scope, known)
        marked = replace(message, tags=old.tags, pinned_at=old.pinned_at)
        self._put(scope, [marked], counter, now, iter([old.id]))

    def edit(self, key: Key, message: Message, *, counter: "TokenCounter", now: datetime) -> bool:
        """Rewrite a message as :meth:`replace` does, and remove every word of the old text.

        :returns: as :meth:`delete`.
        """

        def write() -> None:
            for old in reads.by_key(self._connection, [key]):
                self._replace(old, message, counter, to_epoch_ms(now))
                tombstones.mark_edited(self._connection, old)
            self._seal()

        self._run_write(write)
        return self._purge()

    def _seal(self, progress: Progress = no_progress) -> None:
        """Record in the current transaction that removed words are still in the files."""

    @abstractmethod
    def _remove(
        self, ids: Mapping[str, Sequence[int]], *, mark: bool, progress: Progress = no_progress
    ) -> None:
        """Delete messages and everything derived from them.

        :param ids: by partition.
        :param mark: whether to write tombstones, so that they are not imported again.
        """

    @abstractmethod
    def _purge(self) -> bool:
        """Remove every word of deleted messages from the store's files; return whether it did."""

    @abstractmethod
    def move_partition(self, old: str, new: str) -> tuple[int, int]:
        """Move all messages of a partition into another.

        :returns: how many were moved, and how many were dropped as duplicates.
        """

    @abstractmethod
    def copy_to(self, target: Path, progress: Progress = no_progress) -> None:
        """Copy a snapshot of the store into an empty file.

        :raises ReservoirError: the store is on a server.
        """

    @abstractmethod
    def _insert_messages(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows with the columns of :data:`~reservoir_cli.storage.writes.COLUMNS`."""

    @abstractmethod
    def _index(self, place: tuple[str, str], messages: Sequence[StoredMessage]) -> None:
        """Add messages of a partition and instance to the full-text index."""

    @abstractmethod
    def _messages_after(self, after: Key | None, count: int) -> list[Any]:
        """Return the rows of the messages after a key, in the store's own order."""


class Store(Writes):
    """A store of messages. All methods raise ``StoreError`` when the database fails."""

    @abstractmethod
    def files(self) -> list[Path]:
        """Return the paths of the store's files, existing or not; none on a server."""

    @abstractmethod
    def size(self) -> int | None:
        """Return the store's size in bytes; ``None`` if it does not exist yet."""

    @abstractmethod
    def engine(self) -> str:
        """Return the name and version of the database, and the number of the schema."""

    @abstractmethod
    def problems(self) -> list[Problem]:
        """Return the faults of the database itself and of the data derived from messages."""

    @abstractmethod
    def repair(self, link_threshold: Callable[[str], float]) -> Repaired:
        """Rebuild all derived data: the full-text index, ranking data and links."""

    @abstractmethod
    def keyword(
        self, text: str, scope: Scope, limit: int, where: Filter = EVERYTHING
    ) -> tuple[list[tuple[int, float]], bool]:
        """Return the ids and BM25 scores of messages that contain the words, best first.

        Scores are computed over the whole scope, whatever the filter.

        :returns: the hits, and whether they contain all the words (else any of them).
        """

    @reading
    def candidates(
        self,
        scope: Scope,
        own: str | None,
        question: str,
        vector: "NDArray[np.float32] | QuestionVector | None",
        where: Filter = EVERYTHING,
        talk: "Talk | None" = None,
    ) -> "Candidates":
        """Return every message of a scope with its ranking data, in order of time.

        Messages that do not match the filter are marked, so that scores stay those of the scope.

        :param own: the instance that history comes from; its documents are not marked as own.
        :param vector: the question's embedding by the active model.
        :param talk: the preceding turns, compared in the same scan.
        """
        from reservoir_cli.storage.candidates import Query, QuestionVector

        if vector is not None and not isinstance(vector, QuestionVector):
            computed = vector
            vector = QuestionVector(len(computed), lambda: computed)
        query = Query(scope, own, question, self._model_id(), vector, talk)
        return self._gather(query).mark(self._matching(scope, where))

    @abstractmethod
    def _gather(self, query: "Query") -> "Candidates":
        """Return every message of a scope with its ranking data, in order of time."""

    def _matching(self, scope: Scope, where: Filter) -> Keys | None:
        """Return the messages that match a filter; ``None`` if it is empty."""
        return None if where == EVERYTHING else self.find(scope, where)

    def linked(self, ids: Iterable[int], depth: int, scope: Scope) -> list[int]:
        """Return the messages at most ``depth`` links away, without the given ones."""
        return self._run_read(lambda: links.find_linked(self._connection, ids, depth, scope))

    def last(self, scope: Scope, count: int, where: Filter = EVERYTHING) -> list[StoredMessage]:
        """Return the newest messages, oldest first; all of them when ``count`` is 0."""
        return self._run_read(lambda: reads.last(self._connection, scope, count, where))

    def by_id(self, ids: Sequence[int], scope: Scope) -> list[StoredMessage]:
        """Return these messages, if they are in the scope, oldest first."""
        return self._run_read(lambda: reads.by_id(self._connection, ids, scope))

    def by_key(self, keys: Sequence[Key]) -> list[StoredMessage]:
        """Return these messages, if they still exist, oldest first."""
        return self._run_read(lambda: reads.by_key(self._connection, keys))

    def with_partners(self, ids: Sequence[int], scope: Scope) -> list[StoredMessage]:
        """Return these messages and their partners: trace, tool calls and results."""
        return self._run_read(lambda: reads.with_partners(self._connection, ids, scope))

    def find(self, scope: Scope, where: Filter = EVERYTHING) -> Keys:
        """Return the keys of messages, in order of time."""
        return self._run_read(lambda: reads.find(self._connection, scope, where))

    def starting_with(self, field: IdField, prefix: str, scope: Scope) -> list[str]:
        """Return up to ten ids of a scope that start with a prefix."""
        return self._run_read(lambda: reads.starting_with(self._connection, field, prefix, scope))

    @reading
    def ids(self, field: IdField, scope: Scope) -> list[str]:
        """Return all trace or conversation ids of a scope."""
        return reads.starting_with(self._connection, field, "", scope, reads.ALL_IDS)

    def threads(self, scope: Scope, where: Filter = EVERYTHING) -> "dict[ThreadName, array[int]]":
        """Return the ids of messages by their thread, threads and messages in order of time."""
        return self._run_read(lambda: reads.threads(self._connection, scope, where))

    def edited(self, messages: Sequence[StoredMessage]) -> list[StoredMessage]:
        """Return the messages among these that a person edited."""
        return self._run_read(lambda: tombstones.find_edited(self._connection, messages))

    def forgotten(self, messages: Sequence[Message]) -> list[bool]:
        """Return for each message whether one with its source and source id was deleted."""
        sources = [writes.source_of(message) for message in messages]
        forgotten = self._run_read(lambda: tombstones.find_forgotten(self._connection, sources))
        return [source in forgotten for source in sources]

    def stored(self, scope: Scope, messages: Sequence[Message]) -> list[bool]:
        """Return for each message whether a partition and instance has its source and source id."""
        sources = [writes.source_of(message) for message in messages]
        stored = self._run_read(lambda: writes.find_present(self._connection, scope, sources))
        return [source in stored for source in sources]

    def forgotten_sessions(self, conversations: Iterable[str | None]) -> set[str]:
        """Return the sessions of those conversations that had messages deleted."""
        return self._run_read(lambda: tombstones.find_sessions(self._connection, conversations))

    def forgotten_contents(self, messages: Sequence[Message]) -> list[bool]:
        """Return for each message whether its content was later deleted from its conversation.

        Deleted messages of any source count. A message without a time precedes all deletions.
        """
        return self._run_read(lambda: tombstones.check_contents(self._connection, messages))

    def replaced_contents(self, messages: Sequence[Message]) -> list[bool]:
        """Return for each message whether its content was forgotten, a part of it by an edit."""
        return self._run_read(lambda: tombstones.check_replaced(self._connection, messages))

    def runs(self, since: datetime | None, partition: str | None = None) -> list[dict[str, Any]]:
        """Return the records of built contexts, oldest first."""
        moment = to_epoch_ms(since) if since else 0
        return self._run_read(lambda: context_runs.read(self._connection, moment, partition))

    def holdings(self, partition: str | None = None) -> dict[str, int]:
        """Count messages, conversations, embedded and pending messages, links and tokens."""
        if partition is None:
            return self._run_read(lambda: holdings.count(self._connection))
        return self._run_read(lambda: holdings.count_in(self._connection, partition))

    def newest_instance(self, partition: str) -> str | None:
        """Return the instance of a partition with the newest message, documents excepted."""
        return self._run_read(lambda: holdings.newest_instance(self._connection, partition))

    def places(self) -> list[tuple[str, str, int]]:
        """Return (partition, instance, number of messages), the largest first."""
        return self._run_read(lambda: holdings.places(self._connection))

    def names(self, field: NamedField, scope: Scope) -> list[str]:
        """Return the sources, projects or tags of a scope, in order."""
        return self._run_read(lambda: holdings.names(self._connection, field, scope))

    def place_summaries(self, scope: Scope) -> list[PlaceSummary]:
        """Return the instances of each partition, in order of their names."""
        return self._run_read(lambda: holdings.place_summaries(self._connection, scope))

    def conversations(self, scope: Scope, only: str | None = None) -> list[ConversationSummary]:
        """Return the conversations of a scope, in order of their first messages.

        :param only: the id of the only conversations to return.
        """
        return self._run_read(lambda: conversations.summaries(self._connection, scope, only))

    def known_conversations(self, names: Collection[ThreadName]) -> dict[ThreadName, Conversation]:
        """Return the stored titles and models of conversations."""
        return self._run_read(lambda: conversations.read_known(self._connection, names))
