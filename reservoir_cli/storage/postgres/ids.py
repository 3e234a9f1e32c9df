"""Generate ids of messages on the client, ordered by time and unique in their partition.

An id is the milliseconds since 2020 times 4,096, plus a counter that starts at random; it stays
below 2^53 until 2089. No other partition is read.
"""

import time
from collections.abc import Iterator
from secrets import randbelow

from reservoir_cli.storage.portable_sql import Connection

_SINCE_2020 = 1_577_836_800_000
_PER_MS = 4_096
#: The counter starts at random below this, so that two partitions seldom use the same id.
_RANDOM = 1_024
_DAY = 86_400_000
#: Ids are below this, so that a double can represent them; the clock is clamped accordingly.
LIMIT = 2**53
_LAST_MS = LIMIT // _PER_MS - 2 * _DAY


class IdSource:
    """Generates the ids of one writer, each greater than all before."""

    def __init__(self) -> None:
        self._last = 0

    def take(
        self, connection: Connection, partition: str, table: str = "messages"
    ) -> Iterator[int]:
        """Yield ids for one transaction, which holds the lock of the partition."""
        # Milliseconds since 2020, clamped to the range of ids.
        now = min(max(time.time_ns() // 1_000_000 - _SINCE_2020, 0), _LAST_MS)
        newest = _newest(connection, partition, table, (now + _DAY) * _PER_MS)
        self._last = max(self._last, newest, now * _PER_MS + randbelow(_RANDOM) - 1)
        while True:
            self._last += 1
            yield self._last


def _newest(connection: Connection, partition: str, table: str, ceiling: int) -> int:
    """Return the greatest id of a partition below a ceiling.

    The ceiling excludes ids far ahead, of a wrong clock or a hostile user.
    """
    row = connection.execute(
        f"SELECT max(id) FROM {table} WHERE partition = ? AND id < ?", [partition, ceiling]
    ).fetchone()
    return int(row[0] or 0) if row else 0
