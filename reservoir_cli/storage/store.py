"""The store's base class: everything that SQLite and PostgreSQL do alike.

Vectors follow messages in a second transaction: a message is safe before it is embedded.
"""

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reservoir_cli.messages import (
    EVERYTHING,
    Channel,
    ConversationName,
    Filter,
    Key,
    Message,
    Scope,
    StoredMessage,
    to_epoch_ms,
)
from reservoir_cli.storage.embeddings import Embeddings
from reservoir_cli.storage.keys import Keys, by_partition
from reservoir_cli.storage.portable_sql import Connection, batches, copy_rows, where_scope
from reservoir_cli.storage.tables import (
    context_runs,
    conversations,
    delete,
    find_by_filter,
    holdings,
    list_conversations,
    merge_twins,
    proxy_ledger,
    reads,
    sources,
    summaries,
    tombstones,
    writes,
)
from reservoir_cli.storage.tables import (
    rows_of_tags_and_pins as rows_of_tags_and_pins,
)
from reservoir_cli.storage.transactions import reading, reads_with, writes_with, writing
from reservoir_cli.util.progress import Progress, counted, no_progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reservoir_cli.storage.search.candidates import (
        Candidates,
        Query,
        QuestionVector,
        Talk,
        Uncompared,
    )
    from reservoir_cli.tokens import TokenCounter


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
    summaries: Sequence[ConversationName] | None = ()


def derived_problems(connection: Connection, unindexed: int, unranked: int) -> Iterator[Problem]:
    """Yield the problems of derived data."""
    for data, count in (("full-text index", unindexed), ("ranking data", unranked)):
        if count:
            yield Problem(f"the {data} is wrong for {counted(count, 'message')}", repairable=True)
    if count := rows_of_tags_and_pins.count_orphans(connection):
        yield Problem(f"{count:,} tags and pins belong to no message", repairable=True)


