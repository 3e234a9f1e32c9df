"""Compare blocks with the messages in them, and repair what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from reservoir_cli.errors import StoreCorruptError
from reservoir_cli.messages import Channel
from reservoir_cli.storage.sqlite import blocks
from reservoir_cli.storage.sqlite.blocks import EMBEDDED, FIRST, LAST, Entries
from reservoir_cli.storage.sqlite.connection import Connection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The condition for messages that are in the blocks of the active model.
_NOT_PENDING = "AND id NOT IN (SELECT message_id FROM pending)"


def count_problems(connection: Connection, model_id: str) -> int:
    """Count the messages that are missing from a model's blocks, or wrong in them."""
    wrong: set[int] = set()
    whole = _WholeMessages()
    for _, _, entries, fresh, is_stored in _examine(connection, model_id):
        same = is_stored & _are_equal(entries, fresh)
        wrong.update(entries.ids[~same].tolist())
        whole.add(entries.at(is_stored))
    return len(wrong | whole.find_parts() | (_expected(connection) - whole.ids))


def repair(connection: Connection, model_id: str) -> None:
    """Renew what blocks repeat of messages; drop what is damaged. Messages it lacks are pending."""
    whole = _WholeMessages()
    torn = _find_ids(connection, model_id)
    for block_id, channel, entries, fresh, is_stored in _examine(connection, model_id):
        torn.remove(block_id)
        if not (is_stored & _are_equal(entries, fresh)).all():
            blocks.replace(connection, block_id, channel, fresh.at(is_stored))
        whole.add(entries.at(is_stored))
    connection.executemany("DELETE FROM blocks WHERE id = ?", [(block_id,) for block_id in torn])
    for channel, message_ids in blocks.by_channel(connection, sorted(whole.find_parts())).items():
        blocks.remove(connection, channel, message_ids)
    missing = _expected(connection) - (whole.ids - whole.find_parts())
    connection.executemany(
        "INSERT INTO pending (partition, message_id) "
        "SELECT partition, id FROM messages WHERE id = ?",
        [(number,) for number in sorted(missing)],
    )


class _WholeMessages:
    """Tells which messages have all of their passages in blocks."""

    def __init__(self) -> None:
        self.ids: set[int] = set()
        self._ends: dict[int, list[int]] = {FIRST: [], LAST: []}

    def add(self, entries: Entries) -> None:
        self.ids.update(entries.ids.tolist())
        for flag, ids in self._ends.items():
            ids += entries.ids[(entries.flags & flag) > 0].tolist()

    def find_parts(self) -> set[int]:
        """Return the messages that have not exactly one first and one last passage."""
        once = [
            {number for number, count in Counter(ids).items() if count == 1}
            for ids in self._ends.values()
        ]
        return self.ids - (once[0] & once[1])


def _expected(connection: Connection) -> set[int]:
    rows = connection.execute("SELECT id FROM messages EXCEPT SELECT message_id FROM pending")
    return {row[0] for row in rows}


def _examine(
    connection: Connection, model_id: str
) -> Iterator[tuple[int, Channel, Entries, Entries, NDArray[np.bool_]]]:
    """Yield the id, channel and entries of each readable block of the active model.

    Then the entries as they should be, and for each whether it belongs to an embedded message.
    """
    width = connection.execute(  # of most vectors
        "SELECT LENGTH(codes) / n FROM blocks WHERE model_id = ? AND embedded > 0 "
        "GROUP BY 1 ORDER BY COUNT(*) DESC LIMIT 1",
        [model_id],
    ).fetchone() or (0,)
    for block_id in _find_ids(connection, model_id):
        partition, instance, *blobs = connection.execute(
            f"SELECT partition, instance, {blocks.NAMES} FROM blocks WHERE id = ?", [block_id]
        ).fetchone()
        with suppress(StoreCorruptError):
            entries = blocks.unpack(blobs)
            if (entries.flags & EMBEDDED).any() and entries.codes.shape[1] != width[0]:
                continue
            channel = partition, instance
            expected = blocks.repeat_messages(connection, channel, entries, _NOT_PENDING)
            yield block_id, channel, entries, *expected


def _are_equal(entries: Entries, fresh: Entries) -> NDArray[np.bool_]:
    equal: NDArray[np.bool_] = fresh.flags == entries.flags
    for name in ("created_at", "threads", "tokens", "word_counts"):
        equal = equal & (getattr(fresh, name) == getattr(entries, name))
    return equal


def _find_ids(connection: Connection, model_id: str) -> list[int]:
    rows = connection.execute("SELECT id FROM blocks WHERE model_id = ? ORDER BY id", [model_id])
    return [row[0] for row in rows]
