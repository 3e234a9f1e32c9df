"""Store and read embeddings, those of the active model and those of a next one being built."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from reservoir_cli.messages import Key, Scope, StoredMessage, plain_text
from reservoir_cli.storage import links, model_switch, properties, reads, writes
from reservoir_cli.storage.compact_keys import Keys, by_partition
from reservoir_cli.storage.links import LinkThreshold
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.transactions import Transactions

_Passages = Mapping[Key, Sequence[Passage]]

_EVERYWHERE = Scope(None)


class Embeddings(Transactions):
    """The methods that read and write embeddings, and switch between models."""

    def activate_model(self, model_id: str, name: str) -> None:
        """Make a model the active one, whose vectors are compared."""

        def write() -> None:
            properties.put(self._connection, properties.MODEL_ID, model_id)
            properties.put(self._connection, properties.MODEL_NAME, name)

        self._run_write(write)

    def active_model(self) -> tuple[str, str] | None:
        """Return (identity, name) of the active model, if there is one yet."""
        return self._model(properties.MODEL_ID, properties.MODEL_NAME)

    def _model_id(self) -> str | None:
        """Return the identity of the active model."""
        active = self.active_model()
        return active[0] if active else None

    def next_model(self) -> tuple[str, str] | None:
        """Return (identity, name) of the model that is being built beside the active one."""
        return self._model(properties.NEXT_ID, properties.NEXT_NAME)

    def _model(self, identity: str, name: str) -> tuple[str, str] | None:
        return self._run_read(lambda: model_switch.read_model(self._connection, identity, name))

    def dimensions(self) -> int | None:
        """Return the dimensions of the active model's vectors; ``None`` if it has none yet."""

        def read() -> int | None:
            rows = self._connection.with_vectors(
                "SELECT vector FROM embeddings WHERE model_id = ? LIMIT 1", [self._model_id()]
            )
            return next((len(vector) for (vector,) in rows), None)

        return self._run_read(read)

    def begin_model(self, model_id: str, name: str) -> str:
        """Begin or resume building a model's vectors.

        :returns: the identity to store them under.
        """
        return self._run_write(lambda: model_switch.begin(self._connection, model_id, name))

    def give_up_model(self) -> None:
        """Delete the next model and its vectors."""
        self._run_write(lambda: model_switch.give_up(self._connection))

    def switch_model(self, kept_as: str) -> None:
        """Make this the active model if it is still the next one; messages it lacks are pending."""
        self._run_write(lambda: model_switch.switch(self._connection, kept_as))

    def clear_former_model(self) -> bool:
        """Delete a batch of the former model's vectors.

        :returns: whether there are more.
        """
        if self.get_property(properties.FORMER_ID) is None:
            return False
        return self._run_write(lambda: model_switch.clear_former(self._connection))

    def unembedded(
        self,
        limit: int,
        scope: Scope = _EVERYWHERE,
        *,
        model: str | None = None,
        newest: bool = False,
    ) -> list[StoredMessage]:
        """Return messages without vectors in the order they were added, reversed if ``newest``.

        :param model: the identity of the model; ``None`` for the active one.
        """
        return self._run_read(
            lambda: reads.unembedded(
                self._connection, self._waiting_table(model), scope, limit, newest=newest
            )
        )

    def unembedded_keys(self, scope: Scope = _EVERYWHERE) -> Keys:
        """Return the keys of messages without vectors, newest first."""
        return self._run_read(
            lambda: reads.unembedded_keys(self._connection, self._waiting_table(None), scope)
        )

    def count_unembedded(self, scope: Scope = _EVERYWHERE, *, model: str | None = None) -> int:
        """Count the messages that have no vectors yet.

        :param model: the identity of the model; ``None`` for the active one.
        """
        return self._run_read(
            lambda: reads.count_unembedded(self._connection, self._waiting_table(model), scope)
        )

    def _waiting_table(self, model: str | None) -> str:
        if model is None:
            return "pending"
        return model_switch.waiting_table(self._connection, model)

    def add_passages(
        self,
        model_id: str,
        passages: Mapping[Key, Sequence[Passage]],
        link_threshold: LinkThreshold,
        wait: float | None = None,
        *,
        embedded: Iterable[StoredMessage] = (),
    ) -> None:
        """Store the vectors of messages, remove them from the pending ones, and link them.

        :param passages: the passages of each message; empty for a message without text.
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
        link_threshold: LinkThreshold,
        texts: Mapping[Key, str],
    ) -> None:
        ids_of = by_partition(passages)
        self._connection.lock(ids_of)
        table = model_switch.waiting_table(self._connection, model_id)
        for partition, ids in ids_of.items():
            # Meanwhile another process may have deleted, embedded or changed a message.
            due = writes.find_waiting(self._connection, table, partition, ids)
            if texts:
                due = reads.unchanged(self._connection, partition, due, texts)
            writes.delete_rows(self._connection, table, partition, due)
            embedded = {message_id: passages[Key(partition, message_id)] for message_id in due}
            self._add_vectors(partition, model_id, embedded)
            links.add(self._connection, partition, due, model_id, link_threshold)

    def passages(self, keys: Sequence[Key]) -> dict[Key, list[Passage]]:
        """Return the passages of those messages that the active model has embedded."""

        def read() -> dict[Key, list[Passage]]:
            model_id = self._model_id()
            if model_id is None:
                return {}
            passages: dict[Key, list[Passage]] = {}
            for key, passage in reads.passages(self._connection, model_id, keys):
                passages.setdefault(key, []).append(passage)
            return passages

        return self._run_read(read)

    @abstractmethod
    def _add_vectors(
        self, partition: str, model_id: str, passages: Mapping[int, Sequence[Passage]]
    ) -> None:
        """Write passages of one partition.

        :param passages: by the id of their message.
        """
