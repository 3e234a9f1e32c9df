"""Move a partition's messages to another on a server.

Rows are copied and deleted, because a row of a distributed table cannot change its partition.
An id that the new partition already uses is replaced by a new one.
"""

from collections.abc import Mapping, Sequence

from reservoir_cli.messages import Scope
from reservoir_cli.storage import (
    conversations,
    find_by_filter,
    links,
    proxy_ledger,
    sources,
    summaries,
    tag_and_pin_rows,
    twins,
    writes,
)
from reservoir_cli.storage.portable_sql import batches
from reservoir_cli.storage.postgres import delete
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.postgres.stemmer import scope_stems
from reservoir_cli.storage.sqlite.vector_blocks import thread_key

_Place = tuple[str, str]
#: The columns of a message that do not change.
_KEPT = (
    "trace_id, conversation_id, role, content, name, tool_calls, tool_call_id, created_at, "
    "source, source_id, tokens, counter, secrets, terms, asks"
)
_RENAMED = "unnest(?::bigint[], ?::bigint[]) AS t (old, new)"


def move(
    connection: Connection, old: str, new: str, replace_text: twins.ReplaceText
) -> tuple[int, int]:
    """Move all messages of a partition into another; call it inside a write transaction.

    Instances keep their names, except one that is named like the partition and renamed with it.

    :returns: how many were moved, and how many were dropped as duplicates.
    """
    connection.lock([old, new])
    names = connection.rows("SELECT DISTINCT instance FROM messages WHERE partition = ?", [old])
    moved = dropped = 0
    for (instance,) in names:
        places = (old, instance), (new, new if instance == old else instance)
        duplicates = twins.merge(connection, *places, replace_text)
        delete.remove(connection, {old: duplicates} if duplicates else {}, mark=False)
        dropped += len(duplicates)
        moved += _move(connection, *places)
    connection.execute("DELETE FROM conversations WHERE partition = ?", [old])
    connection.execute("DELETE FROM summaries WHERE partition = ?", [old])
    sources.move(connection, old, new)
    proxy_ledger.clear(connection, old)
    _move_runs(connection, old, new)
    return moved, dropped


def _move_runs(connection: Connection, old: str, new: str) -> None:
    columns = ", ".join(
        row[0]
        for row in connection.rows(
            """
            SELECT attname FROM pg_attribute WHERE attrelid = 'context_runs'::regclass
            AND attnum > 0 AND NOT attisdropped AND attname NOT IN ('partition', 'id')
            """
        )
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


def _move(connection: Connection, old: _Place, new: _Place) -> int:
    ids = find_by_filter.find(connection, Scope(*old)).ids
    renamed = dict(zip(ids, _free_ids(connection, "messages", ids, new[0]), strict=True))
    for batch in batches(ids):
        new_ids = {message_id: renamed[message_id] for message_id in batch}
        _copy_messages(connection, old, new, batch, list(new_ids.values()))
        tag_and_pin_rows.copy(connection, old[0], new[0], new_ids)
        for table in tag_and_pin_rows.TABLES:
            writes.delete_rows(connection, table, old[0], batch)
    _copy_links(connection, old[0], new[0], renamed)
    connection.execute("DELETE FROM messages WHERE partition = ? AND instance = ?", old)
    connection.execute(summaries.MOVE, [*new, *old])
    connection.execute(conversations.MOVE, [*new, *old])
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


def _copy_links(connection: Connection, old: str, new: str, renamed: Mapping[int, int]) -> None:
    rows = connection.rows(
        """
        SELECT source_id, target_id, score, kind FROM synapses
        WHERE partition = ? AND source_id = ANY(?::bigint[])
        """,
        [old, list(renamed)],
    )
    moved = [
        (new, renamed[source], renamed[target], score, kind)
        for source, target, score, kind in rows
        if target in renamed
    ]
    links.insert(connection, moved)
