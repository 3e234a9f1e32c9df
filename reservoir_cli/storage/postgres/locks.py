"""Take write locks, which a transaction holds until its end.

Writers of one partition wait for each other at its row of ``partition_locks``; those of different
partitions do not. Row security decides who may lock a row. Operations on all messages, such as a
change of the model, lock the table itself, which only its owner may.
"""

from collections.abc import Iterable

from reservoir_cli.storage.portable_sql import Connection

TABLE = "partition_locks"


def lock_partitions(connection: Connection, names: Iterable[str]) -> None:
    """Take the write locks of these partitions, always in the same order, to avoid deadlocks."""
    for name in sorted(set(names)):
        lock = f"SELECT 1 FROM {TABLE} WHERE partition = ? FOR UPDATE"
        # The row is missing before the first write, and after the last message was deleted.
        while connection.execute(lock, [name]).fetchone() is None:
            connection.insert(TABLE, "partition", [[name]], ignore=True)


def lock_everything(connection: Connection) -> None:
    """Take the write lock of all partitions."""
    # The weakest mode that waits for all who lock a row, and keeps new ones waiting.
    connection.execute(f"LOCK TABLE {TABLE} IN EXCLUSIVE MODE")
