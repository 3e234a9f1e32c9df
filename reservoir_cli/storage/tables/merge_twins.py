"""Merge messages of the same source and source id that moving a partition brings together."""

from collections.abc import Callable, Sequence

from reservoir_cli.messages import Channel, Scope, StoredMessage
from reservoir_cli.storage.portable_sql import (
    Connection,
    batches,
    select_by_source,
    select_messages,
)
from reservoir_cli.storage.tables import find_by_filter, reads, rows_of_tags_and_pins

#: Gives a message, the first one, the text of another one, which was edited at a moment.
ReplaceText = Callable[[StoredMessage, StoredMessage, int], None]


def merge(
    connection: Connection,
    old: Channel,
    new: Channel,
    replace_text: ReplaceText,
    among: Sequence[int] | None = None,
) -> list[int]:
    """Give messages of a channel the tags, and the newer edits, of their twins in another channel.

    :returns: the ids of the twins, which can be deleted.
    """
    ids = find_by_filter.find(connection, Scope(*old)).ids if among is None else among
    twins = _find(connection, old, new, ids)
    for batch in batches(list(twins)):
        stored = reads.by_id(connection, batch, Scope(old[0]))
        edited = reads.edit_times(connection, stored)
        ids = [twins[key.id] for key in edited]
        messages = {message.id: message for message in reads.by_id(connection, ids, Scope(new[0]))}
        edit_times = reads.edit_times(connection, list(messages.values()))
        for twin in (message for message in stored if message.key in edited):
            message = messages[twins[twin.id]]
            if edited[twin.key] > edit_times.get(message.key, 0):
                replace_text(message, twin, edited[twin.key])
    rows_of_tags_and_pins.copy(connection, old[0], new[0], twins)
    return list(twins)


def _find(
    connection: Connection, old: Channel, new: Channel, candidates: Sequence[int]
) -> dict[int, int]:
    """Return the twins, by id, of messages whose source and source id another channel has."""
    twins: dict[int, int] = {}
    for batch in batches(candidates):
        rows = select_messages(connection, "source, source_id, id", old[0], batch)
        by_source: dict[str, dict[str, int]] = {}
        for source, own, message_id in rows:
            by_source.setdefault(source, {})[own] = message_id
        for source, ids in by_source.items():
            same = select_by_source(connection, Scope(*new), source, list(ids))
            twins.update((ids[own], twin) for own, twin in same.items())
    return twins
