"""Delete one of each two messages that would become the same by moving a partition.

They have the same source and source id. The one whose text was edited last stays.
"""

from collections.abc import Callable, Mapping, Sequence

from reservoir_cli.messages import Scope
from reservoir_cli.storage import conversations, find_by_filter, reads, tag_and_pin_rows, tombstones
from reservoir_cli.storage.portable_sql import Connection, batches

#: A partition and an instance.
Place = tuple[str, str]


def remove(
    connection: Connection, old: Place, new: Place, delete: Callable[[str, Sequence[int]], None]
) -> int:
    """Delete one of each two messages with the same source and source id; the other gets its tags.

    :param old: the place that is moved.
    :param new: the place that it is moved to.
    :param delete: deletes messages of a partition.
    :returns: how many messages of the old place were deleted.
    """
    twins = _find(connection, old, new)
    replaced = _find_replaced(connection, old[0], new[0], twins)
    for batch in batches(list(replaced)):
        messages = reads.by_id(connection, batch, Scope(new[0]))
        threads = {(*new, message.conversation_id) for message in messages}
        known = conversations.read_known(connection, threads)
        tag_and_pin_rows.copy(connection, new[0], old[0], {twin: replaced[twin] for twin in batch})
        delete(new[0], batch)
        conversations.add(connection, Scope(*new), list(known.values()))  # as they were
    kept = set(replaced.values())
    dropped = {message: twin for message, twin in twins.items() if message not in kept}
    tag_and_pin_rows.copy(connection, old[0], new[0], dropped)
    delete(old[0], list(dropped))
    return len(dropped)


def _find(connection: Connection, old: Place, new: Place) -> dict[int, int]:
    """Return the messages of a place whose source and source id another place has, too.

    :returns: the ids of the twins by those of the messages.
    """
    twins: dict[int, int] = {}
    for batch in batches(find_by_filter.find(connection, Scope(*old)).ids):
        listed, bound = connection.in_list("id", batch)
        rows = connection.execute(
            f"""
            SELECT source, source_id, id FROM messages {connection.index_hint(None)}
            WHERE partition = ? AND {listed}
            """,
            [old[0], *bound],
        )
        by_source: dict[str, dict[str, int]] = {}
        for source, own, message_id in rows:
            by_source.setdefault(source, {})[own] = message_id
        for source, ids in by_source.items():
            listed, bound = connection.in_list("source_id", list(ids))
            same = connection.execute(
                f"""
                SELECT source_id, id FROM messages
                WHERE partition = ? AND instance = ? AND source = ? AND {listed}
                """,
                [*new, source, *bound],
            )
            twins.update((ids[own], twin) for own, twin in same)
    return twins


def _find_replaced(
    connection: Connection, old: str, new: str, twins: Mapping[int, int]
) -> dict[int, int]:
    """Return the twins whose message in the old partition was edited later, each with it."""
    replaced: dict[int, int] = {}
    for batch in batches(list(twins)):
        edited = tombstones.find_edited(connection, reads.by_id(connection, batch, Scope(old)))
        ids = [twins[message.id] for message in edited]
        theirs = {message.id: message for message in reads.by_id(connection, ids, Scope(new))}
        replaced |= {
            twins[message.id]: message.id
            for message in edited
            if tombstones.last_edit(connection, message)
            > tombstones.last_edit(connection, theirs[twins[message.id]])
        }
    return replaced
