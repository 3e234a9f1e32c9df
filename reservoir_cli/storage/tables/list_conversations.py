"""List conversations, documents and single messages, newest first, a page at a time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from reservoir_cli.messages import DOCUMENT_SOURCES, EVERYTHING, Conversation, Filter, Scope
from reservoir_cli.storage.portable_sql import Connection, placeholders
from reservoir_cli.storage.tables import conversations
from reservoir_cli.storage.tables.conversations import moment_of
from reservoir_cli.storage.tables.find_by_filter import conditions

_BEGINNING = 1_000  #: How many characters of a text are read for a title and a snippet.


class ListedConversation(NamedTuple):
    """A conversation, a document, or the single messages of an instance.

    :param conversation: ``None`` for documents and single messages.
    :param document: the id of the document's message; ``None`` for the others.
    :param latest: the beginning of the last text that a person or a model wrote, or the document's.
    """

    partition: str
    instance: str
    conversation: Conversation | None
    document: int | None
    messages: int
    last: datetime
    question: str
    latest: str


class ConversationList(NamedTuple):
    """A page of the list.

    :param total: how many entries all pages have, ``conversations`` and ``documents`` among them.
    """

    listed: Sequence[ListedConversation]
    total: int = 0
    conversations: int = 0
    documents: int = 0


def newest_conversations(
    connection: Connection,
    scope: Scope,
    where: Filter = EVERYTHING,
    count: int = 50,
    start: int = 0,
) -> ConversationList:
    """Return what has messages that match a filter, those with the newest ones first.

    The database groups all messages by an index; texts are read only for a page.
    """
    condition, values = conditions(connection, scope, where)
    is_document = f"m.source IN ({placeholders(DOCUMENT_SOURCES)})"
    # With partitions, few messages without a conversation are found by an index.
    listed = "AND m.partition IN (SELECT DISTINCT partition FROM messages)"
    in_partitions = listed if scope.partition is None else ""
    rows = connection.execute(
        f"""
        SELECT g.*, COUNT(*) OVER () AS total, COUNT(g.conversation) OVER () AS conversations,
        COUNT(g.document) OVER () AS documents FROM (
            SELECT m.partition, m.instance, m.conversation_id AS conversation,
            CAST(NULL AS bigint) AS document, COUNT(*) AS messages, MAX(m.created_at) AS last
            FROM messages m WHERE {condition} AND m.conversation_id IS NOT NULL
            GROUP BY m.partition, m.conversation_id, m.instance
            UNION ALL
            SELECT m.partition, m.instance, NULL, CASE WHEN {is_document} THEN m.id END,
            COUNT(*), MAX(m.created_at)
            FROM messages m WHERE {condition} AND m.conversation_id IS NULL {in_partitions}
            GROUP BY 1, 2, 4
        ) g ORDER BY last DESC, partition, instance, conversation, document DESC
        LIMIT ? OFFSET ?
        """,
        [*values, *DOCUMENT_SOURCES, *values, count, start],
    ).fetchall()
    entries = [_listed(connection, row) for row in rows]
    return ConversationList(entries, *(rows[0][6:9] if rows else ()))


#: Texts that a person or a model wrote, rather than calls and results of tools.
_SAID = "role IN ('user', 'assistant') AND content != ''"


def _listed(connection: Connection, row: Sequence[Any]) -> ListedConversation:
    partition, instance, name, document, messages, last, *_ = row
    question, conversation = "", None
    if document is not None:
        latest = _read_text(connection, "partition = ? AND id = ?", partition, document)
    elif name is None:
        single = f"conversation_id IS NULL AND {_SAID} AND source NOT IN "
        single += f"({placeholders(DOCUMENT_SOURCES)})"
        where = f"partition = ? AND instance = ? AND {single}"
        latest = _read_text(connection, where, partition, instance, *DOCUMENT_SOURCES)
    else:
        where = "partition = ? AND conversation_id = ? AND instance = ? AND "
        values = partition, name, instance
        question = _read_text(connection, f"{where} role = 'user'", *values, order="ASC")
        latest = _read_text(connection, where + _SAID, *values)
        key = partition, instance, name
        conversation = conversations.read_known(connection, [key]).get(key, Conversation(name))
    return ListedConversation(
        partition, instance, conversation, document, messages, moment_of(last), question, latest
    )


def _read_text(connection: Connection, where: str, *values: Any, order: str = "DESC") -> str:
    row = connection.execute(
        f"SELECT substr(content, 1, {_BEGINNING}) FROM messages WHERE {where}"
        f" ORDER BY created_at {order}, id {order} LIMIT 1",
        values,
    ).fetchone()
    return row[0] if row else ""
