"""Rows of summaries: how they are written, moved and deleted with their messages."""

from collections.abc import Iterable

from reservoir_cli.messages import StoredMessage
from reservoir_cli.storage.portable_sql import Connection

COLUMNS = "partition, instance, conversation_id, digest, text, made_by, first_at, model_id, vector"
#: All rows, in an order that both kinds of store share.
ALL = f"SELECT {COLUMNS} FROM summaries ORDER BY partition, instance, conversation_id"
#: Write a row.
INSERT = f"INSERT INTO summaries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
#: Delete that of one conversation.
DELETE = "DELETE FROM summaries WHERE partition = ? AND instance = ? AND conversation_id = ?"
#: Copy them to a place that has none of the conversation; the values are the new place and the old.
MOVE = f"""
    INSERT INTO summaries ({COLUMNS})
    SELECT ?, ?, conversation_id, digest, text, made_by, first_at, model_id, vector
    FROM summaries s WHERE s.partition = ? AND s.instance = ?
    ON CONFLICT (partition, instance, conversation_id) DO NOTHING
"""


def forget(connection: Connection, messages: Iterable[StoredMessage]) -> None:
    """Delete the summaries of the conversations that messages are of."""
    conversations = {
        (message.partition, message.instance, message.conversation_id)
        for message in messages
        if message.conversation_id
    }
    connection.executemany(DELETE, sorted(conversations))
