"""Bring the full text of an older store up to date, message by message."""

import json
import sqlite3

from reservoir_cli.messages import Message, call_from_dict, clean_text, plain_text
from reservoir_cli.storage import fulltext

#: The first schema whose full text has ł, ø, æ and ß as plain letters, and ü as ue, too.
FOLDED = 7


def fold_letters(connection: sqlite3.Connection) -> None:
    """Index again the messages that have other words in the index now.

    The full text keeps no text: to take a message out, it has to be given what was indexed.
    """
    rows = connection.execute("SELECT id, partition, instance, content, tool_calls FROM messages")
    for number, partition, instance, content, calls in rows.fetchall():
        made = tuple(map(call_from_dict, json.loads(calls or "[]")))
        text = clean_text(plain_text(Message("assistant", content, tool_calls=made)))
        before, after = fulltext.spaced_text(text), fulltext.indexed_text(text)
        if before != after:
            keys = fulltext.scope_keys(partition, instance)
            connection.execute(
                "INSERT INTO messages_fts (messages_fts, rowid, text, scope) "
                "VALUES ('delete', ?, ?, ?)",
                [number, before, keys],
            )
            connection.execute(
                "INSERT INTO messages_fts (rowid, text, scope) VALUES (?, ?, ?)",
                [number, after, keys],
            )
