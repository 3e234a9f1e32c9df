"""The store on a server: each verb, inside a transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reservoir_cli.errors import ReservoirError, StoreError
from reservoir_cli.messages import (
    Conversation,
    Key,
    Message,
    Scope,
    StoredMessage,
    check_name,
    clean_name,
    to_epoch_ms,
)
from reservoir_cli.storage.base import LinkThreshold
from reservoir_cli.storage.keys import Keys, by_partition
from reservoir_cli.storage.postgres import locks, model_switch, properties, reads
from reservoir_cli.storage.postgres.connection import errors
from reservoir_cli.storage.postgres.ids import IdSource
from reservoir_cli.storage.postgres.schema import SCHEMA
from reservoir_cli.storage.postgres.session import Session
from reservoir_cli.storage.postgres.stemmer import Stemmer
from reservoir_cli.storage.records import (
    ConversationSummary,
    Fault,
    Filter,
    IdField,
    Passage,
    PlaceSummary,
    Progress,
    ThreadName,
)
from reservoir_cli.storage.sqlite.reads import CONVERSATION_COLUMNS

if TYPE_CHECKING:
    from array import array

    import numpy as np
    from numpy.typing import NDArray

    from reservoir_cli.storage.records import Candidates, Talk
    from reservoir_cli.storage.replicate import Link, Portion, Remainder
    from reservoir_cli.tokens import TokenCounter

_EVERYTHING = Filter()


class PostgresStore(Session):
    """A :class:`~reservoir_cli.storage.base.Store` on a PostgreSQL server with pgvector."""

    @cached_property
    def _stemmer(self) -> Stemmer:
        return Stemmer()

    @cached_property
    def _ids(self) -> IdSource:
        return IdSource()

    def close(self) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        if "_stemmer" in self.__dict__:  # it was needed
            self._stemmer.close()
        super().close()

    def files(self) -> list[Path]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return []

    def size(self) -> int | None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(
            lambda: reads.number(
                self._connection,
                """
                SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
                JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = %s AND c.relkind = 'r'
                """,
                [SCHEMA],
            )
        )

    def engine(self) -> str:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        version = f"{self.server.version // 10_000}.{self.server.version % 10_000}"
        return f"PostgreSQL {version}, pgvector {self.server.vector}, schema {self.server.schema}"

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
        from reservoir_cli.storage.postgres.writes import add

        return self._written(
            lambda: add(
                self._connection,
                self._stemmer,
                self._ids,
                scope,
                messages,
                counter,
                to_epoch_ms(now),
                pair=pair,
            )
        )

    def add_conversations(self, scope: Scope, conversations: Sequence[Conversation]) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        rows = [(clean_name(each.id), *astuple(each)[1:]) for each in conversations]

        def put() -> None:
            locks.partitions(self._connection, [str(scope.partition)])
            self._connection.cursor().executemany(
                f"""
                INSERT INTO conversations AS c (partition, instance, {CONVERSATION_COLUMNS})
                VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
                ON CONFLICT (partition, instance, id) DO UPDATE SET
                title = coalesce(excluded.title, c.title),
                source = coalesce(excluded.source, c.source),
                model = coalesce(excluded.model, c.model),
                project = coalesce(excluded.project, c.project),
                branch = coalesce(excluded.branch, c.branch)
                """.encode(),
                [(scope.partition, scope.instance, *row) for row in rows],
            )

        if rows:
            self._written(put)

    def add_passages(
        self,
        model_id: str,
        passages: Mapping[Key, Sequence[Passage]],
        synapse_threshold: LinkThreshold,
    ) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres import links as synapses
        from reservoir_cli.storage.postgres import vectors

        def put() -> None:
            by_place = by_partition(passages)
            locks.partitions(self._connection, by_place)
            lacking = self._lacking(model_id)
            for partition, ids in by_place.items():
                # A message may have been forgotten, or embedded by another process, since it
                # was read.
                rows = reads.rows(
                    self._connection,
                    f"""
                    DELETE FROM {lacking} WHERE partition = %s AND message_id = ANY(%s)
                    RETURNING message_id
                    """,
                    [partition, ids],
                )
                due = sorted(row[0] for row in rows)
                fresh = {number: passages[Key(partition, number)] for number in due}
                vectors.add(self._connection, partition, model_id, fresh)
                synapses.tie(self._connection, partition, due, model_id, synapse_threshold)

        self._written(put)

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

    def renew_counts(self, counts: Mapping[Key, int], counter: str) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""

        def put() -> None:
            for partition, ids in by_partition(counts).items():
                locks.partitions(self._connection, [partition])
                self._connection.execute(
                    """
                    UPDATE messages m SET tokens = t.tokens, counter = %s
                    FROM unnest(%s::bigint[], %s::int[]) AS t (id, tokens)
                    WHERE m.partition = %s AND m.id = t.id
                    """,
                    [counter, ids, [counts[Key(partition, each)] for each in ids], partition],
                )

        self._written(put)

    def mark_secrets(self, found: Mapping[Key, Sequence[str]]) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        marks = {each: " ".join(sorted(set(kinds))) or None for each, kinds in found.items()}

        def put() -> None:
            for partition, ids in by_partition(marks).items():
                locks.partitions(self._connection, [partition])
                self._connection.execute(
                    """
                    UPDATE messages m SET secrets = t.secrets
                    FROM unnest(%s::bigint[], %s::text[]) AS t (id, secrets)
                    WHERE m.partition = %s AND m.id = t.id
                    """,
                    [ids, [marks[Key(partition, each)] for each in ids], partition],
                )

        self._written(put)

    def add_run(self, run: Mapping[str, Any]) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        names = ", ".join(["id", *run])
        marks = ", ".join(["%s"] * (1 + len(run)))

        def put() -> None:
            locks.partitions(self._connection, [run["partition"]])
            number = next(self._ids.take(self._connection, run["partition"], "context_runs"))
            self._connection.execute(
                f"INSERT INTO context_runs ({names}) VALUES ({marks})".encode(),
                [number, *run.values()],
            )

        self._written(put)

    def activate_model(self, model_id: str, name: str) -> None:
        """See :class:`.Store`; for a member only where there is none yet."""
        write = properties.put if self.server.whole else properties.put_first

        def put() -> None:
            write(self._connection, properties.MODEL_ID, model_id)
            write(self._connection, properties.MODEL_NAME, name)

        self._written(put)

    # Checking and mending

    def faults(self) -> list[Fault]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres import repair

        found = []
        with self.snapshot():
            active = self.active_model()
            for count, what in (
                (repair.wrong_full_text(self._connection), "the full text"),
                (
                    repair.wrong_for_ranking(self._connection, active[0]) if active else 0,
                    "what ranking reads",
                ),
            ):
                if count:
                    noun = "message" if count == 1 else "messages"
                    found.append(Fault(f"{what} is wrong about {count:,} {noun}", repairable=True))
        return found

    def repair(self, synapse_threshold: LinkThreshold) -> list[int]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres import repair

        def mend() -> None:
            active = self.active_model()
            model_id = active[0] if active else None
            repair.rebuild(self._connection, self._stemmer, model_id, synapse_threshold)

        self._written(mend)
        return []  # a server refuses bytes that are no text

    # Questions

    def keyword(
        self,
        text: str,
        scope: Scope,
        limit: int,
        where: Filter = _EVERYTHING,
    ) -> tuple[list[tuple[int, float]], bool]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres.keyword_search import search

        with self.snapshot():
            keys = None if where == _EVERYTHING else self.find(scope, where)
            return search(self._connection, self._stemmer, text, scope, limit, keys)

    def candidates(
        self,
        scope: Scope,
        own: str | None,
        question: str,
        vector: "NDArray[np.float32] | None",
        where: Filter = _EVERYTHING,
        talk: "Talk | None" = None,
    ) -> "Candidates":
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres.candidates import candidates

        with self.snapshot():
            active = self.active_model()
            model_id = active[0] if active else None
            found = candidates(
                self._connection, self._stemmer, scope, own, question, model_id, vector, talk
            )
            return found if where == _EVERYTHING else found.mark(self.find(scope, where))

    def tied(self, ids: Iterable[int], depth: int, scope: Scope) -> list[int]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres.links import tied

        return self._seen(lambda: tied(self._connection, ids, depth, scope))

    # Reading

    def active_model(self) -> tuple[str, str] | None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._model(properties.MODEL_ID, properties.MODEL_NAME)

    def next_model(self) -> tuple[str, str] | None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._model(properties.NEXT_ID, properties.NEXT_NAME)

    def _model(self, identity: str, name: str) -> tuple[str, str] | None:
        rows = self._seen(
            lambda: reads.rows(
                self._connection,
                "SELECT key, value FROM properties WHERE key = ANY(%s)",
                [[identity, name]],
            )
        )
        found = dict(rows)
        return (found[identity], found[name]) if len(found) == 2 else None

    def pending(self, limit: int, scope: Scope, *, newest: bool = False) -> list[StoredMessage]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(
            lambda: reads.awaiting(self._connection, "pending", scope, limit, newest=newest)
        )

    def pending_count(self, scope: Scope) -> int:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.awaiting_count(self._connection, "pending", scope))

    def last(self, scope: Scope, count: int, where: Filter = _EVERYTHING) -> list[StoredMessage]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.last(self._connection, scope, count, where))

    def by_id(self, ids: Sequence[int], scope: Scope) -> list[StoredMessage]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.by_id(self._connection, ids, scope))

    def by_key(self, keys: Sequence[Key]) -> list[StoredMessage]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.by_key(self._connection, keys))

    def with_partners(self, ids: Sequence[int], scope: Scope) -> list[StoredMessage]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.with_partners(self._connection, ids, scope))

    def runs(self, since: datetime | None) -> list[dict[str, Any]]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.runs(self._connection, to_epoch_ms(since) if since else 0))

    def holdings(self) -> dict[str, int]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.holdings(self._connection))

    def newest_instance(self, partition: str) -> str | None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.newest_instance(self._connection, partition))

    def places(self) -> list[tuple[str, str, int]]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.places(self._connection))

    def find(self, scope: Scope, where: Filter = _EVERYTHING) -> Keys:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.find(self._connection, scope, where))

    def starting_with(self, field: IdField, prefix: str, scope: Scope) -> list[str]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.starting_with(self._connection, field, prefix, scope))

    def threads(self, scope: Scope, where: Filter = _EVERYTHING) -> "dict[ThreadName, array[int]]":
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.threads(self._connection, scope, where))

    def conversation(self, partition: str, instance: str, number: str) -> Conversation | None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.conversation(self._connection, partition, instance, number))

    def titles(self, partition: str, numbers: Sequence[str]) -> dict[tuple[str, str | None], str]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.titles(self._connection, partition, numbers))

    def conversations(self, scope: Scope) -> list[ConversationSummary]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.conversations(self._connection, scope))

    def place_summaries(self, scope: Scope) -> list[PlaceSummary]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.place_summaries(self._connection, scope))

    def passages(self, keys: Sequence[Key]) -> dict[Key, list[Passage]]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres.vectors import passages

        with self.snapshot():
            active = self.active_model()
            return passages(self._connection, active[0], keys) if active else {}

    def dimensions(self) -> int | None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            active = self.active_model()
            rows = reads.rows(
                self._connection,
                "SELECT vector_dims(vector) FROM embeddings WHERE model_id = %s LIMIT 1",
                [active[0] if active else None],
            )
        return rows[0][0] if rows else None

    # Forgetting, moving, copying

    def forget(self, keys: Sequence[Key], progress: Progress = lambda *_: None) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres.delete import remove

        self._written(
            lambda: remove(self._connection, by_partition(keys), mark=True, progress=progress)
        )

    def finish_forgetting(self) -> bool:
        """Let the server reuse the room of what was deleted.

        When it does so, and when its logs and backups let go of it, is the server's business.
        """
        with self._lock, errors(self.location):
            for table in ("messages", "words", "embeddings"):
                # A user who does not own the table gets a warning, and the server does it later.
                self._connection.execute(f"VACUUM (SKIP_LOCKED) {SCHEMA}.{table}".encode())
        return True

    def forgotten(self, messages: Sequence[Message]) -> list[bool]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres import tombstones
        from reservoir_cli.storage.sqlite.writes import source_of

        sources = [source_of(each) for each in messages]
        gone = self._seen(lambda: tombstones.forgotten(self._connection, sources))
        return [each in gone for each in sources]

    def move_partition(self, old: str, new: str) -> tuple[int, int]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres.move_partition import move

        return self._written(lambda: move(self._connection, self._ids, old, check_name(new)))

    def copy_to(self, target: Path, progress: Progress = lambda *_: None) -> None:
        """Refuse: a file cannot be a copy of a server.

        :raises ReservoirError: always.
        """
        raise ReservoirError(
            "a store on a server is not copied to a file",
            hint="pg_dump DATABASE makes a backup; reservoir db copy makes a store of it",
        )

    def portion(self, after: Key | None, count: int) -> "Portion":
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres import replicate

        return self._seen(lambda: replicate.portion(self._connection, after, count))

    def put_portion(self, given: "Portion") -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres import replicate

        self._written(lambda: replicate.put_portion(self._connection, self._stemmer, given))

    def twins(self) -> list[Key]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.twins(self._connection))

    def links(self, keys: Sequence[Key]) -> "list[Link]":
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres import replicate

        return self._seen(lambda: replicate.links(self._connection, keys))

    def put_links(self, given: "Sequence[Link]") -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres import replicate

        self._written(lambda: replicate.put_links(self._connection, given))

    def remainder(self) -> "Remainder":
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres import replicate

        return self._seen(lambda: replicate.remainder(self._connection))

    def put_remainder(self, given: "Remainder") -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        from reservoir_cli.storage.postgres import replicate

        self._written(lambda: replicate.put_remainder(self._connection, self._ids, given))

    def noted(self, key: str) -> str | None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: properties.get(self._connection, key))

    def note(self, key: str, value: str | None) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        if value is None:
            self._written(lambda: properties.drop(self._connection, key))
        else:
            self._written(lambda: properties.put(self._connection, key, value))

    # Changing the model

    def _require_whole(self) -> None:
        """Leave what everyone shares to who sees everything.

        :raises StoreError: this user is a member, who does not.
        """
        if not self.server.whole:
            raise StoreError(
                f"the model of the store {self.location} is not for a member to change",
                hint="its owner does, by reservoir embed --model NAME or --rebuild",
            )

    def begin_model(self, model_id: str, name: str) -> str:
        """See :class:`~reservoir_cli.storage.base.Store`.

        :raises StoreError: this user is a member, who does not see every message.
        """
        self._require_whole()
        return self._written(lambda: model_switch.begin(self._connection, model_id, name))

    def give_up_model(self) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`.

        :raises StoreError: this user is a member, who does not see every message.
        """
        if self.next_model() is not None:
            self._require_whole()
            self._written(lambda: model_switch.give_up(self._connection))

    def lacking(self, limit: int) -> list[StoredMessage]:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(
            lambda: reads.awaiting(self._connection, "rebuilding", Scope(None), limit)
        )

    def lacking_count(self) -> int:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        return self._seen(lambda: reads.awaiting_count(self._connection, "rebuilding", Scope(None)))

    def switch_model(self, kept_as: str) -> None:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        self._written(lambda: model_switch.switch(self._connection, kept_as))

    def clear_former_model(self) -> bool:
        """See :class:`~reservoir_cli.storage.base.Store`."""
        with self.snapshot():
            former = properties.get(self._connection, properties.FORMER_ID)
        if former is None or not self.server.whole:  # a member leaves it to the owner
            return False
        return self._written(lambda: model_switch.clear_away(self._connection))
