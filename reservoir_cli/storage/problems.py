"""Faults of a store that a check finds, and what a repair could not restore."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reservoir_cli.messages import ConversationName
from reservoir_cli.storage.portable_sql import Connection
from reservoir_cli.storage.tables import tag_and_pin_rows
from reservoir_cli.util.progress import counted


class Problem(NamedTuple):
    """A fault of a store.

    :param detail: a description, without any text of a message.
    :param repairable: whether ``repair`` fixes it; otherwise a backup is needed.
    """

    detail: str
    repairable: bool


class Repaired(NamedTuple):
    """What a repair could not restore.

    :param texts: ids of messages whose texts had invalid bytes, now replaced by U+FFFD.
    :param summaries: the conversations whose summaries could not be read, and are deleted;
        ``None`` if it is unknown which.
    """

    texts: Sequence[int] = ()
    summaries: Sequence[ConversationName] | None = ()


def derived_problems(connection: Connection, unindexed: int, unranked: int) -> Iterator[Problem]:
    """Yield the problems of derived data."""
    for data, count in (("full-text index", unindexed), ("ranking data", unranked)):
        if count:
            yield Problem(f"the {data} is wrong for {counted(count, 'message')}", repairable=True)
    if count := tag_and_pin_rows.count_orphans(connection):
        yield Problem(f"{count:,} tags and pins belong to no message", repairable=True)
