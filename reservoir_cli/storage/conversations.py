"""Read and write conversations, counts of stored rows, and records of built contexts."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple
from datetime import datetime
from typing import Any

from reservoir_cli.messages import Conversation, Scope, clean_name, from_epoch_ms
from reservoir_cli.storage.filter_conditions import conditions, where_scope
from reservoir_cli.storage.portable_sql import Connection, decoding, placeholders
from reservoir_cli.storage.records import ConversationSummary, Filter, PlaceSummary, ThreadName

#: The columns of a conversation, in the order of :class:`~reservoir_cli.messages.Conversation`.
COLUMNS = "id, title, source, model, project, branch"
#: How many characters of a conversation's first question are read as a title.
_QUESTION_LENGTH = 2_000


def add(connection: Connection, scope: Scope, conversations: Sequence[Conversation]) -> None:
    """Store titles and models of conversations; update those already stored."""
    connection.lock([str(scope.partition)])
    for conversation in conversations:
        connection.execute(
            f"""
            INSERT INTO conversations (partition, instance, {COLUMNS})
            VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (partition, instance, id) DO UPDATE SET
            title = coalesce(excluded.title, conversations.title),
            source = coalesce(excluded.source, conversations.source),
            model = coalesce(excluded.model, conversations.model),
            project = coalesce(excluded.project, conversations.project),
            branch = coalesce(excluded.branch, conversations.branch)
            """,
            [
                scope.partition,
                scope.instance,
                clean_name(conversation.id),
                *astuple(conversation)[1:],
            ],
        )


def read_known(
    connection: Connection, names: Collection[ThreadName]
) -> dict[ThreadName, Conversation]:
    """Return the stored titles and models of conversations."""
    known: dict[ThreadName, Conversation] = {}
    for partition in {name[0] for name in names}:
        threads = [name for name in names if name[0] == partition]
        # The condition on the instance lets the database use the primary key.
        in_instances, instances = connection.in_list("instance", sorted({t[1] for t in threads}))
        in_ids, ids = connection.in_list("id", sorted({t[2] or "" for t in threads}))
        rows = connection.execute(
            f"SELECT instance, {COLUMNS} FROM conversations "
            f"WHERE partition = ? AND {in_instances} AND {in_ids}",
            [partition, *instances, *ids],
        )
        known |= {(partition, row[0], row[1]): Conversation(*row[1:]) for row in rows}
    return known


def summaries(
    connection: Connection, scope: Scope, only: str | None = None
) -> list[ConversationSummary]:
    """Return the conversations of a scope that have messages, in order of their first ones.

    :param only: the id of the only conversations to return.
    """
    condition, values = where_scope(scope)
    if only is not None:
        condition, values = f"{condition} AND m.conversation_id = ?", [*values, only]
    rows = connection.execute(
        f"""
        SELECT t.partition, t.instance, t.conversation_id, c.title, c.source, c.model,
        c.project, c.branch, t.messages, t.first, t.last,
        CASE WHEN c.title IS NULL THEN substr(q.content, 1, {_QUESTION_LENGTH}) END
        FROM (
            SELECT m.partition, m.instance, m.conversation_id, COUNT(*) AS messages,
            MIN(m.created_at) AS first, MAX(m.created_at) AS last, MIN(m.id) AS id,
            MIN(m.id) FILTER (WHERE m.role = 'user') AS question
            FROM messages m WHERE {condition} AND m.conversation_id IS NOT NULL GROUP BY 1, 2, 3
        ) t LEFT JOIN conversations c
        ON c.partition = t.partition AND c.instance = t.instance AND c.id = t.conversation_id
        LEFT JOIN messages q ON q.partition = t.partition AND q.id = t.question
        ORDER BY t.first, t.id
        """,
        values,
    )
    return [
        ConversationSummary(
            partition,
            instance,
            Conversation(*conversation),
            messages=count,
            first=_moment(first),
            last=_moment(last),
            question=question,
        )
        for partition, instance, *conversation, count, first, last, question in rows
    ]


def _moment(milliseconds: int) -> datetime:
    with decoding("times of messages"):
        return from_epoch_ms(milliseconds)


def newest_instance(connection: Connection, partition: str) -> str | None:
    """Return the instance of a partition with the newest message, documents excepted."""
    condition, bound = conditions(connection, Scope(partition), Filter(documents=False))
    row = connection.execute(
        f"""
        SELECT m.instance FROM messages m WHERE {condition}
        ORDER BY m.created_at DESC, m.id DESC LIMIT 1
        """,
        bound,
    ).fetchone()
    return row[0] if row else None


def places(connection: Connection) -> list[tuple[str, str, int]]:
    """Return (partition, instance, number of messages), the largest first."""
    return connection.execute(
        "SELECT partition, instance, COUNT(*) FROM messages GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2"
    ).fetchall()


def place_summaries(connection: Connection, scope: Scope) -> list[PlaceSummary]:
    """Return the instances of each partition, in order of their names."""
    condition, values = where_scope(scope)
    octets = f"{connection.octets('m.content')} + coalesce({connection.octets('m.tool_calls')}, 0)"
    rows = connection.execute(
        f"""
        SELECT m.partition, m.instance, COUNT(*), CAST(SUM({octets}) AS bigint),
        MIN(m.created_at), MAX(m.created_at)
        FROM messages m WHERE {condition} GROUP BY 1, 2 ORDER BY 1, 2
        """,
        values,
    )
    return [
        PlaceSummary(partition, instance, count, size, _moment(first), _moment(last))
        for partition, instance, count, size, first, last in rows
    ]


def add_run(connection: Connection, run: Mapping[str, Any]) -> None:
    """Record a built context."""
    connection.lock([run["partition"]])
    run_id = next(connection.new_ids(run["partition"], "context_runs"))
    connection.execute(
        f"INSERT INTO context_runs (id, {', '.join(run)}) VALUES (?, {placeholders(list(run))})",
        [run_id, *run.values()],
    )


def runs(connection: Connection, since: int, partition: str | None = None) -> list[dict[str, Any]]:
    """Return the records of contexts built since a time in milliseconds, oldest first."""
    where, values = ("", []) if partition is None else ("AND partition = ?", [partition])
    cursor = connection.execute(
        f"SELECT * FROM context_runs WHERE at >= ? {where} ORDER BY id, partition",
        [since, *values],
    )
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def holdings_of(connection: Connection, partition: str) -> dict[str, int]:
    """Count the rows of each kind in a partition."""
    in_partition, values = connection.in_partition("s", partition)
    counts = {
        "messages": "messages m WHERE m.partition = ?",
        "conversations": "(SELECT DISTINCT instance, conversation_id FROM messages "
        "WHERE partition = ? AND conversation_id IS NOT NULL) m",
        "embedded": "messages m WHERE m.partition = ? AND EXISTS "
        f"(SELECT 1 FROM embeddings e WHERE {connection.of_message('e')})",
        "pending": f"pending p JOIN messages m ON {connection.of_message('p')} "
        "WHERE m.partition = ?",
        "synapses": "synapses s JOIN messages m ON m.id = s.source_id "
        f"WHERE m.partition = ? AND {in_partition}",
    }
    held = {
        name: connection.execute(
            f"SELECT COUNT(*) FROM {rows}", [partition, *(values if name == "synapses" else [])]
        )
        for name, rows in counts.items()
    }
    tokens = "SELECT CAST(coalesce(SUM(tokens), 0) AS bigint) FROM messages WHERE partition = ?"
    held["tokens"] = connection.execute(tokens, [partition])
    return {name: int(rows.fetchone()[0]) for name, rows in held.items()}


def holdings(connection: Connection) -> dict[str, int]:
    """Count the rows of each kind in the store."""
    counts = {
        "messages": "SELECT COUNT(*) FROM messages",
        "conversations": "SELECT COUNT(*) FROM (SELECT DISTINCT partition, instance, "
        "conversation_id FROM messages WHERE conversation_id IS NOT NULL) t",
        "embedded": "SELECT COUNT(*) FROM "
        f"(SELECT DISTINCT {connection.message_key} FROM embeddings) t",
        "pending": "SELECT COUNT(*) FROM pending",
        "synapses": "SELECT COUNT(*) FROM synapses",
        "tokens": "SELECT CAST(coalesce(SUM(tokens), 0) AS bigint) FROM messages",
    }
    return {name: int(connection.execute(sql).fetchone()[0]) for name, sql in counts.items()}
