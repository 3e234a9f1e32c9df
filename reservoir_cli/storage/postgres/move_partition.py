"""Carrying a partition's messages over to another on a server.

A row cannot change its partition where tables are spread by it: it is written anew and deleted.
"""

from reservoir_cli.messages import Scope
from reservoir_cli.storage.postgres import delete, locks, reads
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.postgres.stemmer import scope_stems
from reservoir_cli.storage.records import Filter
from reservoir_cli.storage.sqlite.reads import CONVERSATION_COLUMNS
from reservoir_cli.storage.sqlite.vector_blocks import thread_key

_Place = tuple[str, str]


def move(connection: Connection, old: str, new: str) -> tuple[int, int]:
    """Bring all messages of a partition into another; call it inside a write transaction.

    An instance keeps its name; the one that is named like the partition is renamed with it.

    :returns: how many were moved, and how many were there already and are gone.
    """
    locks.partitions(connection, [old, new])
    names = reads.rows(
        connection, "SELECT DISTINCT instance FROM messages WHERE partition = %s", [old]
    )
    moved = there = 0
    for (instance,) in names:
        places = (old, instance), (new, new if instance == old else instance)
        known = _already_there(connection, *places)
        delete.remove(connection, known, mark=False)
        there += len(known)
        moved += _move(connection, *places)
    connection.execute("DELETE FROM conversations WHERE partition = %s", [old])
    columns = ", ".join(
        row[0]
        for row in reads.rows(
            connection,
            """
            SELECT attname FROM pg_attribute WHERE attrelid = 'context_runs'::regclass
            AND attnum > 0 AND NOT attisdropped AND attname <> 'partition'
            """,
        )
    )
    connection.execute(
        f"""
        WITH gone AS (DELETE FROM context_runs WHERE partition = %s RETURNING *)
        INSERT INTO context_runs (partition, {columns}) SELECT %s, {columns} FROM gone
        """.encode(),
        [old, new],
    )
    return moved, there


def _already_there(connection: Connection, old: _Place, new: _Place) -> list[int]:
    """Messages whose source and id the new place has already."""
    found = reads.rows(
        connection,
        """
        SELECT a.id FROM messages a JOIN messages b
        ON b.partition = %s AND b.instance = %s
        AND b.source = a.source AND b.source_id = a.source_id
        WHERE a.partition = %s AND a.instance = %s
        """,
        [*new, *old],
    )
    return [row[0] for row in found]


def _move(connection: Connection, old: _Place, new: _Place) -> int:
    numbers = list(reads.find(connection, Scope(*old), Filter()))
    conversations = reads.rows(
        connection,
        """
        SELECT DISTINCT conversation_id FROM messages WHERE partition = %s AND instance = %s
        """,
        old,
    )
    threads = {row[0]: thread_key(*new, row[0]) for row in conversations}
    connection.execute(
        """
        INSERT INTO messages (partition, instance, thread, id, trace_id, conversation_id, role,
        content, name, tool_calls, tool_call_id, created_at, source, source_id, tokens, counter,
        secrets, terms, asks)
        SELECT %s, %s, t.thread, g.id, g.trace_id, g.conversation_id, g.role, g.content, g.name,
        g.tool_calls, g.tool_call_id, g.created_at, g.source, g.source_id, g.tokens, g.counter,
        g.secrets, g.terms, g.asks
        FROM messages g JOIN unnest(%s::text[], %s::bigint[]) AS t (conversation_id, thread)
        ON t.conversation_id IS NOT DISTINCT FROM g.conversation_id
        WHERE g.partition = %s AND g.instance = %s
        """,
        [*new, list(threads), list(threads.values()), *old],
    )
    connection.execute(
        """
        WITH gone AS (
            DELETE FROM words WHERE partition = %s AND message_id = ANY(%s) RETURNING *
        )
        INSERT INTO words (partition, message_id, part, start, stems)
        SELECT %s, message_id, part, start,
        ts_delete(stems, %s::text[]) || array_to_tsvector(%s::text[]) FROM gone
        """,
        [old[0], numbers, new[0], scope_stems(*old), scope_stems(*new)],
    )
    connection.execute(
        """
        WITH gone AS (
            DELETE FROM embeddings WHERE partition = %s AND message_id = ANY(%s) RETURNING *
        )
        INSERT INTO embeddings
        (partition, instance, message_id, model_id, passage, start, "end", vector)
        SELECT %s, %s, message_id, model_id, passage, start, "end", vector FROM gone
        """,
        [old[0], numbers, *new],
    )
    for table in ("pending", "rebuilding"):
        connection.execute(
            f"""
            WITH gone AS (
                DELETE FROM {table} WHERE partition = %s AND message_id = ANY(%s) RETURNING *
            )
            INSERT INTO {table} (partition, message_id) SELECT %s, message_id FROM gone
            """.encode(),
            [old[0], numbers, new[0]],
        )
    connection.execute(
        """
        WITH gone AS (
            DELETE FROM synapses WHERE partition = %s AND source_id = ANY(%s) RETURNING *
        )
        INSERT INTO synapses (partition, source_id, target_id, score, kind)
        SELECT %s, source_id, target_id, score, kind FROM gone
        """,
        [old[0], numbers, new[0]],
    )
    connection.execute("DELETE FROM messages WHERE partition = %s AND instance = %s", old)
    # What the new place knows of a conversation stays.
    connection.execute(
        f"""
        INSERT INTO conversations (partition, instance, {CONVERSATION_COLUMNS})
        SELECT %s, %s, {CONVERSATION_COLUMNS} FROM conversations
        WHERE partition = %s AND instance = %s ON CONFLICT DO NOTHING
        """.encode(),
        [*new, *old],
    )
    return len(numbers)
