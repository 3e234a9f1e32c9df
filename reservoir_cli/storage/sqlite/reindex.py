"""Update the full-text index of an older store, message by message."""

import json
import sqlite3

from reservoir_cli.messages import Message, call_from_dict, clean_text, plain_text
from reservoir_cli.storage import fulltext

#: The first schema whose full-text index has ł, ø, æ and ß as plain letters, and ü also as ue.
FOLDED = 7


def fold_letters(connection: sqlite3.Connection) -> None:
    """Index those messages again whose words in the index have changed.

    The index does not store the texts: to remove a message, FTS5 needs the text that was indexed.
    """
    rows = connection.execute("SELECT id, partition, instance, content, tool_calls FROM messages")
    for message_id, partition, instance, content, calls in rows.fetchall():
        tool_calls = tuple(map(call_from_dict, json.loads(calls or "[]")))
        text = clean_text(plain_text(Message("assistant", content, tool_calls=tool_calls)))
        before, after = fulltext.spaced_text(text), fulltext.indexed_text(text)
        if before != after:
            keys = fulltext.scope_keys(partition, instance)
            connection.execute(
                "INSERT INTO messages_fts (messages_fts, rowid, text, scope) "
                "VALUES ('delete', ?, ?, ?)",
                [message_id, before, keys],
            )
            connection.execute(
                "INSERT INTO messages_fts (rowid, text, scope) VALUES (?, ?, ?)",
                [message_id, after, keys],
            )
