"""What a store holds: its partitions and instances, and counts of its rows."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Literal, NamedTuple

from reservoir_cli.messages import Channel, Filter, Scope, clean_name
from reservoir_cli.storage.portable_sql import Connection, of_message, where_scope
from reservoir_cli.storage.tables.conversations import moment_of
from reservoir_cli.storage.tables.find_by_filter import conditions

#: What a filter can name, other than channels and ids.
NamedField = Literal["source", "project", "tag"]

_WEEK = 7 * 24 * 3_600_000
#: A Monday before all times, in milliseconds since 1970: databases divide negative numbers
#: differently.
_FIRST_MONDAY = date(1, 1, 1)
_BEFORE_1970 = (date(1970, 1, 1) - _FIRST_MONDAY).days * _WEEK // 7


class ChannelSummary(NamedTuple):
    """The number, size and times of the messages in one instance."""

    partition: str
    instance: str
    messages: int
    bytes: int
    first: datetime
    last: datetime


def newest_instance(connection: Connection, partition: str) -> str | None:
    """Return the instance of a partition with the newest message, documents excepted."""
    condition, bound = conditions(connection, Scope(partition), Filter(documents=False))
    row = connection.execute(
        f"""
        SELECT m.instance FROM messages m WHERE {condition}
        ORDER BY m.created_at DESC, m.id DESC LIMIT 1
        """,
        bound,
    ).fetchone()
    return row[0] if row else None


def channels(connection: Connection) -> list[tuple[str, str, int]]:
    """Return (partition, instance, number of messages), the largest first."""
    return connection.execute(
        "SELECT partition, instance, COUNT(*) FROM messages GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2"
    ).fetchall()


def channels_of(
    connection: Connection, partitions: Sequence[str], conversation: str
) -> set[Channel]:
    """Return the (partition, instance) that have messages of a conversation."""
    select = "SELECT DISTINCT instance FROM messages WHERE partition = ? AND conversation_id = ?"
    return {
        (partition, instance)
        for partition in partitions
        for (instance,) in connection.execute(select, [partition, clean_name(conversation)])
    }


def names(connection: Connection, field: NamedField, scope: Scope) -> list[str]:
    """Return the sources, projects or tags of a scope, in order."""
    condition, values = where_scope(scope, "c" if field == "project" else "m")
    if field == "source":
        sql = f"SELECT DISTINCT m.source FROM messages m WHERE {condition} ORDER BY 1"
    elif field == "project":
        sql = f"SELECT DISTINCT c.project FROM conversations c WHERE {condition} ORDER BY 1"
    else:
        sql = f"""
            SELECT DISTINCT t.name FROM tags t JOIN messages m ON {of_message("t")}
            WHERE {condition} ORDER BY 1
        """
    return [row[0] for row in connection.execute(sql, values) if row[0] is not None]


def channel_summaries(connection: Connection, scope: Scope) -> list[ChannelSummary]:
    """Return the instances of each partition, in order of their names."""
    condition, values = where_scope(scope)
    octets = f"{connection.octets('m.content')} + coalesce({connection.octets('m.tool_calls')}, 0)"
    rows = connection.execute(
        f"""
        SELECT m.partition, m.instance, COUNT(*), CAST(SUM({octets}) AS bigint),
        MIN(m.created_at), MAX(m.created_at)
        FROM messages m WHERE {condition} GROUP BY 1, 2 ORDER BY 1, 2
        """,
        values,
    )
    return [
        ChannelSummary(partition, instance, count, size, moment_of(first), moment_of(last))
        for partition, instance, count, size, first, last in rows
    ]


def stored_by_week(
    connection: Connection, since: datetime | None, partition: str | None = None
) -> list[tuple[date, str, int]]:
    """Return the Monday of each week with messages, their tools, and the numbers of messages."""
    condition, values = conditions(connection, Scope(partition), Filter(since=since))
    rows = connection.execute(
        f"""
        SELECT (m.created_at + {_BEFORE_1970}) / {_WEEK}, m.source, COUNT(*)
        FROM messages m WHERE {condition} GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2
        """,
        values,
    )
    return [(_FIRST_MONDAY + timedelta(weeks=week), tool, count) for week, tool, count in rows]


def count(connection: Connection, partition: str | None) -> dict[str, int]:
    """Count messages, conversations, messages without vectors, and tokens."""
    condition, values = where_scope(Scope(partition))
    counts = {
        "messages": f"COUNT(*) FROM messages m WHERE {condition}",
        "conversations": "COUNT(*) FROM (SELECT DISTINCT m.partition, m.instance, "
        f"m.conversation_id FROM messages m WHERE {condition} AND m.conversation_id IS NOT NULL) t",
        "pending": "COUNT(*) FROM pending p"
        if partition is None
        else f"COUNT(*) FROM pending p JOIN messages m ON {of_message('p')} WHERE {condition}",
        "tokens": f"CAST(coalesce(SUM(m.tokens), 0) AS bigint) FROM messages m WHERE {condition}",
    }
    return {
        name: int(connection.execute(f"SELECT {sql}", values).fetchone()[0])
        for name, sql in counts.items()
    }
