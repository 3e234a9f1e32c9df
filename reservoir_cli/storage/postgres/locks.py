"""Who writes where: locks that a transaction holds until its end.

Writers of one partition wait for each other, those of different ones do not. What concerns all
messages, such as a change of the model, waits for all of them.
"""

import hashlib
from collections.abc import Iterable

from reservoir_cli.storage.portable_sql import Connection

# The first number of a lock: "Rsvr" and on; other programs may lock in the same database.
_ALL, _PARTITION, _SCHEMA = range(0x52737672, 0x52737675)


def partitions(connection: Connection, names: Iterable[str]) -> None:
    """Be the only writer of some partitions."""
    connection.execute("SELECT pg_advisory_xact_lock_shared(?, 0)", [_ALL])
    # In one order for everyone, so that two do not wait for each other.
    for number in sorted({_number(name) for name in names}):
        connection.execute("SELECT pg_advisory_xact_lock(?, ?)", [_PARTITION, number])


def everything(connection: Connection) -> None:
    """Be the only writer."""
    connection.execute("SELECT pg_advisory_xact_lock(?, 0)", [_ALL])


def schema(connection: Connection) -> None:
    """Be the only one who changes tables."""
    connection.execute("SELECT pg_advisory_xact_lock(?, 0)", [_SCHEMA])


def _number(name: str) -> int:
    digest = hashlib.blake2b(name.encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little", signed=True)
