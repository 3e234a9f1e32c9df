"""Which messages are meant, by their ids, and what is known of their conversations.

Ids only, so that a million messages can be worked through in portions: they take 8 MB.
"""

import json
import sqlite3
from array import array
from collections.abc import Sequence

from reservoir_cli.messages import Conversation, Scope, from_epoch_ms
from reservoir_cli.storage.keys import Keys
from reservoir_cli.storage.records import ConversationSummary, Filter, PlaceSummary, ThreadName
from reservoir_cli.storage.sqlite import reads


def find(connection: sqlite3.Connection, scope: Scope, where: Filter) -> Keys:
    """Return the keys of messages in order of time."""
    condition, values = reads.conditions(scope, where)
    rows = connection.execute(
        f"SELECT m.partition, m.id FROM messages m WHERE {condition} ORDER BY m.created_at, m.id",
        values,
    )
    return Keys(rows)


def threads(
    connection: sqlite3.Connection, scope: Scope, where: Filter
) -> "dict[ThreadName, array[int]]":
    """The ids of messages by their thread, threads and messages in order of time."""
    condition, values = reads.conditions(scope, where)
    found: dict[ThreadName, array[int]] = {}
    for number, *names in connection.execute(
        f"""
        SELECT m.id, m.partition, m.instance, m.conversation_id FROM messages m
        WHERE {condition} ORDER BY m.created_at, m.id
        """,
        values,
    ):
        partition, instance, conversation = names
        found.setdefault((partition, instance, conversation), array("q")).append(number)
    return found


def conversation(
    connection: sqlite3.Connection, partition: str, instance: str, number: str
) -> Conversation | None:
    """What an import told of a conversation."""
    row = connection.execute(
        f"""
        SELECT {reads.CONVERSATION_COLUMNS} FROM conversations
        WHERE partition = ? AND instance = ? AND id = ?
        """,
        [partition, instance, number],
    ).fetchone()
    return Conversation(*row) if row else None


def titles(
    connection: sqlite3.Connection, partition: str, numbers: Sequence[str]
) -> dict[tuple[str, str | None], str]:
    """The titles of conversations by (instance, number); some have none."""
    found = connection.execute(
        """
        SELECT instance, id, title FROM conversations
        WHERE partition = ? AND title IS NOT NULL AND id IN (SELECT value FROM json_each(?))
        """,
        [partition, json.dumps(numbers)],
    )
    return {(instance, number): title for instance, number, title in found}


def places(connection: sqlite3.Connection, scope: Scope) -> list[PlaceSummary]:
    """The instances of each partition, in order of their names."""
    condition, values = reads.where_scope(scope)
    rows = connection.execute(
        f"""
        SELECT m.partition, m.instance, COUNT(*),
        SUM(LENGTH(CAST(m.content AS BLOB)) + coalesce(LENGTH(CAST(m.tool_calls AS BLOB)), 0)),
        MIN(m.created_at), MAX(m.created_at)
        FROM messages m WHERE {condition} GROUP BY 1, 2 ORDER BY 1, 2
        """,
        values,
    )
    return [
        PlaceSummary(partition, instance, count, size, from_epoch_ms(first), from_epoch_ms(last))
        for partition, instance, count, size, first, last in rows
    ]


def conversations(connection: sqlite3.Connection, scope: Scope) -> list[ConversationSummary]:
    """The conversations of a scope that have messages, in order of their first ones."""
    condition, values = reads.where_scope(scope)
    rows = connection.execute(
        f"""
        SELECT t.partition, t.instance, t.conversation_id, c.title, c.source, c.model,
        c.project, c.branch,
        t.messages, t.first, t.last,
        CASE WHEN c.title IS NULL THEN substr(q.content, 1, {reads.QUESTION_LENGTH}) END
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
            Conversation(*about),
            messages=count,
            first=from_epoch_ms(first),
            last=from_epoch_ms(last),
            question=question,
        )
        for partition, instance, *about, count, first, last, question in rows
    ]