class Store(Embeddings):
    """A store of messages. All methods raise ``StoreError`` when the database fails."""

    #: Whether a list of all channels is read from one machine, and so at little cost.
    lists_channels = True

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
        from reservoir_cli.storage.prepare_rows import prepare  # it loads the counters

        channel = str(scope.partition), str(scope.instance)
        prepared = prepare(self._connection, scope, messages, counter, now, ids, pair=pair)
        new = [stored for stored in prepared.added if stored]
        waiting = writes.read_waiting_tables(self._connection)
        with self._connection.together():
            self._insert_messages(prepared.rows)
            self._index(channel, new)
            writes.add_waiting(self._connection, waiting, channel[0], [row.id for row in new])
        return [
            rows_of_tags_and_pins.add(self._connection, stored, message)
            for stored, message in zip(prepared.added, messages, strict=True)
        ]

    add_conversations = writes_with(conversations.add)
    add_run = writes_with(context_runs.add)
    remove_tombstones = writes_with(tombstones.remove)

    @writing
    def update_counts(self, counts: Mapping[Key, int], counter: str) -> None:
        """Replace stored token counts with those of another counter."""
        self._connection.lock(by_partition(counts))
        self._connection.executemany(
            "UPDATE messages SET tokens = ?, counter = ? WHERE partition = ? AND id = ?",
            [(tokens, counter, *key) for key, tokens in counts.items()],
        )
        self._renew_ranking_data(by_partition(counts))

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

    def delete(self, keys: Sequence[Key], progress: Progress = no_progress) -> bool:
        """Delete messages and all that is derived from them; imports skip them from now on.

        :returns: whether no word of them is left in any file; a concurrent reader may prevent that.
        """

        def write() -> None:
            self._remove(by_partition(keys), mark=True, progress=progress)
            self._seal(progress)

        self._run_write(write)
        progress("rewriting the store", 0, 0)
        return self._purge(by_partition(keys))

    def require_removable_tombstones(self) -> None:
        """Check that this user may remove tombstones."""

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
        self._connection.lock([old.partition])
        self._take_out([old], scope)
        marked = replace(message, tags=old.tags, pinned_at=old.pinned_at)
        self._put(scope, [marked], counter, now, iter([old.id]))

    def edit(self, key: Key, message: Message, *, counter: "TokenCounter", now: datetime) -> bool:
        """Rewrite a message and erase the old text; return as :meth:`delete`."""

        def write() -> None:
            for old in reads.by_key(self._connection, [key]):
                self._replace(old, message, counter, to_epoch_ms(now))
                tombstones.mark_edited(self._connection, old)
                writes.set_edited(self._connection, key, round(time.time() * 1000))
            self._seal()

        self._run_write(write)
        return self._purge([key.partition])

    def _replace_text(self, message: StoredMessage, edited: StoredMessage, moment: int) -> None:
        from reservoir_cli.tokens.estimates import ApproximateCounter

        new = replace(message.as_new(), content=edited.content, secrets=edited.secrets)
        self._replace(message, new, ApproximateCounter(), 0)  # another counter counts it again
        writes.set_edited(self._connection, message.key, moment)

    def _seal(self, progress: Progress = no_progress) -> None:
        """Record in the current transaction that removed words are still in the files."""

    def _remove(
        self, ids: Mapping[str, Sequence[int]], *, mark: bool, progress: Progress = no_progress
    ) -> None:
        """Delete messages and everything derived from them."""
        delete.remove(self._connection, ids, self._unindex, mark=mark, progress=progress)

    def _take_out(self, messages: Sequence[StoredMessage], target: Scope) -> None:
        """Delete messages that will be stored again, and keep their conversations for a target."""
        names = {(row.partition, row.instance, row.conversation_id) for row in messages}
        about = list(conversations.read_known(self._connection, names).values())
        self._remove(by_partition(row.key for row in messages), mark=False)
        conversations.add(self._connection, target, about)

    def _unindex(self, channel: Channel, messages: Sequence[StoredMessage]) -> None:
        """Remove messages of a partition and instance from the indexes."""

    @abstractmethod
    def _purge(self, partitions: Iterable[str] = ()) -> bool:
        """Remove every word of deleted messages from the store's files; return whether it did."""

    @abstractmethod
    def move_partition(self, old: str, new: str) -> tuple[int, int]:
        """Move all messages of a partition into another.

        :returns: how many were moved, and how many were dropped as duplicates.
        """

    def move(
        self, keys: Sequence[Key], target: Scope, *, counter: "TokenCounter", now: datetime
    ) -> tuple[list[Key], int]:
        """Move messages, which are embedded again, or merge them with their twins in the target.

        :param keys: those of messages outside of the target.
        :returns: the keys of the moved messages, and how many were merged.
        """
        moved: list[Key] = []
        merged = 0

        def write() -> None:
            nonlocal merged
            self._connection.lock(sorted({str(target.partition), *by_partition(keys)}))
            to = str(target.partition), str(target.instance)
            for old, messages in reads.by_channel(reads.by_key(self._connection, keys)).items():
                ids = [message.id for message in messages]
                origins = [(row.conversation_id, row.source, row.source_id) for row in messages]
                tombstones.mark_moved(self._connection, old, origins)
                twins = set(merge_twins.merge(self._connection, old, to, self._replace_text, ids))
                self._remove({old[0]: sorted(twins)} if twins else {}, mark=False)
                merged += len(twins)
                for batch in batches([own for own in ids if own not in twins]):
                    moved.extend(
                        self._move_chosen(Scope(*old), batch, target, counter, to_epoch_ms(now))
                    )
            if merged:  # one of two texts may be gone, which an edit was to erase
                self._seal()

        self._run_write(write)
        if merged:
            self._purge(by_partition(keys))  # if a reader prevents it, a later command does it
        return moved, merged

    def _move_chosen(
        self, old: Scope, ids: Sequence[int], new: Scope, counter: "TokenCounter", now: int
    ) -> list[Key]:
        connection, partition = self._connection, str(new.partition)
        messages = reads.by_id(connection, ids, old)
        edited = reads.edit_times(connection, messages)
        self._take_out(messages, new)
        used = {row.id for row in reads.by_id(connection, ids, Scope(partition))}
        fresh = connection.new_ids(partition)
        own = [next(fresh) if row.id in used else row.id for row in messages]
        self._put(new, [row.as_new() for row in messages], counter, now, iter(own))
        moved = [Key(partition, number) for number in own]
        for row, key in zip(messages, moved, strict=True):
            if row.key in edited:
                writes.set_edited(connection, key, edited[row.key])
        return moved

    def _move(self, old: str, new: str) -> tuple[int, int]:
        connection = self._connection
        connection.lock([old, new])
        instances = connection.execute(
            "SELECT DISTINCT instance FROM messages WHERE partition = ?", [old]
        ).fetchall()
        moved = dropped = 0
        for (instance,) in instances:
            # An instance that is named like the partition is renamed with it.
            channels = (old, instance), (new, new if instance == old else instance)
            origins = connection.execute(
                "SELECT conversation_id, source, source_id FROM messages "
                "WHERE partition = ? AND instance = ?",
                channels[0],
            )
            tombstones.mark_moved(connection, channels[0], origins)
            if duplicates := merge_twins.merge(connection, *channels, self._replace_text):
                self._remove({old: duplicates}, mark=False)
            dropped += len(duplicates)
            moved += self._move_messages(*channels)
            conversations.move(connection, *channels)
            copy_rows(connection, "summaries", summaries.COLUMNS, Scope(*channels[0]), channels[1])
        copy_rows(connection, "sources", sources.COLUMNS, Scope(old), [new])
        for table in ("conversations", "summaries", "sources"):
            connection.delete(table, old)
        proxy_ledger.clear(connection, old)
        self._move_runs(old, new)
        return moved, dropped

    @abstractmethod
    def _move_messages(self, old: tuple[str, str], new: tuple[str, str]) -> int:
        """Move the messages of a partition and instance to another; return how many."""

    @abstractmethod
    def _move_runs(self, old: str, new: str) -> None:
        """Move the records of built contexts of a partition to another."""

    @abstractmethod
    def copy_to(self, target: Path, progress: Progress = no_progress) -> None:
        """Copy a snapshot of the store into an empty file.

        :raises ReservoirError: the store is on a server.
        """

    @abstractmethod
    def _insert_messages(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows with the columns of :data:`~reservoir_cli.storage.tables.writes.COLUMNS`."""

    def _renew_ranking_data(self, ids: Mapping[str, Sequence[int]]) -> None:
        """Copy the changed tokens of messages to where ranking reads them."""

    @abstractmethod
    def _index(self, channel: Channel, messages: Sequence[StoredMessage]) -> None:
        """Add messages of a partition and instance to the full-text index."""

    @abstractmethod
    def _messages_after(self, after: Key | None, count: int) -> list[Any]:
        """Return the rows of the messages after a key, in the store's own order."""

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
    def repair(self) -> Repaired:
        """Rebuild all derived data: the full-text index and ranking data."""

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
        return self.compare(self.gather(scope, own, question, vector, where, talk))

    @reading
    def gather(
        self,
        scope: Scope,
        own: str | None,
        question: str,
        vector: "NDArray[np.float32] | QuestionVector | None",
        where: Filter = EVERYTHING,
        talk: "Talk | None" = None,
    ) -> "Uncompared":
        """Return the same as :meth:`candidates`, but without cosines.

        They are needed last: :meth:`compare` adds them once another thread has embedded the
        question.
        """
        from reservoir_cli.storage.search.candidates import Query, QuestionVector

        if vector is not None and not isinstance(vector, QuestionVector):
            computed = vector
            vector = QuestionVector(len(computed), lambda: computed)
        gathered = self._gather(Query(scope, own, question, self._model_id(), vector, talk))
        matching = self._matching(scope, where)
        return gathered._replace(candidates=gathered.candidates.mark(matching))

    @abstractmethod
    def _gather(self, query: "Query") -> "Uncompared":
        """Return every message of a scope with its ranking data, in order of time."""

    @reading
    def compare(self, gathered: "Uncompared") -> "Candidates":
        """Return candidates of :meth:`gather` with their cosines, read in the same snapshot."""
        return gathered.compared()

    def _matching(self, scope: Scope, where: Filter) -> Keys | None:
        return None if where == EVERYTHING else self.find(scope, where)

    # The functions have the signatures and docstrings. Inside this class, the name `conversations`
    # is the module's until the last line.
    last = reads_with(find_by_filter.last)
    by_id = reads_with(reads.by_id)
    by_key = reads_with(reads.by_key)
    with_partners = reads_with(reads.with_partners)
    find = reads_with(find_by_filter.find)
    ids_by_conversation = reads_with(find_by_filter.ids_by_conversation)
    newest_conversations = reads_with(list_conversations.newest_conversations)
    ids = reads_with(reads.all_ids)
    starting_with = reads_with(reads.starting_with)
    edited = reads_with(reads.find_edited)
    forgotten_sessions = reads_with(tombstones.find_sessions)
    forgotten_contents = reads_with(tombstones.check_contents)
    replaced_contents = reads_with(tombstones.check_replaced)
    has_moved = reads_with(tombstones.has_moved)
    moved_away = reads_with(tombstones.find_moved)
    runs = reads_with(context_runs.read)
    answer_counts = reads_with(context_runs.read_answer_counts)
    channels = reads_with(holdings.channels)
    channels_of = reads_with(holdings.channels_of)
    channel_summaries = reads_with(holdings.channel_summaries)
    stored_by_week = reads_with(holdings.stored_by_week)
    newest_instance = reads_with(holdings.newest_instance)
    names = reads_with(holdings.names)
    known_conversations = reads_with(conversations.read_known)
    titled_conversations = reads_with(conversations.titles_in)
    titles = reads_with(conversations.read_titles)
    conversations = reads_with(conversations.summaries)

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

    @reading
    def holdings(self, partition: str | None = None) -> dict[str, int]:
        """Count messages, conversations, embedded and pending messages, and tokens."""
        counts = holdings.count(self._connection, partition)
        condition, values = where_scope(Scope(partition), "v")
        embedded = self._connection.execute(
            f"SELECT {self._connection.vectors_embedded} FROM {self._connection.vectors} v "
            f"WHERE model_id = ? AND {condition}",
            [self._model_id(), *values],
        ).fetchone()
        names = ("messages", "conversations", "embedded", "pending", "tokens")
        return {name: (counts | {"embedded": int(embedded[0] or 0)})[name] for name in names}
