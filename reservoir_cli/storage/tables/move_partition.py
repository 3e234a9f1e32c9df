"""Move a partition's messages to another one, with everything that refers to them."""

from collections.abc import Callable, Mapping, Sequence

from reservoir_cli.storage.portable_sql import Connection
from reservoir_cli.storage.tables import conversations, proxy_ledger, sources, summaries, twins

Place = twins.Place


def move(
    connection: Connection,
    old: str,
    new: str,
    move_messages: Callable[[Place, Place], int],
    replace_text: twins.ReplaceText,
    remove: Callable[[Mapping[str, Sequence[int]]], None],
) -> tuple[int, int]:
    """Move all messages of a partition into another; call it inside a write transaction.

    Instances keep their names, except one that is named like the partition and renamed with it.

    :param move_messages: moves the messages of a place, and what is derived from them, to another;
        returns how many.
    :returns: how many were moved, and how many were dropped as duplicates.
    """
    connection.lock([old, new])
    names = connection.execute(
        "SELECT DISTINCT instance FROM messages WHERE partition = ?", [old]
    ).fetchall()
    moved = dropped = 0
    for (instance,) in names:
        places = (old, instance), (new, new if instance == old else instance)
        duplicates = twins.merge(connection, *places, replace_text)
        if duplicates:
            remove({old: duplicates})
        dropped += len(duplicates)
        moved += move_messages(*places)
        conversations.move(connection, *places)
        summaries.move(connection, *places)
    for table in ("conversations", "summaries"):
        connection.delete(table, old)
    sources.move(connection, old, new)
    proxy_ledger.clear(connection, old)
    return moved, dropped
