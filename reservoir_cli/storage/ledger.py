"""The ledger of the proxy: what was added to which question, so that it is added again.

A client sends its own history back, without what the proxy added to it. If it were not added
again, byte for byte, the provider could not use what it has in its cache.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from reservoir_cli.messages import to_epoch_ms
from reservoir_cli.storage import ledger_rows
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import LedgerEntry

#: How long a row is kept.
LIFETIME = timedelta(days=30)


class Ledger:
    """The ledger of a store, on its connection."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._connection = store._connection

    def get(
        self, partition: str, conversation: str, *, masked: bool, now: datetime
    ) -> dict[tuple[int, str], LedgerEntry]:
        """Return the entries of a conversation by ordinal and question.

        :param masked: secrets must be hidden; entries in which they are not are left out.
        """
        with self._store.snapshot():
            rows = self._connection.execute(
                "SELECT ordinal, question, block, tokens, masked FROM ledger "
                "WHERE partition = ? AND conversation = ? AND at >= ? AND masked >= ?",
                [partition, conversation, to_epoch_ms(now - LIFETIME), int(masked)],
            ).fetchall()
        entries = [LedgerEntry(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows]
        return {(entry.ordinal, entry.question): entry for entry in entries}

    def put(
        self,
        partition: str,
        conversation: str,
        entry: LedgerEntry,
        quoted: Sequence[int],
        *,
        now: datetime,
    ) -> bool:
        """Store an entry unless a message that it quotes is gone meanwhile.

        :param quoted: the ids of the messages.
        :returns: whether it was stored.
        """
        key = [conversation, entry.ordinal, entry.question]
        values = [entry.block, entry.tokens, int(entry.masked), to_epoch_ms(now)]

        def write() -> bool:
            self._connection.lock([partition])
            if len(self._present(partition, quoted)) < len(set(quoted)):
                return False
            self._connection.execute(ledger_rows.PUT, [partition, *key, *values])
            self._connection.executemany(
                ledger_rows.PUT_QUOTED, [[partition, number, *key] for number in quoted]
            )
            return True

        return self._store._written(write)

    def _present(self, partition: str, ids: Sequence[int]) -> list[int]:
        listed, bound = self._connection.in_list("id", ids)
        rows = self._connection.execute(
            f"SELECT id FROM messages WHERE partition = ? AND {listed}", [partition, *bound]
        )
        return [row[0] for row in rows]

    def expire(self, partition: str, *, masked: bool, now: datetime) -> None:
        """Delete entries that are too old, or show secrets that are to be hidden now."""

        def write() -> None:
            self._connection.lock([partition])
            self._connection.execute(
                "DELETE FROM ledger WHERE partition = ? AND (at < ? OR masked < ?)",
                [partition, to_epoch_ms(now - LIFETIME), int(masked)],
            )
            ledger_rows.drop_quoted(self._connection, partition)

        self._store._written(write)
