"""Write rows of the proxy's ledger, and delete them with the messages they quote."""

import os
import time
from collections.abc import Sequence

from reservoir_cli.storage.portable_sql import Connection

#: Insert or replace the block added to a user's message.
PUT = """
    INSERT INTO ledger (partition, conversation, ordinal, question, block, tokens, masked, at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (partition, conversation, ordinal, question) DO UPDATE SET
    block = excluded.block, tokens = excluded.tokens, masked = excluded.masked, at = excluded.at
"""
#: Insert a message that a row quotes.
PUT_QUOTED = """
    INSERT INTO ledger_messages (partition, message_id, conversation, ordinal, question)
    VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_ROW_OF = """
    q.partition = ledger.partition AND q.conversation = ledger.conversation
    AND q.ordinal = ledger.ordinal AND q.question = ledger.question
"""


def version(connection: Connection, partition: str) -> int:
    """Return a number that changes whenever a message's text in a partition changes."""
    row = connection.execute(
        "SELECT tokens FROM ledger WHERE partition = ? AND conversation = ''", [partition]
    ).fetchone()
    return int(row[0]) if row else 0


def _change_version(connection: Connection, partition: str) -> None:
    """Store a new version, in a row with an empty conversation."""
    version_number, now = int.from_bytes(os.urandom(4)) >> 1, int(time.time() * 1000)
    connection.execute(PUT, [partition, "", 0, "", "", version_number, 1, now])


def forget(connection: Connection, partition: str, ids: Sequence[int]) -> None:
    """Delete the rows that quote messages; call it in the transaction that changes these."""
    listed, bound = connection.in_list("q.message_id", ids)
    connection.execute(
        "DELETE FROM ledger WHERE partition = ? AND EXISTS "
        f"(SELECT 1 FROM ledger_messages q WHERE {_ROW_OF} AND {listed})",
        [partition, *bound],
    )
    drop_quoted(connection, partition)
    _change_version(connection, partition)  # another process may be about to quote them


def drop_quoted(connection: Connection, partition: str) -> None:
    """Delete the quoted messages of rows that no longer exist."""
    connection.execute(
        "DELETE FROM ledger_messages WHERE partition = ? AND NOT EXISTS (SELECT 1 FROM ledger l "
        "WHERE l.partition = ledger_messages.partition "
        "AND l.conversation = ledger_messages.conversation "
        "AND l.ordinal = ledger_messages.ordinal AND l.question = ledger_messages.question)",
        [partition],
    )


def clear(connection: Connection, partition: str) -> None:
    """Delete all rows of a partition."""
    for table in ("ledger_messages", "ledger"):
        connection.execute(f"DELETE FROM {table} WHERE partition = ?", [partition])
