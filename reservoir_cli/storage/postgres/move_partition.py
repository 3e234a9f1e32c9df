"""Move a partition's messages to another on a server.

Rows are read, inserted and deleted, because a row of a distributed table cannot change its
partition, and a cluster copies rows by a way that row security refuses.
An id that the new partition already uses is replaced by a new one.
"""

from collections.abc import Mapping, Sequence

from reservoir_cli.messages import Channel, Scope
from reservoir_cli.storage.keys import thread_key
from reservoir_cli.storage.portable_sql import batches, select_messages
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.schema import OF_MESSAGES, TABLES
from reservoir_cli.storage.search.stemmer import scope_stems
from reservoir_cli.storage.tables import find_by_filter, rows_of_tags_and_pins, writes

_AT_ONCE = 1_000  #: The number of messages whose rows are in memory at once.
#: The columns of a message that do not change.
_KEPT = ", ".join(
    name
    for name in TABLES["messages"].types()
    if name not in ("partition", "instance", "id", "conversation_id")
)
_KEPT_OF_RUNS = ", ".join(
    name for name in TABLES["context_runs"].types() if name not in ("partition", "id")
)
_EMBEDDED = 'model_id, passage, start, "end", vector'
_WORDS = ", part, start, ts_delete(stems, ?::text[]) || array_to_tsvector(?::text[])"


def move_runs(connection: Connection, old: str, new: str) -> None:
    """Move the records of built contexts of a partition to another."""
    rows = connection.rows(
        f"SELECT id, {_KEPT_OF_RUNS} FROM context_runs WHERE partition = ? ORDER BY id", [old]
    )
    ids = _free_ids(connection, "context_runs", [row[0] for row in rows], new)
    moved = [(new, run_id, *row[1:]) for run_id, row in zip(ids, rows, strict=True)]
    connection.insert("context_runs", f"partition, id, {_KEPT_OF_RUNS}", moved)
    connection.delete("context_runs", old)


def _free_ids(connection: Connection, table: str, ids: Sequence[int], partition: str) -> list[int]:
    """Return these ids, with new ones in place of those that a partition already uses."""
    used = {
        row[0]
        for row in connection.rows(
            f"SELECT id FROM {table} WHERE partition = ? AND id = ANY(?::bigint[])",
            [partition, list(ids)],
        )
    }
    own_ids = set(ids)
    fresh = (new for new in connection.new_ids(partition, table) if new not in own_ids)
    return [next(fresh) if old in used else old for old in ids]


def move(connection: Connection, old: Channel, new: Channel) -> int:
    """Move messages and what is derived from them; return how many."""
    ids = find_by_filter.find(connection, Scope(*old)).ids
    renamed = dict(zip(ids, _free_ids(connection, "messages", ids, new[0]), strict=True))
    for batch in batches(ids, _AT_ONCE):
        new_ids = {message_id: renamed[message_id] for message_id in batch}
        _copy_messages(connection, old, new, new_ids)
        rows_of_tags_and_pins.copy(connection, old[0], new[0], new_ids)
        for table in OF_MESSAGES:
            writes.delete_rows(connection, table, old[0], batch)
        connection.delete("messages", old[0], *connection.in_list("id", batch))
    return len(ids)


def _copy_messages(
    connection: Connection, old: Channel, new: Channel, new_ids: Mapping[int, int]
) -> None:
    """Copy messages with their words, vectors, and rows of ``pending`` and ``rebuilding``."""
    columns = f"id, conversation_id, {_KEPT}"
    rows = select_messages(connection, columns, old[0], list(new_ids))
    moved = [
        (*new, thread_key(*new, conversation), new_ids[message_id], conversation, *rest)
        for message_id, conversation, *rest in rows
    ]
    columns = f"partition, instance, thread, id, conversation_id, {_KEPT}"
    connection.insert("messages", columns, moved)
    listed, values = connection.in_list("message_id", list(new_ids))
    scopes = [scope_stems(*old), scope_stems(*new)]
    for table, columns, selected, bound in (
        ("words", ", part, start, stems", _WORDS, scopes),
        ("embeddings", f", instance, {_EMBEDDED}", f", ?, {_EMBEDDED}", [new[1]]),
        ("pending", "", "", []),
        ("rebuilding", "", "", []),
    ):
        rows = connection.rows(
            f"SELECT message_id {selected} FROM {table} WHERE partition = ? AND {listed}",
            [*bound, old[0], *values],
        )
        moved = [(new[0], new_ids[message_id], *rest) for message_id, *rest in rows]
        connection.insert(table, f"partition, message_id{columns}", moved)
