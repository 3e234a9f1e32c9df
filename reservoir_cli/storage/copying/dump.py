"""Read a whole store in batches, and write the batches to another store."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reservoir_cli.messages import Key
from reservoir_cli.storage import properties
from reservoir_cli.storage.keys import by_partition
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.properties import UNFINISHED_COPY
from reservoir_cli.storage.schema import TABLES
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables import context_runs, reads, rows_of_tags_and_pins
from reservoir_cli.storage.tables.writes import COLUMNS, WAITING, find_waiting
from reservoir_cli.storage.transactions import reading, writing

#: Properties that describe the state of a store instead of its contents.
_NOT_COPIED = (UNFINISHED_COPY, properties.UNFINISHED, properties.INDEX, properties.DIMENSIONS)
#: The tables that are copied whole, and their columns, but for the ids of runs.
_COLUMNS = {
    table: [name for name in TABLES[table].types() if table != "context_runs" or name != "id"]
    for table in ("conversations", "context_runs", "tombstones", "summaries", "sources")
}
_PARTITION = COLUMNS.split(", ").index("partition")


@dataclass(frozen=True, slots=True)
class DumpBatch:
    """Messages with their vectors, tags and pins.

    :param messages: rows with the columns of :data:`reservoir_cli.storage.tables.writes.COLUMNS`.
    :param vectors: passages behind the identity of their model.
    :param waiting: ids without vectors of the active model, and of the one that is being built.
    """

    messages: list[tuple[Any, ...]] = field(default_factory=list)
    vectors: list[tuple[str, Passage]] = field(default_factory=list)
    waiting: tuple[list[int], list[int]] = ([], [])
    tags: list[rows_of_tags_and_pins.Tag] = field(default_factory=list)
    pins: list[rows_of_tags_and_pins.Pin] = field(default_factory=list)

    @property
    def keys(self) -> list[Key]:
        """The keys of the messages."""
        return [Key(row[_PARTITION], row[0]) for row in self.messages]

    def passages(self, model_ids: Sequence[str | None]) -> "dict[tuple[str, str], Embedded]":
        """Return the passages of embedded messages by (partition, model)."""
        vectors: dict[tuple[str, int], list[Passage]] = {}
        for model_id, passage in self.vectors:
            vectors.setdefault((model_id, passage.message_id), []).append(passage)
        lists = dict(zip(model_ids, self.waiting, strict=True))
        models = {model for model, _ in self.vectors} | {model for model in model_ids if model}
        embedded: dict[tuple[str, str], Embedded] = {}
        for model_id in sorted(models):
            for partition, message_id in self.keys:
                passages = vectors.get((model_id, message_id), [])
                if passages or (model_id in lists and message_id not in lists[model_id]):
                    embedded.setdefault((partition, model_id), {})[message_id] = passages
        return embedded


#: Passages by the id of their message; an empty list for a message without text.
Embedded = dict[int, list[Passage]]


@dataclass(frozen=True, slots=True)
class DumpMetadata:
    """Everything in a store that does not belong to a single message.

    :param rows: those of each table, with its columns in :data:`_COLUMNS`.
    """

    rows: dict[str, list[tuple[Any, ...]]]
    properties: dict[str, str]


@reading
def read_batch(store: Store, after: Key | None, count: int) -> DumpBatch:
    """Return the next messages after a key in the store's own order, with all that is theirs."""
    connection = store._connection
    batch = DumpBatch(store._messages_after(after, count), waiting=([], []))
    models = [properties.get(connection, key) for key in (properties.MODEL_ID, properties.NEXT_ID)]
    for partition, ids in by_partition(batch.keys).items():
        for model_id in filter(None, models):
            passages = store._read_passages(partition, model_id, ids)
            batch.vectors.extend(
                (model_id, passage)
                for _, of_message in sorted(passages.items())
                for passage in of_message
            )
        for table, waiting_ids in zip(WAITING, batch.waiting, strict=True):
            waiting_ids += find_waiting(connection, table, partition, ids)
        tags, pins = rows_of_tags_and_pins.read(connection, partition, ids)
        batch.tags.extend(tags)
        batch.pins.extend(pins)
    return batch


@writing
def load(store: Store, batch: DumpBatch) -> None:
    """Write messages of another store under the same ids, and index them."""
    connection = store._connection
    connection.lock(by_partition(batch.keys))
    store._insert_messages(batch.messages)
    for channel, messages in reads.by_channel(list(map(reads.to_message, batch.messages))).items():
        store._index(channel, messages)
    models = [properties.get(connection, key) for key in (properties.MODEL_ID, properties.NEXT_ID)]
    for (partition, model_id), passages in batch.passages(models).items():
        store._add_vectors(partition, model_id, passages)
    partitions = {message_id: partition for partition, message_id in batch.keys}
    for table, ids in zip(WAITING, batch.waiting, strict=True):
        rows = [(partitions[message_id], message_id) for message_id in ids]
        connection.insert(table, "partition, message_id", rows)
    rows_of_tags_and_pins.add_tags(connection, batch.tags)
    rows_of_tags_and_pins.add_pins(connection, batch.pins)


@reading
def read_metadata(store: Store) -> DumpMetadata:
    """Return everything in the store that does not belong to a single message."""
    connection = store._connection
    values = dict(connection.execute("SELECT key, value FROM properties").fetchall())
    rows = {
        table: connection.execute(f"SELECT {', '.join(columns)} FROM {table} {order}").fetchall()
        for table, columns in _COLUMNS.items()
        for order in ["ORDER BY id, partition" if table == "context_runs" else ""]
    }
    copied = {
        key: value for key, value in values.items() if key.partition(":")[0] not in _NOT_COPIED
    }
    return DumpMetadata(rows, copied)


@writing
def load_metadata(store: Store, metadata: DumpMetadata) -> None:
    """Replace everything in the store that does not belong to a single message."""
    connection = store._connection
    for table, rows in metadata.rows.items():
        connection.execute(f"DELETE FROM {table}")
        if table != "context_runs":
            connection.insert(table, ", ".join(_COLUMNS[table]), rows)
    for row in metadata.rows["context_runs"]:  # with new ids, oldest first
        context_runs.add(connection, dict(zip(_COLUMNS["context_runs"], row, strict=True)))
    for key, value in metadata.properties.items():
        properties.put(connection, key, value)
