"""The store on a PostgreSQL server."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from reservoir_cli.errors import ReservoirError, StoreError
from reservoir_cli.messages import (
    EVERYTHING,
    Channel,
    Filter,
    Key,
    Scope,
    StoredMessage,
    check_name,
)
from reservoir_cli.storage import properties
from reservoir_cli.storage.keys import by_partition, thread_key
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.postgres import (
    keyword_search,
    move_partition,
    read_candidates,
    repair,
    vectors,
)
from reservoir_cli.storage.postgres.server_errors import errors
from reservoir_cli.storage.postgres.tables import SCHEMA
from reservoir_cli.storage.postgres.transactions import Transactions
from reservoir_cli.storage.search.candidates import Query, Uncompared
from reservoir_cli.storage.search.links import Vectors
from reservoir_cli.storage.store import Problem, Repaired, Store, derived_problems
from reservoir_cli.storage.tables import rows_of_tags_and_pins
from reservoir_cli.storage.tables.writes import COLUMNS
from reservoir_cli.storage.transactions import reading, writing
from reservoir_cli.util.progress import Progress, no_progress

#: The tables that hold words of messages, or what was made from them.
_WITH_TEXT = ("messages", "words", "embeddings")
#: Vacuum the shards of a partition on the machines of a cluster.
_VACUUM_SHARDS = f"""
    SELECT count(*) FROM (
        SELECT array_agg(p.nodename::text) AS names, array_agg(p.nodeport::int) AS ports,
        array_agg(format('VACUUM (SKIP_LOCKED) {SCHEMA}.%%I', t || '_' || p.shardid)) AS statements
        FROM unnest(?::text[]) t JOIN pg_dist_shard_placement p
        ON p.shardid = get_shard_id_for_distribution_column('{SCHEMA}.' || t, ?::text)
    ) s, master_run_on_worker(s.names, s.ports, s.statements, false)
