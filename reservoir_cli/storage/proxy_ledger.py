"""The ledger of the proxy: what was added to which question, so that it is added again.

A client sends its own history back, without what the proxy added to it. If it were not added
again, byte for byte, the provider could not use what it has in its cache.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from reservoir_cli.messages import to_epoch_ms
from reservoir_cli.storage import proxy_ledger_rows
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

    def version(self, partition: str) -> int:
        """Return a number that differs when a text of a partition has changed or is deleted."""
        with self._store.snapshot():
            return proxy_ledger_rows.version(self._connection, partition)

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
        """Store an entry unless a text of the partition changed since it was quoted, or moved away.

        :param quoted: the ids of the messages.
        :param version: what :meth:`version` was before they were read.
        :returns: whether it was stored.
        """
        key = [conversation, entry.ordinal, entry.question]
        values = [entry.block, entry.tokens, int(entry.masked), to_epoch_ms(now)]

        def write() -> bool:
            self._connection.lock([partition])
            changed = proxy_ledger_rows.version(self._connection, partition) != version
            if changed or not self._are_there(partition, quoted):
                return False
            self._connection.execute(proxy_ledger_rows.PUT, [partition, *key, *values])
            self._connection.executemany(
                proxy_ledger_rows.PUT_QUOTED, [[partition, number, *key] for number in quoted]
            )
            return True

        return self._store._written(write)

    def _are_there(self, partition: str, ids: Sequence[int]) -> bool:
        """Return whether messages are in the partition; it may have been moved."""
        listed, bound = self._connection.in_list("id", ids)
        rows = self._connection.execute(
            f"SELECT COUNT(*) FROM messages WHERE partition = ? AND {listed}", [partition, *bound]
        )
        return bool(rows.fetchone()[0] == len(set(ids)))

    def expire(self, partition: str, *, masked: bool, now: datetime) -> None:
        """Delete entries that are too old, or show secrets that are to be hidden now."""

        def write() -> None:
            self._connection.lock([partition])
            self._connection.execute(
                "DELETE FROM ledger WHERE partition = ? AND (at < ? OR masked < ?)",
                [partition, to_epoch_ms(now - LIFETIME), int(masked)],
            )
            proxy_ledger_rows.drop_quoted(self._connection, partition)

        self._store._written(write)
