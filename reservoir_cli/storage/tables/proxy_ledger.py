"""The ledger of the proxy: the block added to each question.

A client sends its history back without the proxy's blocks. They have to be added again, byte for
byte, for the provider's prompt cache to match.
"""

import os
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from reservoir_cli.messages import to_epoch_ms
from reservoir_cli.storage.portable_sql import Connection, replacing, select_messages
from reservoir_cli.storage.transactions import TableAccess, reading, reads_with, writing

LIFETIME = timedelta(days=30)  #: How long a row is kept.
#: Insert or replace the block added to a user's message.
_PUT = f"""
    INSERT INTO ledger (partition, conversation, ordinal, question, block, tokens, masked, at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (partition, conversation, ordinal, question) DO UPDATE SET
    {replacing("block, tokens, masked, at")}
"""
#: Insert a message that a row quotes.
_PUT_QUOTED = """
    INSERT INTO ledger_messages (partition, message_id, conversation, ordinal, question)
    VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""


class LedgerEntry(NamedTuple):
    """The block that the proxy added to a question.

    :param ordinal: the question's number in its conversation.
    :param question: a hash of the question and of all questions before it.
    """

    ordinal: int
    question: str
    block: str
    tokens: int
    masked: bool = True


def read_version(connection: Connection, partition: str) -> int:
    """Return a number that changes whenever a message's text in a partition changes."""
    row = connection.execute(
        "SELECT tokens FROM ledger WHERE partition = ? AND conversation = ''", [partition]
    ).fetchone()
    return int(row[0]) if row else 0


class Ledger(TableAccess):
    """Read and write the ledger of a store."""

    @reading
    def get(
        self, partition: str, conversation: str, *, masked: bool, now: datetime
    ) -> dict[tuple[int, str], LedgerEntry]:
        """Return the entries of a conversation by ordinal and question."""
        rows = self._connection.execute(
            "SELECT ordinal, question, block, tokens, masked FROM ledger "
            "WHERE partition = ? AND conversation = ? AND at >= ? AND masked >= ?",
            [partition, conversation, to_epoch_ms(now - LIFETIME), int(masked)],
        ).fetchall()
        entries = [LedgerEntry(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows]
        return {(entry.ordinal, entry.question): entry for entry in entries}

    version = reads_with(read_version)

    @writing
    def put(
        self,
        partition: str,
        conversation: str,
        entry: LedgerEntry,
        quoted: Sequence[int],
        *,
        version: int,
        now: datetime,
    ) -> bool:
        """Store an entry unless a text of the partition has changed since the messages were read.

        :param version: the result of :meth:`version` before they were read.
        :returns: whether it was stored.
        """
        key = [conversation, entry.ordinal, entry.question]
        values = [entry.block, entry.tokens, int(entry.masked), to_epoch_ms(now)]
        self._connection.lock([partition])
        changed = read_version(self._connection, partition) != version
        if changed:
            return False
        present = select_messages(self._connection, "id", partition, quoted)
        if len(present) != len(set(quoted)):  # they may have been moved
            return False
        self._connection.execute(_PUT, [partition, *key, *values])
        rows = [[partition, message_id, *key] for message_id in quoted]
        self._connection.executemany(_PUT_QUOTED, rows)
        return True

    @reading
    def partitions(self) -> list[str]:
        """Return the partitions that have entries."""
        rows = self._connection.execute("SELECT DISTINCT partition FROM ledger").fetchall()
        return [str(row[0]) for row in rows]

    @writing
    def expire(self, partition: str, *, masked: bool, now: datetime) -> None:
        """Delete entries that are too old, or contain secrets although they must be redacted."""
        self._connection.lock([partition])
        expired = [to_epoch_ms(now - LIFETIME), int(masked)]
        self._connection.delete("ledger", partition, "(at < ? OR masked < ?)", expired)
        drop_quoted(self._connection, partition)


def forget(connection: Connection, partition: str, ids: Sequence[int]) -> None:
    """Delete the rows that quote messages; call it in the transaction that changes these."""
    listed, bound = connection.in_list("message_id", ids)
    rows = connection.execute(
        "SELECT DISTINCT conversation, ordinal, question FROM ledger_messages "
        f"WHERE partition = ? AND {listed}",
        [partition, *bound],
    ).fetchall()
    for table in ("ledger_messages", "ledger"):
        for row in rows:
            condition = "conversation = ? AND ordinal = ? AND question = ?"
            connection.delete(table, partition, condition, row)
    # A new version, in a row without a conversation: another process may be about to quote them.
    version, now = int.from_bytes(os.urandom(4)) >> 1, int(time.time() * 1000)
    connection.execute(_PUT, [partition, "", 0, "", "", version, 1, now])


def drop_quoted(connection: Connection, partition: str) -> None:
    """Delete the quoted messages of rows that no longer exist."""
    names = ("conversation", "ordinal", "question")
    same = " AND ".join(f"ledger.{name} = ledger_messages.{name}" for name in names)
    entry = f"SELECT 1 FROM ledger WHERE ledger.partition = ledger_messages.partition AND {same}"
    connection.delete("ledger_messages", partition, f"NOT EXISTS ({entry})")


def clear(connection: Connection, partition: str) -> None:
    """Delete all rows of a partition."""
    for table in ("ledger_messages", "ledger"):
        connection.delete(table, partition)
