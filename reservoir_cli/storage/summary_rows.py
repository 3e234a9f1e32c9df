"""SQL statements that write, move and delete rows of summaries."""

from collections.abc import Iterable

from reservoir_cli.messages import StoredMessage
from reservoir_cli.storage.portable_sql import Connection

COLUMNS = "partition, instance, conversation_id, digest, text, made_by, first_at, model_id, vector"
#: Select all rows, in an order that both kinds of store share.
ALL = f"SELECT {COLUMNS} FROM summaries ORDER BY partition, instance, conversation_id"
#: Insert a row.
INSERT = f"INSERT INTO summaries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
#: Delete the summary of a conversation.
DELETE = "DELETE FROM summaries WHERE partition = ? AND instance = ? AND conversation_id = ?"
#: Copy summaries to another partition and instance, unless it has one of the same conversation;
#: the values are the new partition and instance, then the old ones.
MOVE = f"""
    INSERT INTO summaries ({COLUMNS})
    SELECT ?, ?, conversation_id, digest, text, made_by, first_at, model_id, vector
    FROM summaries s WHERE s.partition = ? AND s.instance = ?
    ON CONFLICT (partition, instance, conversation_id) DO NOTHING
"""


def forget(connection: Connection, messages: Iterable[StoredMessage]) -> None:
    """Delete the summaries of the messages' conversations."""
    conversations = {
        (message.partition, message.instance, message.conversation_id)
        for message in messages
        if message.conversation_id
    }
    connection.executemany(DELETE, sorted(conversations))
