"""Move a partition's messages to another on a server.

Rows are copied and deleted, because a row of a distributed table cannot change its partition.
An id that the new partition already uses is replaced by a new one.
"""

from collections.abc import Sequence

from reservoir_cli.messages import Scope
from reservoir_cli.storage.keys import thread_key
from reservoir_cli.storage.portable_sql import batches
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.schema import OF_MESSAGES, TABLES
from reservoir_cli.storage.search.stemmer import scope_stems
from reservoir_cli.storage.tables import find_by_filter, tag_and_pin_rows, writes

_Place = tuple[str, str]
#: The columns of a message that do not change.
_KEPT = ", ".join(
    name for name in TABLES["messages"].types() if name not in ("partition", "instance", "id")
)
_RENAMED = "unnest(?::bigint[], ?::bigint[]) AS t (old, new)"


def move_runs(connection: Connection, old: str, new: str) -> None:
    """Move the records of built contexts of a partition to another."""
    columns = ", ".join(
        name for name in TABLES["context_runs"].types() if name not in ("partition", "id")
    )
    rows = connection.rows("SELECT id FROM context_runs WHERE partition = ? ORDER BY id", [old])
    ids = [row[0] for row in rows]
    connection.execute(
        f"""
        INSERT INTO context_runs (partition, id, {columns}) SELECT ?, t.new, {columns}
        FROM context_runs r JOIN {_RENAMED} ON t.old = r.id
        WHERE r.partition = ?
        """,
        [new, ids, _free_ids(connection, "context_runs", ids, new), old],
    )
    connection.execute("DELETE FROM context_runs WHERE partition = ?", [old])


def _free_ids(connection: Connection, table: str, ids: Sequence[int], partition: str) -> list[int]:
    """Return these ids, with new ones in place of those that a partition already uses."""
    used = {
        row[0]
        for row in connection.rows(
            f"SELECT id FROM {table} WHERE partition = ? AND id = ANY(?::bigint[])",
            [partition, list(ids)],
        )
    }
    taken = set(ids)
    fresh = (new for new in connection.new_ids(partition, table) if new not in taken)
    return [next(fresh) if old in used else old for old in ids]


def move(connection: Connection, old: _Place, new: _Place) -> int:
    """Move messages and what is derived from them; return how many."""
    ids = find_by_filter.find(connection, Scope(*old)).ids
    renamed = dict(zip(ids, _free_ids(connection, "messages", ids, new[0]), strict=True))
    for batch in batches(ids):
        new_ids = {message_id: renamed[message_id] for message_id in batch}
        _copy_messages(connection, old, new, batch, list(new_ids.values()))
        tag_and_pin_rows.copy(connection, old[0], new[0], new_ids)
        for table in OF_MESSAGES:
            writes.delete_rows(connection, table, old[0], batch)
    connection.execute("DELETE FROM messages WHERE partition = ? AND instance = ?", old)
    return len(ids)


def _copy_messages(
    connection: Connection, old: _Place, new: _Place, before: Sequence[int], after: list[int]
) -> None:
    """Copy messages with their words, vectors, and rows of ``pending`` and ``rebuilding``.

    :param before: their old ids.
    :param after: their new ids.
    """
    rows = connection.rows(
        """
        SELECT DISTINCT conversation_id FROM messages
        WHERE partition = ? AND id = ANY(?::bigint[])
        """,
        [old[0], before],
    )
    threads = {row[0]: thread_key(*new, row[0]) for row in rows}
    connection.execute(
        f"""
        INSERT INTO messages (partition, instance, thread, id, {_KEPT})
        SELECT ?, ?, c.thread, t.new, {_KEPT}
        FROM messages m JOIN {_RENAMED} ON t.old = m.id
        JOIN unnest(?::text[], ?::bigint[]) AS c (conversation, thread)
        ON c.conversation IS NOT DISTINCT FROM m.conversation_id
        WHERE m.partition = ?
        """,
        [*new, before, after, list(threads), list(threads.values()), old[0]],
    )
    connection.execute(
        f"""
        INSERT INTO words (partition, message_id, part, start, stems)
        SELECT ?, t.new, w.part, w.start,
        ts_delete(w.stems, ?::text[]) || array_to_tsvector(?::text[])
        FROM words w JOIN {_RENAMED} ON t.old = w.message_id WHERE w.partition = ?
        """,
        [new[0], scope_stems(*old), scope_stems(*new), before, after, old[0]],
    )
    connection.execute(
        f"""
        INSERT INTO embeddings
        (partition, instance, message_id, model_id, passage, start, "end", vector)
        SELECT ?, ?, t.new, e.model_id, e.passage, e.start, e."end", e.vector
        FROM embeddings e JOIN {_RENAMED} ON t.old = e.message_id WHERE e.partition = ?
        """,
        [*new, before, after, old[0]],
    )
    for table in ("pending", "rebuilding"):
        connection.execute(
            f"""
            INSERT INTO {table} (partition, message_id) SELECT ?, t.new
            FROM {table} p JOIN {_RENAMED} ON t.old = p.message_id WHERE p.partition = ?
            """,
            [new[0], before, after, old[0]],
        )
