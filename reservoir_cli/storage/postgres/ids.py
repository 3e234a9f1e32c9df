"""Ids of messages, made here: ordered by time, and the same for no two messages of a store.

An id is the milliseconds since 2020 times 4,096, plus a number below that; it stays under 2^53
until 2089. A transaction holds a lock on the millisecond it takes numbers from.
"""

import time
from collections.abc import Iterator

from reservoir_cli.storage.postgres import locks, properties
from reservoir_cli.storage.postgres.connection import Connection

_SINCE_2020 = 1_577_836_800_000
_EACH = 4_096


def take(connection: Connection) -> Iterator[int]:
    """Ids for one transaction; they are ours once the lock is held and none of them is in use."""
    while True:
        moment = _claim(connection)
        yield from range(moment * _EACH, (moment + 1) * _EACH)


def now() -> int:
    """The least id of this millisecond."""
    return (time.time_ns() // 1_000_000 - _SINCE_2020) * _EACH


def _claim(connection: Connection) -> int:
    moment = max(now() // _EACH, _last(connection) // _EACH + 1)
    while True:
        row = connection.execute(
            "SELECT pg_try_advisory_xact_lock(%s, %s)", [locks.ID, moment % 2**31]
        ).fetchone()
        # Whoever held it until just now has used it.
        if row and row[0] and _last(connection) < moment * _EACH:
            return moment
        moment += 1


def _last(connection: Connection) -> int:
    """The greatest id that was ever given and can be seen."""
    row = connection.execute(
        """
        SELECT greatest(coalesce(max(id), 0),
            coalesce((SELECT max(value::bigint) FROM properties
                WHERE split_part(key, ':', 1) = %s), 0))
        FROM messages
        """,
        [properties.LAST_ID],
    ).fetchone()
    return int(row[0]) if row else 0
