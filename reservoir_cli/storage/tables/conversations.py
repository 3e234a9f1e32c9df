"""Read and write conversations: their titles, their models, and lists of them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import astuple
from datetime import datetime
from typing import Any, NamedTuple

from reservoir_cli.messages import (
    Conversation,
    ConversationName,
    Scope,
    StoredMessage,
    clean_name,
    from_epoch_ms,
)
from reservoir_cli.storage.keys import conversation_ids
from reservoir_cli.storage.portable_sql import Connection, decoding, where_scope

#: The columns of a conversation, in the order of :class:`~reservoir_cli.messages.Conversation`.
COLUMNS = "id, title, source, model, project, branch"
_PUT = f"""
    INSERT INTO conversations (partition, instance, {COLUMNS})
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (partition, instance, id)
    DO UPDATE SET
"""
#: How many characters of a conversation's first question are read as a title.
_QUESTION_LENGTH = 2_000


class ConversationSummary(NamedTuple):
    """A conversation, the number of its messages, and the times of its first and last one."""

    partition: str
    instance: str
    conversation: Conversation
    messages: int
    first: datetime
    last: datetime
    question: str | None = None

    @property
    def name(self) -> ConversationName:
        """The conversation's partition, instance and id."""
        return self.partition, self.instance, self.conversation.id


def _keep(first: str, second: str) -> str:
    """Return the assignments that keep the values of one row, and else those of another."""
    names = COLUMNS.split(", ")[1:]
    return ", ".join(f"{name} = coalesce({first}.{name}, {second}.{name})" for name in names)


def add(connection: Connection, scope: Scope, conversations: Sequence[Conversation]) -> None:
    """Store titles and models of conversations; update those already stored."""
    connection.lock([str(scope.partition)])
    rows = [
        (scope.partition, scope.instance, clean_name(conversation.id), *astuple(conversation)[1:])
        for conversation in conversations
    ]
    connection.executemany(f"{_PUT} {_keep('excluded', 'conversations')}", rows)


def move(connection: Connection, old: tuple[str, str], new: tuple[str, str]) -> None:
    """Copy conversations to another partition and instance, and complete those that it has."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM conversations c WHERE c.partition = ? AND c.instance = ?", old
    ).fetchall()
    connection.executemany(
        f"{_PUT} {_keep('conversations', 'excluded')}", [(*new, *row) for row in rows]
    )


def read_known(
    connection: Connection, names: Collection[ConversationName]
) -> dict[ConversationName, Conversation]:
    """Return the stored titles and models of conversations."""
    rows = _read(connection, names, f"instance, {COLUMNS}")
    return {(partition, row[0], row[1]): Conversation(*row[1:]) for partition, row in rows}


def read_titles(
    connection: Connection, messages: Iterable[StoredMessage]
) -> dict[ConversationName, str]:
    """Return the titles of the conversations of messages that have one."""
    names = {
        (message.partition, message.instance, message.conversation_id)
        for message in messages
        if message.conversation_id
    }
    rows = _read(connection, names, "instance, id, title", "AND title != ''")
    return {(partition, instance, number): title for partition, (instance, number, title) in rows}


def titles_in(connection: Connection, scope: Scope) -> list[tuple[str, str, str, str]]:
    """Return the titled conversations of a scope: partition, instance, id and title."""
    in_scope, values = where_scope(scope, "c")
    return connection.execute(
        f"""
        SELECT c.partition, c.instance, c.id, c.title FROM conversations c
        WHERE {in_scope} AND c.title != ''
        """,
        values,
    ).fetchall()


def _read(
    connection: Connection, names: Collection[ConversationName], columns: str, condition: str = ""
) -> Iterator[tuple[str, Any]]:
    for partition in {name[0] for name in names}:
        own_names = [name for name in names if name[0] == partition]
        # The condition on the instance lets the database use the primary key.
        in_instances, instances = connection.in_list("instance", sorted({t[1] for t in own_names}))
        in_ids, ids = connection.in_list("id", sorted({t[2] or "" for t in own_names}))
        rows = connection.execute(
            f"SELECT {columns} FROM conversations "
            f"WHERE partition = ? AND {in_instances} AND {in_ids} {condition}",
            [partition, *instances, *ids],
        ).fetchall()
        yield from ((partition, row) for row in rows)


def summaries(
    connection: Connection, scope: Scope, only: str | None = None
) -> list[ConversationSummary]:
    """Return the conversations of a scope that have messages, in order of their first ones."""
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
            first=moment_of(first),
            last=moment_of(last),
            question=question,
        )
        for partition, instance, *conversation, count, first, last, question in rows
    ]


def drop_empty(connection: Connection, messages: Iterable[StoredMessage]) -> None:
    """Delete the rows of conversations that have none of their messages left."""
    for (partition, instance), ids in conversation_ids(messages).items():
        listed, bound = connection.in_list("id", ids)
        connection.delete(
            "conversations",
            partition,
            f"""
            instance = ? AND {listed} AND NOT EXISTS (
                SELECT 1 FROM messages m WHERE m.partition = conversations.partition
                AND m.instance = conversations.instance AND m.conversation_id = conversations.id
            )
            """,
            [instance, *bound],
        )


def moment_of(milliseconds: int) -> datetime:
    """Convert a stored time; report one that no calendar has as damage."""
    with decoding("times of messages"):
        return from_epoch_ms(milliseconds)
