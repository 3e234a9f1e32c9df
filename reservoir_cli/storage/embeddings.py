"""Store and read embeddings, and build those of a next model beside the active one's.

Readers keep using the active model until the next one's vectors are complete. The table
``rebuilding`` lists the messages that the next model has not embedded yet, as ``pending`` does for
the active one; new messages are in both.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import EVERYWHERE, Channel, Key, Scope, StoredMessage, plain_text
from reservoir_cli.storage import properties
from reservoir_cli.storage.keys import Keys, by_partition
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.portable_sql import of_message, where_scope
from reservoir_cli.storage.search import links
from reservoir_cli.storage.tables import reads, writes
from reservoir_cli.storage.transactions import Transactions, reading, writing

_Passages = Mapping[Key, Sequence[Passage]]

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

    @abstractmethod
    def dimensions(self) -> int | None:
        """Return the dimensions of the active model's vectors; ``None`` if it has none yet."""

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
        condition = f"NOT ({connection.null_safe('model_id')})"
        connection.execute(f"DELETE FROM {connection.vectors} WHERE {condition}", [active])
        properties.drop(connection, properties.FORMER_ID)
        properties.put(connection, properties.NEXT_ID, kept_as)
        properties.put(connection, properties.NEXT_NAME, name)
        connection.execute(
            "INSERT INTO rebuilding (partition, message_id) SELECT partition, id FROM messages"
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
        """Make this the active model if it is still the next one; messages it lacks are pending."""
        connection = self._connection
        connection.lock(None)
        name = properties.get(connection, properties.NEXT_NAME)
        if name is None or properties.get(connection, properties.NEXT_ID) != kept_as:
            return
        former = properties.get(connection, properties.MODEL_ID)
        connection.execute("DELETE FROM pending")
        connection.execute(
            "INSERT INTO pending (partition, message_id) "
            "SELECT partition, message_id FROM rebuilding"
        )
        connection.execute("DELETE FROM rebuilding")
        properties.drop(connection, properties.NEXT_ID, properties.NEXT_NAME)
        if kept_as == f"{former}{_AGAIN}":
            # The same model: its new vectors replace the old ones.
            self._delete_vectors(str(former))
            connection.execute(
                f"UPDATE {connection.vectors} SET model_id = ? WHERE model_id = ?",
                [former, kept_as],
            )
        elif former is not None:
            properties.put(connection, properties.FORMER_ID, former)
        properties.put(connection, properties.MODEL_ID, kept_as.removesuffix(_AGAIN))
        properties.put(connection, properties.MODEL_NAME, name)

    def _delete_vectors(self, model_id: str) -> None:
        self._connection.execute(
            f"DELETE FROM {self._connection.vectors} WHERE model_id = ?", [model_id]
        )

    def clear_former_model(self) -> bool:
        """Delete a batch of the former model's vectors; return whether there are more."""
        if self.get_property(properties.FORMER_ID) is None:
            return False
        return self._clear_batch()

    @writing
    def _clear_batch(self) -> bool:
        connection = self._connection
        former = properties.get(connection, properties.FORMER_ID)
        if former is None:  # another process has just deleted the last ones
            return False
        table, key, at_once = connection.vectors, connection.vectors_key, connection.vectors_at_once
        deleted = connection.execute(
            f"""
            DELETE FROM {table} WHERE model_id = ?
            AND ({key}) IN (SELECT {key} FROM {table} WHERE model_id = ? LIMIT ?)
            """,
            [former, former, at_once],
        ).rowcount
        if deleted < at_once:
            properties.drop(connection, properties.FORMER_ID)
        return deleted >= at_once

    @reading
    def unembedded(
        self,
        limit: int,
        scope: Scope = EVERYWHERE,
        *,
        model: str | None = None,
        newest: bool = False,
    ) -> list[StoredMessage]:
        """Return messages without vectors in the order they were added, reversed if ``newest``.

        They are not sorted by time: sorting a million pending messages for each batch takes hours.
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
    def unembedded_keys(self, scope: Scope = EVERYWHERE) -> Keys:
        """Return the keys of messages without vectors, newest first."""
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
    def count_unembedded(self, scope: Scope = EVERYWHERE, *, model: str | None = None) -> int:
        """Count the messages that have no vectors yet."""
        condition, values = where_scope(scope)
        table = self._waiting_messages(model) if values else f"{self._waiting_table(model)} p"
        row = self._connection.execute(f"SELECT COUNT(*) FROM {table} WHERE {condition}", values)
        return int(row.fetchone()[0])

    def _waiting_messages(self, model: str | None) -> str:
        join = self._connection.ordered_join
        return f"{self._waiting_table(model)} p {join} messages m ON {of_message('p')}"

    def _waiting_table(self, model: str | None) -> str:
        """Return the table of messages that a model has not embedded yet."""
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
        wait: float | None = None,
        *,
        embedded: Iterable[StoredMessage] = (),
    ) -> None:
        """Store the vectors of messages, and remove these from the pending ones.

        :param passages: the passages of each message; empty for a message without text.
        :param embedded: the messages as they were read to embed them; those whose text has changed
            since then stay pending.
        """
        texts = {message.key: plain_text(message) for message in embedded}
        for batch in self._in_transactions(passages):
            write = partial(self._put_passages, model_id, batch, texts)
            self._run_write(write, wait)

    def _in_transactions(self, passages: _Passages) -> Iterable[_Passages]:
        return [passages]

    def _put_passages(self, model_id: str, passages: _Passages, texts: Mapping[Key, str]) -> None:
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

    @reading
    def passages(self, keys: Sequence[Key]) -> dict[Key, list[Passage]]:
        """Return the passages of those messages that the active model has embedded."""
        model_id = self._model_id()
        if model_id is None:
            return {}
        return {
            Key(partition, message_id): of_message
            for partition, ids in by_partition(keys).items()
            for message_id, of_message in self._read_passages(partition, model_id, ids).items()
        }

    @reading
    def linked(self, ids: Iterable[int], depth: int, scope: Scope, min_cosine: float) -> list[int]:
        """Return the messages of a scope at most ``depth`` links from these."""
        model_id = self._model_id()
        if model_id is None:
            return []

        def read(channel: Channel, ids: Sequence[int]) -> links.Vectors | None:
            return self._read_vectors(channel, model_id, ids)

        return links.find_linked(self._connection, read, ids, depth, scope, min_cosine)

    @abstractmethod
    def _read_passages(
        self, partition: str, model_id: str, ids: Sequence[int]
    ) -> dict[int, list[Passage]]:
        """Return the passages of those messages that a model has embedded, by id."""

    @abstractmethod
    def _read_vectors(
        self, channel: Channel, model_id: str, ids: Sequence[int]
    ) -> links.Vectors | None:
        """Return the vectors of messages of a channel, in order of id; ``None`` without any."""

    @abstractmethod
    def _add_vectors(
        self, partition: str, model_id: str, passages: Mapping[int, Sequence[Passage]]
    ) -> None:
        """Write passages of one partition."""
