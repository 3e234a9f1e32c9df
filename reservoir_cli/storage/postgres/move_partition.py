"""Carrying a partition's messages over to another on a server.

A row cannot change its partition where tables are spread by it: it is written anew and deleted.
An id that the new partition has already is replaced by a new one.
"""

from collections.abc import Mapping, Sequence

from reservoir_cli.messages import Scope
from reservoir_cli.storage import summaries
from reservoir_cli.storage.postgres import delete, locks, reads, replicate, writes
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.postgres.ids import IdSource
from reservoir_cli.storage.postgres.stemmer import scope_stems
from reservoir_cli.storage.records import Filter
from reservoir_cli.storage.sqlite.reads import CONVERSATION_COLUMNS
from reservoir_cli.storage.sqlite.vector_blocks import thread_key

_Place = tuple[str, str]
_AT_ONCE = 5_000
#: Columns of a message that stay as they are.
_KEPT = (
    "trace_id, conversation_id, role, content, name, tool_calls, tool_call_id, created_at, "
    "source, source_id, tokens, counter, secrets, terms, asks"
)
_RENAMED = "unnest(%s::bigint[], %s::bigint[]) AS t (old, new)"


def move(connection: Connection, ids: IdSource, old: str, new: str) -> tuple[int, int]:
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
        delete.remove(connection, {old: known} if known else {}, mark=False)
        there += len(known)
        moved += _move(connection, ids, *places)
    connection.execute("DELETE FROM conversations WHERE partition = %s", [old])
    connection.execute("DELETE FROM summaries WHERE partition = %s", [old])
    _move_runs(connection, ids, old, new)
    return moved, there


def _move_runs(connection: Connection, ids: IdSource, old: str, new: str) -> None:
    columns = ", ".join(
        row[0]
        for row in reads.rows(
            connection,
            """
            SELECT attname FROM pg_attribute WHERE attrelid = 'context_runs'::regclass
            AND attnum > 0 AND NOT attisdropped AND attname NOT IN ('partition', 'id')
            """,
        )
    )
    found = reads.rows(
        connection, "SELECT id FROM context_runs WHERE partition = %s ORDER BY id", [old]
    )
    numbers = [row[0] for row in found]
    connection.execute(
        f"""
        INSERT INTO context_runs (partition, id, {columns}) SELECT %s, t.new, {columns}
        FROM context_runs r JOIN unnest(%s::bigint[], %s::bigint[]) AS t (old, new) ON t.old = r.id
        WHERE r.partition = %s
        """.encode(),
        [new, numbers, _free(connection, ids, "context_runs", numbers, new), old],
    )
    connection.execute("DELETE FROM context_runs WHERE partition = %s", [old])


def _free(
    connection: Connection, ids: IdSource, table: str, numbers: Sequence[int], partition: str
) -> list[int]:
    """Return these ids, with a new one in place of each that a partition has already."""
    used = {
        row[0]
        for row in reads.rows(
            connection,
            f"SELECT id FROM {table} WHERE partition = %s AND id = ANY(%s::bigint[])",
            [partition, list(numbers)],
        )
    }
    taken = set(numbers)
    fresh = (each for each in ids.take(connection, partition, table) if each not in taken)
    return [next(fresh) if number in used else number for number in numbers]


def _already_there(connection: Connection, old: _Place, new: _Place) -> list[int]:
    """Return the messages whose source and source id the new place has already."""
    known: list[int] = []
    numbers = reads.find(connection, Scope(*old), Filter()).ids
    for start in range(0, len(numbers), _AT_ONCE):
        rows = reads.rows(
            connection,
            """
            SELECT id, source, source_id FROM messages
            WHERE partition = %s AND id = ANY(%s::bigint[])
            """,
            [old[0], numbers[start : start + _AT_ONCE]],
        )
        there = writes.present(connection, new, [(row[1], row[2]) for row in rows])
        known += [row[0] for row in rows if (row[1], row[2]) in there]
    return sorted(known)


def _move(connection: Connection, ids: IdSource, old: _Place, new: _Place) -> int:
    numbers = reads.find(connection, Scope(*old), Filter()).ids
    renamed = dict(zip(numbers, _free(connection, ids, "messages", numbers, new[0]), strict=True))
    for start in range(0, len(numbers), _AT_ONCE):
        portion = numbers[start : start + _AT_ONCE]
        _copy_messages(connection, old, new, portion, [renamed[each] for each in portion])
    _copy_links(connection, old[0], new[0], renamed)
    connection.execute("DELETE FROM messages WHERE partition = %s AND instance = %s", old)
    connection.execute(summaries.moving("%s").encode(), [*new, *old, *new])
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


def _copy_messages(
    connection: Connection, old: _Place, new: _Place, before: list[int], after: list[int]
) -> None:
    """Write messages anew, with their words and vectors and whether these are still to come.

    :param before: the ids they have.
    :param after: the ids they get.
    """
    conversations = reads.rows(
        connection,
        """
        SELECT DISTINCT conversation_id FROM messages
        WHERE partition = %s AND id = ANY(%s::bigint[])
        """,
        [old[0], before],
    )
    threads = {row[0]: thread_key(*new, row[0]) for row in conversations}
    connection.execute(
        f"""
        INSERT INTO messages (partition, instance, thread, id, {_KEPT})
        SELECT %s, %s, c.thread, t.new, {_KEPT}
        FROM messages m JOIN {_RENAMED} ON t.old = m.id
        JOIN unnest(%s::text[], %s::bigint[]) AS c (conversation, thread)
        ON c.conversation IS NOT DISTINCT FROM m.conversation_id
        WHERE m.partition = %s
        """.encode(),
        [*new, before, after, list(threads), list(threads.values()), old[0]],
    )
    connection.execute(
        f"""
        INSERT INTO words (partition, message_id, part, start, stems)
        SELECT %s, t.new, w.part, w.start,
        ts_delete(w.stems, %s::text[]) || array_to_tsvector(%s::text[])
        FROM words w JOIN {_RENAMED} ON t.old = w.message_id WHERE w.partition = %s
        """.encode(),
        [new[0], scope_stems(*old), scope_stems(*new), before, after, old[0]],
    )
    connection.execute(
        f"""
        INSERT INTO embeddings
        (partition, instance, message_id, model_id, passage, start, "end", vector)
        SELECT %s, %s, t.new, e.model_id, e.passage, e.start, e."end", e.vector
        FROM embeddings e JOIN {_RENAMED} ON t.old = e.message_id WHERE e.partition = %s
        """.encode(),
        [*new, before, after, old[0]],
    )
    for table in ("pending", "rebuilding"):
        connection.execute(
            f"""
            INSERT INTO {table} (partition, message_id) SELECT %s, t.new
            FROM {table} p JOIN {_RENAMED} ON t.old = p.message_id WHERE p.partition = %s
            """.encode(),
            [new[0], before, after, old[0]],
        )


def _copy_links(connection: Connection, old: str, new: str, renamed: Mapping[int, int]) -> None:
    rows = reads.rows(
        connection,
        """
        SELECT source_id, target_id, score, kind FROM synapses
        WHERE partition = %s AND source_id = ANY(%s::bigint[])
        """,
        [old, list(renamed)],
    )
    links = [
        (new, renamed[source], renamed[target], score, kind)
        for source, target, score, kind in rows
        if target in renamed
    ]
    replicate.put_links(connection, links)
