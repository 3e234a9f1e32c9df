"""Take write locks, which a transaction holds until its end.

Writers of one partition wait for each other, those of different partitions do not. Operations on
all messages, such as a change of the model, wait for all writers.
"""

import hashlib
from collections.abc import Iterable

from reservoir_cli.storage.portable_sql import Connection

# The first key of the locks, from "Rsvr" on, because other programs may use the same database.
_ALL, _PARTITION, _SCHEMA = range(0x52737672, 0x52737675)


def lock_partitions(connection: Connection, names: Iterable[str]) -> None:
    """Take the write locks of these partitions."""
    connection.execute("SELECT pg_advisory_xact_lock_shared(?, 0)", [_ALL])
    # Always in the same order, to avoid deadlocks.
    for number in sorted({_number(name) for name in names}):
        connection.execute("SELECT pg_advisory_xact_lock(?, ?)", [_PARTITION, number])


def lock_everything(connection: Connection) -> None:
    """Take the write lock of all partitions."""
    connection.execute("SELECT pg_advisory_xact_lock(?, 0)", [_ALL])


def lock_schema(connection: Connection) -> None:
    """Take the lock for changing tables."""
    connection.execute("SELECT pg_advisory_xact_lock(?, 0)", [_SCHEMA])


def _number(name: str) -> int:
    digest = hashlib.blake2b(name.encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little", signed=True)