"""
_THREAD = [COLUMNS.split(", ").index(name) for name in ("partition", "instance", "conversation_id")]


class PostgresStore(Transactions, Store):
    """A :class:`~reservoir_cli.storage.store.Store` on a PostgreSQL server with pgvector."""

    def files(self) -> list[Path]:
        return []

    @reading
    def size(self) -> int | None:
        return self._connection.number(
            """
            SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
            JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = ? AND c.relkind = 'r'
            """,
            [SCHEMA],
        )

    def engine(self) -> str:
        return self.server.describe()

    def _insert_messages(self, rows: Sequence[tuple[Any, ...]]) -> None:
        with_threads = [(*row, thread_key(*(row[at] for at in _THREAD))) for row in rows]
        self._connection.insert("messages", f"{COLUMNS}, thread", with_threads)

    def _index(self, channel: Channel, messages: Sequence[StoredMessage]) -> None:
        keyword_search.index(self._connection, channel, messages)

    def add_passages(
        self,
        model_id: str,
        passages: Mapping[Key, Sequence[Passage]],
        wait: float | None = None,
        *,
        embedded: Iterable[StoredMessage] = (),
    ) -> None:
        if not self.server.whole and self.dimensions() is None:
            # In a transaction of its own, so that the check of a member's vectors sees it.
            first = [passage for of_message in passages.values() for passage in of_message]
            self._run_write(partial(vectors.put_dimensions, self._connection, first), wait)
        super().add_passages(model_id, passages, wait, embedded=embedded)

    def _in_transactions(
        self, passages: Mapping[Key, Sequence[Passage]]
    ) -> list[dict[Key, Sequence[Passage]]]:
        """Split passages by partition, except inside another transaction.

        A transaction with the locks of many partitions would block all their writers.
        """
        if self._depth:
            return [dict(passages)]
        return [
            {Key(partition, message_id): passages[Key(partition, message_id)] for message_id in ids}
            for partition, ids in by_partition(passages).items()
        ]

    def _add_vectors(
        self, partition: str, model_id: str, passages: Mapping[int, Sequence[Passage]]
    ) -> None:
        vectors.add(self._connection, partition, model_id, passages)

    def _read_passages(
        self, partition: str, model_id: str, ids: Sequence[int]
    ) -> dict[int, list[Passage]]:
        return vectors.read_passages(self._connection, partition, model_id, ids)

    def _read_vectors(self, channel: Channel, model_id: str, ids: Sequence[int]) -> Vectors | None:
        return vectors.read(self._connection, channel[0], model_id, ids)

    @reading
    def dimensions(self) -> int | None:
        return vectors.dimensions(self._connection)

    @property
    def lists_channels(self) -> bool:  # type: ignore[override]
        """Whether a list of all channels is read from one machine."""
        return not self.server.is_cluster

    def _purge(self, partitions: Iterable[str] = ()) -> bool:
        """Let the server reuse the space of deleted rows.

        The server decides when it does so, and how long its logs and backups keep the rows. For a
        user who does not own the tables, autovacuum does it later.
        """
        if not self.server.whole:
            return True
        if self.server.is_cluster:
            with self._lock, errors(self.location):
                for partition in partitions:
                    self._connection.execute(_VACUUM_SHARDS, [list(_WITH_TEXT), partition])
            return True
        for table in _WITH_TEXT:
            self.execute_alone(f"VACUUM (SKIP_LOCKED) {SCHEMA}.{table}")
        return True

    def require_removable_tombstones(self) -> None:
        granted = f"SELECT has_table_privilege('{SCHEMA}.tombstones', 'DELETE')::int"
        if not self._run_read(lambda: self._connection.number(granted)):
            raise StoreError(
                f"only the owner can import forgotten messages into the store {self.location}",
                hint=f"the owner imports them, or runs GRANT DELETE ON {SCHEMA}.tombstones TO USER",
            )

    @writing
    def move_partition(self, old: str, new: str) -> tuple[int, int]:
        self.lift_timeouts()
        return self._move(old, check_name(new))

    def _move_messages(self, old: Channel, new: Channel) -> int:
        return move_partition.move(self._connection, old, new)

    def _move_runs(self, old: str, new: str) -> None:
        move_partition.move_runs(self._connection, old, new)

    def copy_to(self, target: Path, progress: Progress = no_progress) -> None:
        raise ReservoirError(
            "a backup is a copy of a file, and this store is on a server",
            hint="back it up with pg_dump DATABASE, or copy it to a file with reservoir db copy",
        )

    def _messages_after(self, after: Key | None, count: int) -> list[Any]:
        partition, message_id = after or (None, 0)
        rows = self._rows_after(partition, message_id, count) if partition is not None else []
        while not rows:
            partition = self._next_partition(partition)
            if partition is None:
                return []
            rows = self._rows_after(partition, 0, count)
        return rows

    def _rows_after(self, partition: str, message_id: int, count: int) -> list[Any]:
        return self._connection.rows(
            f"SELECT {COLUMNS} FROM messages WHERE partition = ? AND id > ? ORDER BY id LIMIT ?",
            [partition, message_id, count],
        )

    def _next_partition(self, partition: str | None) -> str | None:
        condition = "" if partition is None else "WHERE partition > ?"
        rows = self._connection.rows(
            f"SELECT partition FROM messages {condition} ORDER BY partition LIMIT 1",
            [] if partition is None else [partition],
        )
        return str(rows[0][0]) if rows else None

    def problems(self) -> list[Problem]:
        with self.snapshot():
            self.lift_timeouts()
            model_id = self._model_id()
            unindexed = repair.count_unindexed(self._connection)
            unranked = repair.count_lacking(self._connection, model_id) if model_id else 0
            return list(derived_problems(self._connection, unindexed, unranked))

    @writing
    def repair(self) -> Repaired:
        self.lift_timeouts()
        rows_of_tags_and_pins.remove_orphans(self._connection)
        repair.rebuild(self._connection, self._model_id())
        return Repaired()  # a server refuses invalid bytes

    @reading
    def keyword(
        self, text: str, scope: Scope, limit: int, where: Filter = EVERYTHING
    ) -> tuple[list[tuple[int, float]], bool]:
        matching = self._matching(scope, where)
        return keyword_search.search(self._connection, text, scope, limit, matching)

    def _gather(self, query: Query) -> Uncompared:
        return read_candidates.gather(self._connection, query)

    def _require_whole(self) -> None:
        """Keep a member, who does not see every message, from changing the shared model."""
        if not self.server.whole:
            raise StoreError(
                f"only the owner can change the model of the store {self.location}",
                hint="the owner runs reservoir embed --model NAME or --rebuild",
            )

    @writing
    def activate_model(self, model_id: str, name: str) -> None:
        """Make a model the active one; a member can only set the first model."""
        put = properties.put if self.server.whole else properties.put_first
        put(self._connection, properties.MODEL_ID, model_id)
        put(self._connection, properties.MODEL_NAME, name)

    def begin_model(self, model_id: str, name: str) -> str:
        self._require_whole()
        return self._begin_model(model_id, name)

    @writing
    def _begin_model(self, model_id: str, name: str) -> str:
        self.lift_timeouts()
        kept_as = super().begin_model(model_id, name)
        vectors.add_missing(self._connection, kept_as)
        return kept_as

    def give_up_model(self) -> None:
        if self.next_model() is not None:
            self._require_whole()
            super().give_up_model()

    @writing
    def switch_model(self, kept_as: str) -> None:
        self.lift_timeouts()
        super().switch_model(kept_as)
        vectors.note_dimensions(self._connection)

    def clear_former_model(self) -> bool:
        return self.server.whole and super().clear_former_model()
