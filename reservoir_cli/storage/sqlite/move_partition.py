"""Move the messages of a partition and instance to another in a file."""

from reservoir_cli.messages import Scope
from reservoir_cli.storage.portable_sql import batches
from reservoir_cli.storage.schema import OF_MESSAGES
from reservoir_cli.storage.sqlite import blocks, keyword_search
from reservoir_cli.storage.sqlite.blocks import Place
from reservoir_cli.storage.sqlite.connection import Connection
from reservoir_cli.storage.tables import reads


def move(connection: Connection, old: Place, new: Place) -> int:
    """Move messages and what is derived from them; return how many."""
    select = "SELECT id FROM messages WHERE partition = ? AND instance = ? ORDER BY id"
    ids = [row[0] for row in connection.execute(select, old)]
    for batch in batches(ids):
        messages = reads.by_id(connection, batch, Scope(*old))
        keyword_search.unindex(connection, old, messages)
        keyword_search.index(connection, new, messages)
        listed, bound = connection.in_list("message_id", batch)
        for table in OF_MESSAGES:
            connection.execute(
                f"UPDATE {table} SET partition = ? WHERE partition = ? AND {listed}",
                [new[0], old[0], *bound],
            )
    connection.execute(
        "UPDATE messages SET partition = ?, instance = ? WHERE partition = ? AND instance = ?",
        [*new, *old],
    )
    blocks.move(connection, old, new)
    return len(ids)
