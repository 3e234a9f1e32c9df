"""Store and read embeddings, and build those of a next model beside the active one's.

Readers keep using the active model until the next one's vectors are complete. The table
``rebuilding`` lists the messages that the next model has not embedded yet, as ``pending`` does for
the active one; new messages are in both.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Key, Scope, StoredMessage, plain_text
from reservoir_cli.storage import links, properties, reads, writes
from reservoir_cli.storage.compact_keys import Keys, by_partition
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.scope_conditions import where_scope
from reservoir_cli.storage.transactions import Transactions, reading, writing

_Passages = Mapping[Key, Sequence[Passage]]

_EVERYWHERE = Scope(None)
#: How many messages of a former model lose their vectors in one transaction.
_AT_ONCE = 2_000
#: The suffix of the active model's identity for a second set of its vectors being built.
_AGAIN = "+"


class Embeddings(Transactions):
    """The methods that read and write embeddings, and switch between models."""

    @writing
    def activate_model(self, model_id: str, name: str) -> None:
        """Make a model the active one, whose vectors are compared."""
        properties.put(self._connection, properties.MODEL_ID, model_id)
        properties.put(self._connection, properties.MODEL_NAME, name)

    def active_model(self) -> tuple[str, str] | None:
        """Return (identity, name) of the active model, if there is one yet."""
        return self._model(properties.MODEL_ID, properties.MODEL_NAME)

    def _model_id(self) -> str | None:
        active = self.active_model()
        return active[0] if active else None

    def next_model(self) -> tuple[str, str] | None:
        """Return (identity, name) of the model that is being built beside the active one."""
        return self._model(properties.NEXT_ID, properties.NEXT_NAME)

    @reading
    def _model(self, identity: str, name: str) -> tuple[str, str] | None:
        rows = self._connection.execute(
            "SELECT key, value FROM properties WHERE key IN (?, ?)", [identity, name]
        )
        values = dict(rows.fetchall())
        return (values[identity], values[name]) if len(values) == 2 else None

    @reading
    def dimensions(self) -> int | None:
        """Return the dimensions of the active model's vectors; ``None`` if it has none yet."""
        rows = self._connection.with_vectors(
            "SELECT vector FROM embeddings WHERE model_id = ? LIMIT 1", [self._model_id()]
        )
        return next((len(vector) for (vector,) in rows), None)

    @writing
    def begin_model(self, model_id: str, name: str) -> str:
        """Begin or resume building a model's vectors; those of another unfinished one are deleted.

        :returns: the identity to store them under until the model is active.
        """
        connection = self._connection
        connection.lock(None)
        active = properties.get(connection, properties.MODEL_ID)
        kept_as = model_id + _AGAIN if model_id == active else model_id
        if properties.get(connection, properties.NEXT_ID) == kept_as:
            return kept_as
        connection.execute("DELETE FROM rebuilding")
        for table in connection.vector_tables:
            condition = f"NOT ({connection.null_safe('model_id')})"
            connection.execute(f"DELETE FROM {table} WHERE {condition}", [active])
        properties.drop(connection, properties.FORMER_ID)
        properties.put(connection, properties.NEXT_ID, kept_as)
        properties.put(connection, properties.NEXT_NAME, name)
        connection.execute(
            f"""
            INSERT INTO rebuilding ({connection.message_key})
            SELECT {connection.key_of_message} FROM messages m
            """
        )
        return kept_as

    @writing
    def give_up_model(self) -> None:
        """Delete the next model and its vectors."""
        self._connection.lock(None)
        model_id = properties.get(self._connection, properties.NEXT_ID)
        if model_id is not None:
            self._connection.execute("DELETE FROM rebuilding")
            properties.drop(self._connection, properties.NEXT_ID, properties.NEXT_NAME)
            self._delete_vectors(model_id)

    @writing
    def switch_model(self, kept_as: str) -> None:
        """Make this the active model if it is still the next one; messages it lacks are pending.

        :meth:`clear_former_model` deletes the old vectors later.
        """
        connection = self._connection
        connection.lock(None)
        name = properties.get(connection, properties.NEXT_NAME)
        if name is None or properties.get(connection, properties.NEXT_ID) != kept_as:
            return
        former = properties.get(connection, properties.MODEL_ID)
        connection.execute("DELETE FROM pending")
        connection.execute("INSERT INTO pending SELECT * FROM rebuilding")
        connection.execute("DELETE FROM rebuilding")
        properties.drop(connection, properties.NEXT_ID, properties.NEXT_NAME)
        if kept_as == f"{former}{_AGAIN}":
            # The same model: its new vectors replace the old ones.
            self._delete_vectors(str(former))
            for table in connection.vector_tables:
                connection.execute(
                    f"UPDATE {table} SET model_id = ? WHERE model_id = ?", [former, kept_as]
                )
        elif former is not None:
            properties.put(connection, properties.FORMER_ID, former)
        properties.put(connection, properties.MODEL_ID, kept_as.removesuffix(_AGAIN))
        properties.put(connection, properties.MODEL_NAME, name)

    def _delete_vectors(self, model_id: str) -> None:
        for table in self._connection.vector_tables:
            self._connection.execute(f"DELETE FROM {table} WHERE model_id = ?", [model_id])

    def clear_former_model(self) -> bool:
        """Delete a batch of the former model's vectors.

        :returns: whether there are more.
        """
        if self.get_property(properties.FORMER_ID) is None:
            return False
        return self._clear_batch()

    @writing
    def _clear_batch(self) -> bool:
        connection = self._connection
        former = properties.get(connection, properties.FORMER_ID)
        if former is None:  # another process has just deleted the last ones
            return False
        embeddings, *derived = connection.vector_tables
        for table in derived:
            connection.execute(f"DELETE FROM {table} WHERE model_id = ?", [former])
        key = connection.message_key
        deleted = connection.execute(
            f"""
            DELETE FROM {embeddings} WHERE model_id = ?
            AND ({key}) IN (SELECT {key} FROM {embeddings} WHERE model_id = ? LIMIT ?)
            """,
            [former, former, _AT_ONCE],
        ).rowcount
        if deleted < _AT_ONCE:
            properties.drop(connection, properties.FORMER_ID)
        return deleted >= _AT_ONCE

    @reading
    def unembedded(
        self,
        limit: int,
        scope: Scope = _EVERYWHERE,
        *,
        model: str | None = None,
        newest: bool = False,
    ) -> list[StoredMessage]:
        """Return messages without vectors in the order they were added, reversed if ``newest``.

        They are not sorted by time: sorting a million pending messages for each batch takes hours.

        :param model: the identity of the model; ``None`` for the active one.
        """
        table, (condition, values) = self._waiting_messages(model), where_scope(scope)
        rows = self._connection.execute(
            f"""
            SELECT {reads.COLUMNS} FROM {table}
            WHERE {condition} ORDER BY p.message_id {"DESC" if newest else "ASC"} LIMIT ?
            """,
            [*values, limit],
        )
        return [reads.to_message(row) for row in rows]

    @reading
    def unembedded_keys(self, scope: Scope = _EVERYWHERE) -> Keys:
        """Return the keys of messages without vectors, newest first.

        They are sorted once for a whole run; see :meth:`unembedded`.
        """
        table, (condition, values) = self._waiting_messages(None), where_scope(scope)
        rows = self._connection.execute(
            f"""
            SELECT m.partition, m.id FROM {table}
            WHERE {condition} ORDER BY m.created_at DESC, m.id DESC
            """,
            values,
        )
        return Keys(rows)

    @reading
    def count_unembedded(self, scope: Scope = _EVERYWHERE, *, model: str | None = None) -> int:
        """Count the messages that have no vectors yet.

        :param model: the identity of the model; ``None`` for the active one.
        """
        condition, values = where_scope(scope)
        table = self._waiting_messages(model) if values else f"{self._waiting_table(model)} p"
        row = self._connection.execute(f"SELECT COUNT(*) FROM {table} WHERE {condition}", values)
        return int(row.fetchone()[0])

    def _waiting_messages(self, model: str | None) -> str:
        """Return the join of the messages ``m`` that a model has not embedded yet."""
        join, joined = self._connection.ordered_join, self._connection.of_message("p")
        return f"{self._waiting_table(model)} p {join} messages m ON {joined}"

    def _waiting_table(self, model: str | None) -> str:
        """Return the table of messages that a model has not embedded yet.

        :raises ReservoirError: the model is neither the active nor the next one any more.
        """
        if model is None:
            return "pending"
        if model == properties.get(self._connection, properties.NEXT_ID):
            return "rebuilding"
        if properties.get(self._connection, properties.MODEL_ID) in (None, model):
            return "pending"
        raise ReservoirError(
            "the model of this store was changed meanwhile", hint="run the command again"
        )

    def add_passages(
        self,
        model_id: str,
        passages: Mapping[Key, Sequence[Passage]],
        link_threshold: Callable[[str], float],
        wait: float | None = None,
        *,
        embedded: Iterable[StoredMessage] = (),
    ) -> None:
        """Store the vectors of messages, remove them from the pending ones, and link them.

        :param passages: the passages of each message; empty for a message without text.
        :param link_threshold: returns the least similarity of linked messages of a partition.
        :param wait: as for :meth:`write`.
        :param embedded: the messages as they were read to embed them; those whose text has changed
            since then stay pending.
        """
        texts = {message.key: plain_text(message) for message in embedded}
        for batch in self._in_transactions(passages):
            write = partial(self._put_passages, model_id, batch, link_threshold, texts)
            self._run_write(write, wait)

    def _in_transactions(self, passages: _Passages) -> Iterable[_Passages]:
        """Split passages into those of each transaction; by default all go in one."""
        return [passages]

    def _put_passages(
        self,
        model_id: str,
        passages: _Passages,
        link_threshold: Callable[[str], float],
        texts: Mapping[Key, str],
    ) -> None:
        ids_of = by_partition(passages)
        self._connection.lock(ids_of)
        table = self._waiting_table(model_id)
        for partition, ids in ids_of.items():
            # Meanwhile another process may have deleted, embedded or changed a message.
            due = writes.find_waiting(self._connection, table, partition, ids)
            if texts:
                due = reads.unchanged(self._connection, partition, due, texts)
            writes.delete_rows(self._connection, table, partition, due)
            embedded = {message_id: passages[Key(partition, message_id)] for message_id in due}
            self._add_vectors(partition, model_id, embedded)
            links.add(self._connection, partition, due, model_id, link_threshold)

    @reading
    def passages(self, keys: Sequence[Key]) -> dict[Key, list[Passage]]:
        """Return the passages of those messages that the active model has embedded."""
        model_id = self._model_id()
        if model_id is None:
            return {}
        passages: dict[Key, list[Passage]] = {}
        for partition, ids in by_partition(keys).items():
            in_partition, values = self._connection.in_partition("e", partition)
            listed, bound = self._connection.in_list("e.message_id", ids)
            for message_id, *passage in self._connection.with_vectors(
                f"""
                SELECT e.message_id, e.passage, e.start, e."end", e.vector FROM embeddings e
                WHERE {in_partition} AND {listed} AND e.model_id = ? ORDER BY 1, 2
                """,
                [*values, *bound, model_id],
            ):
                key = Key(partition, message_id)
                passages.setdefault(key, []).append(Passage(message_id, *passage))
        return passages

    @abstractmethod
    def _add_vectors(
        self, partition: str, model_id: str, passages: Mapping[int, Sequence[Passage]]
    ) -> None:
        """Write passages of one partition.

        :param passages: by the id of their message.
        """
