"""Check and rebuild derived data on a server."""

from collections.abc import Sequence

from reservoir_cli.messages import Channel, Scope
from reservoir_cli.storage.keys import thread_key
from reservoir_cli.storage.portable_sql import batches
from reservoir_cli.storage.postgres import keyword_search
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.tables import find_by_filter, holdings, reads

_AT_ONCE = 1_000
#: Messages with text that have no vectors of a model and are not pending.
_LACKING = """
    SELECT m.partition, m.id FROM messages m WHERE m.word_count > 0 AND NOT EXISTS
    (SELECT 1 FROM pending p WHERE p.partition = m.partition AND p.message_id = m.id)
    AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.partition = m.partition
    AND e.message_id = m.id AND e.model_id = ?)
"""


def count_unindexed(connection: Connection) -> int:
    """Count the messages that are missing from the full-text index."""
    return connection.number(
        """
        SELECT count(*) FROM messages m WHERE NOT EXISTS
        (SELECT 1 FROM words w WHERE w.partition = m.partition AND w.message_id = m.id)
        """
    )


def count_lacking(connection: Connection, model_id: str) -> int:
    """Count the messages that neither have vectors nor are pending."""
    return connection.number(f"SELECT count(*) FROM ({_LACKING}) t", [model_id])


def rebuild(connection: Connection, model_id: str | None) -> None:
    """Rebuild the full-text index; messages that have lost their vectors become pending."""
    connection.lock(None)
    connection.execute("DELETE FROM words")
    for partition, instance, _ in holdings.channels(connection):
        ids = find_by_filter.find(connection, Scope(partition, instance)).ids
        for batch in batches(ids, _AT_ONCE):
            _index(connection, (partition, instance), batch)
    if model_id:
        connection.execute(f"INSERT INTO pending (partition, message_id) {_LACKING}", [model_id])


def _index(connection: Connection, channel: Channel, ids: Sequence[int]) -> None:
    messages = reads.by_id(connection, ids, Scope(*channel))
    keyword_search.index(connection, channel, messages)
    threads = [thread_key(*channel, message.conversation_id) for message in messages]
    connection.execute(
        """
        UPDATE messages m SET thread = t.thread FROM unnest(?::bigint[], ?::bigint[])
        AS t (id, thread) WHERE m.partition = ? AND m.id = t.id AND m.thread <> t.thread
        """,
        [[message.id for message in messages], threads, channel[0]],
    )
