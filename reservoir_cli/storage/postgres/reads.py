"""Every read of messages on a server: small functions from a connection to values."""

import itertools
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.chat.tool_calls import unpaired
from reservoir_cli.messages import (
    DOCUMENT_SOURCES,
    Conversation,
    Key,
    Role,
    Scope,
    StoredMessage,
    from_epoch_ms,
    to_epoch_ms,
)
from reservoir_cli.storage.keys import Keys, by_partition
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.records import (
    ConversationSummary,
    Filter,
    IdField,
    PlaceSummary,
    ThreadName,
)
from reservoir_cli.storage.sqlite.reads import (
    ABOUT_PROJECT,
    COLUMNS,
    CONVERSATION_COLUMNS,
    IDS_SHOWN,
    LAST_CHARACTER,
    QUESTION_LENGTH,
    holds,
    to_message,
)

#: How many rows are read at a time where there may be very many.
_AT_ONCE = 2_000
_names = itertools.count()
#: How the server writes a number as bytes, by its type for numpy.
_SEND = {
    "i8": "int8send(({})::int8)",
    "i4": "int4send(({})::int4)",
    "i2": "int2send(({})::int2)",
    "f4": "float4send(({})::float4)",
}


def where_scope(scope: Scope, table: str = "m") -> tuple[str, list[Any]]:
    """The condition that keeps a statement on a table inside a scope."""
    if scope.partition is None:
        return "true", []
    if scope.instance is None:
        return f"{table}.partition = %s", [scope.partition]
    return f"{table}.partition = %s AND {table}.instance = %s", [scope.partition, scope.instance]


def conditions(scope: Scope, where: Filter) -> tuple[str, list[Any]]:
    """The condition on ``messages m`` that a scope and a filter make, but for its text."""
    in_scope, bound = where_scope(scope)
    parts = [in_scope]
    for condition, value in (
        ("m.role = %s", where.role),
        ("m.trace_id = %s", where.trace_id),
        ("m.conversation_id = %s", where.conversation_id),
        ("m.source = %s", where.source),
        (ABOUT_PROJECT.replace("?", "%s"), where.project),
        ("m.created_at >= %s", to_epoch_ms(where.since) if where.since else None),
        ("m.created_at <= %s", to_epoch_ms(where.until) if where.until else None),
    ):
        if value is not None:
            parts.append(condition)
            bound.append(value)
    if where.session is not None:
        parts.append("starts_with(m.conversation_id || '/', %s)")
        bound.append(f"{where.session}/")
    if where.secrets:
        parts.append("m.secrets IS NOT NULL")
    if not where.documents:
        parts.append("m.source <> ALL(%s)")
        bound.append(list(DOCUMENT_SOURCES))
    return " AND ".join(parts), bound


def rows(connection: Connection, sql: str, values: Sequence[Any] = ()) -> list[Any]:
    """All rows of a query."""
    return connection.execute(sql.encode(), values).fetchall()


def number(connection: Connection, sql: str, values: Sequence[Any] = ()) -> int:
    """The one number that a query gives, 0 for none."""
    row = connection.execute(sql.encode(), values).fetchone()
    return int(row[0] or 0) if row else 0


def arrays(
    connection: Connection,
    columns: Mapping[str, tuple[str, str]],
    rest: str,
    values: Sequence[Any],
    given: str = "",
) -> dict[str, NDArray[Any]]:
    """Columns of numbers as arrays of one length: far faster than rows of them.

    The server joins them to one long value.

    :param columns: by name the expression, never null, and its type for numpy, such as ``i8``.
    :param rest: what follows on SELECT and its columns.
    :param values: for all of the statement, in its order.
    :param given: what stands before SELECT.
    """
    packed = " || ".join(_SEND[form].format(each) for each, form in columns.values())
    sql = f"{given} SELECT string_agg({packed}, ''::bytea) {rest}"
    row = connection.execute(sql.encode(), values, binary=True).fetchone()
    form = np.dtype([(name, f">{form}") for name, (_, form) in columns.items()])
    found = np.frombuffer((row and row[0]) or b"", form)
    # Each for itself, in the byte order of this machine.
    return {name: found[name].astype(form[name].newbyteorder("=")) for name in columns}


def _stream(
    connection: Connection, columns: str, scope: Scope, where: Filter, order: str
) -> Iterator[Any]:
    """Rows of messages that a filter lets through, its text included.

    :param columns: the text is compared here, as the server ignores case in other ways.
    """
    condition, bound = conditions(scope, where)
    text = (where.text or "").casefold()
    searched = ", m.content, m.tool_calls" if text else ""
    sql = f"SELECT {columns}{searched} FROM messages m WHERE {condition} {order}"
    with connection.cursor(f"reservoir_{next(_names)}") as cursor:
        cursor.itersize = _AT_ONCE
        cursor.execute(sql.encode(), bound)
        for row in cursor:
            if not text or holds(row[-2], row[-1], text):
                yield row[:-2] if text else row


def last(connection: Connection, scope: Scope, count: int, where: Filter) -> list[StoredMessage]:
    """The newest messages of a scope, oldest first; all when ``count`` is 0."""
    order = "ORDER BY m.created_at DESC, m.id DESC"
    if where.text:
        streamed = _stream(connection, COLUMNS, scope, where, order)
        found = list(itertools.islice(streamed, count or None))
        streamed.close()  # type: ignore[attr-defined]
    else:
        condition, bound = conditions(scope, where)
        found = rows(
            connection,
            f"SELECT {COLUMNS} FROM messages m WHERE {condition} {order} LIMIT %s",
            [*bound, count or None],
        )
    return [to_message(row) for row in reversed(found)]


def by_id(connection: Connection, ids: Sequence[int], scope: Scope) -> list[StoredMessage]:
    """These messages, where they are in the scope, oldest first."""
    condition, values = where_scope(scope)
    found = rows(
        connection,
        f"SELECT {COLUMNS} FROM messages m WHERE {condition} AND m.id = ANY(%s::bigint[])",
        [*values, list(ids)],
    )
    return sorted((to_message(row) for row in found), key=lambda each: (each.created_at, each.id))


def by_key(connection: Connection, keys: Sequence[Key]) -> list[StoredMessage]:
    """Return these messages, where they are still there, oldest first."""
    messages = [
        message
        for partition, ids in by_partition(keys).items()
        for message in by_id(connection, ids, Scope(partition))
    ]
    return sorted(messages, key=lambda message: (message.created_at, message.id))


def twins(connection: Connection) -> list[Key]:
    """Return the messages whose id is also that of one in a partition before theirs."""
    ids = rows(connection, "SELECT id FROM messages GROUP BY id HAVING count(*) > 1")
    same = rows(
        connection,
        "SELECT partition, id FROM messages WHERE id = ANY(%s::bigint[]) ORDER BY id, partition",
        [[row[0] for row in ids]],
    )
    first = {number: partition for partition, number in reversed(same)}
    return [Key(*row) for row in same if first[row[1]] != row[0]]


def with_partners(connection: Connection, ids: Sequence[int], scope: Scope) -> list[StoredMessage]:
    """These messages and what belongs to them: their trace, their tool calls and results."""
    found = {message.id: message for message in by_id(connection, ids, scope)}
    fresh, looked_up = list(found.values()), set[int]()
    while fresh:
        partners = _of_traces(connection, fresh, scope) - found.keys()
        found.update((each.id, each) for each in by_id(connection, sorted(partners), scope))
        known = sorted(found.values(), key=lambda each: (each.created_at, each.id))
        # Most calls and results are of one trace: only for the others the store is asked.
        alone = [each for each in unpaired(known) if each.id not in looked_up]
        looked_up |= {each.id for each in alone}
        partners = _of_calls(connection, alone) - found.keys()
        fresh = by_id(connection, sorted(partners), scope)
        found.update((each.id, each) for each in fresh)
    return sorted(found.values(), key=lambda each: (each.created_at, each.id))


def _of_traces(connection: Connection, messages: Iterable[StoredMessage], scope: Scope) -> set[int]:
    condition, values = where_scope(scope)
    partners: set[int] = set()
    traces: dict[str, set[str]] = {}
    for each in messages:
        traces.setdefault(each.partition, set()).add(each.trace_id)
    for partition, of_partition in traces.items():
        found = rows(
            connection,
            f"""
            SELECT m.id FROM messages m
            WHERE m.partition = %s AND m.trace_id = ANY(%s) AND {condition}
            """,
            [partition, sorted(of_partition), *values],
        )
        partners.update(row[0] for row in found)
    return partners


def _of_calls(connection: Connection, messages: Iterable[StoredMessage]) -> set[int]:
    """The results of open calls, and the callers of results."""
    partners: set[int] = set()
    for each in messages:
        tool = each.role is Role.TOOL
        partners.update(_caller(connection, each) if tool else _results(connection, each))
    return partners


def _results(connection: Connection, caller: StoredMessage) -> list[int]:
    """The tool results whose call a message made."""
    found = rows(
        connection,
        f"""
        SELECT {COLUMNS} FROM messages m
        WHERE m.partition = %s AND m.tool_call_id = ANY(%s) AND m.instance = %s
        AND m.conversation_id IS NOT DISTINCT FROM %s AND (m.created_at, m.id) > (%s, %s)
        """,
        [
            caller.partition,
            [call.id for call in caller.tool_calls],
            caller.instance,
            caller.conversation_id,
            to_epoch_ms(caller.created_at),
            caller.id,
        ],
    )
    # The id may be used again later: a result belongs to the nearest call before it.
    results = (to_message(row) for row in found)
    return [each.id for each in results if _caller(connection, each) == [caller.id]]


def _caller(connection: Connection, result: StoredMessage) -> list[int]:
    """The nearest message before a tool result that made its call."""
    condition, values = one_thread(result.conversation_id)
    found = rows(
        connection,
        f"""
        SELECT m.id FROM messages m WHERE m.partition = %s AND m.instance = %s AND {condition}
        AND (m.created_at, m.id) < (%s, %s) AND strpos(m.tool_calls, %s) > 0
        ORDER BY m.created_at DESC, m.id DESC LIMIT 1
        """,
        [
            result.partition,
            result.instance,
            *values,
            to_epoch_ms(result.created_at),
            result.id,
            json.dumps(result.tool_call_id, ensure_ascii=False),
        ],
    )
    return [row[0] for row in found]


def one_thread(conversation_id: str | None) -> tuple[str, list[str]]:
    """The condition on ``messages m`` that keeps to one thread of an instance."""
    if conversation_id is None:
        return "m.conversation_id IS NULL", []
    return "m.conversation_id = %s", [conversation_id]


def awaiting(
    connection: Connection, table: str, scope: Scope, limit: int, *, newest: bool = False
) -> list[StoredMessage]:
    """Messages without vectors as they came in, the last ones first if ``newest``.

    :param table: ``pending``, or ``rebuilding`` for the model that is being built.
    """
    condition, values = where_scope(scope)
    # The partition of the list itself, so that its key is walked through in order.
    if scope.partition is not None:
        condition, values = f"p.partition = %s AND {condition}", [scope.partition, *values]
    order = "DESC" if newest else "ASC"
    found = rows(
        connection,
        f"""
        SELECT {COLUMNS} FROM {table} p
        JOIN messages m ON m.partition = p.partition AND m.id = p.message_id
        WHERE {condition} ORDER BY p.message_id {order} LIMIT %s
        """,
        [*values, limit],
    )
    return [to_message(row) for row in found]


def awaiting_count(connection: Connection, table: str, scope: Scope) -> int:
    """How many messages of a scope have no vectors yet."""
    condition, values = where_scope(Scope(scope.partition), "p")
    join = ""
    if scope.instance is not None:
        join = "JOIN messages m ON m.partition = p.partition AND m.id = p.message_id"
        condition, values = f"{condition} AND m.instance = %s", [*values, scope.instance]
    return number(connection, f"SELECT count(*) FROM {table} p {join} WHERE {condition}", values)


def find(connection: Connection, scope: Scope, where: Filter) -> Keys:
    """Return the keys of messages in order of time."""
    order = "ORDER BY m.created_at, m.id"
    if where.text or scope.partition is None:
        return Keys(_stream(connection, "m.partition, m.id", scope, where, order))
    condition, bound = conditions(scope, where)
    columns = arrays(
        connection,
        {"ids": ("t.id", "i8")},
        f"FROM (SELECT m.id FROM messages m WHERE {condition} {order}) t",
        bound,
    )
    return Keys((scope.partition, number) for number in columns["ids"].tolist())


def threads(connection: Connection, scope: Scope, where: Filter) -> "dict[ThreadName, array[int]]":
    """The ids of messages by their thread, threads and messages in order of time."""
    found: dict[ThreadName, array[int]] = {}
    names = "m.id, m.partition, m.instance, m.conversation_id"
    streamed = _stream(connection, names, scope, where, "ORDER BY m.created_at, m.id")
    for each, partition, instance, conversation in streamed:
        found.setdefault((partition, instance, conversation), array("q")).append(each)
    return found


def newest_instance(connection: Connection, partition: str) -> str | None:
    """The instance of a partition that was written to last, but for documents."""
    condition, bound = conditions(Scope(partition), Filter(documents=False))
    found = rows(
        connection,
        f"""
        SELECT m.instance FROM messages m WHERE {condition}
        ORDER BY m.created_at DESC, m.id DESC LIMIT 1
        """,
        bound,
    )
    return found[0][0] if found else None


def places(connection: Connection) -> list[tuple[str, str, int]]:
    """(partition, instance, messages), the fullest first."""
    return rows(
        connection,
        "SELECT partition, instance, count(*) FROM messages GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2",
    )


def conversation(
    connection: Connection, partition: str, instance: str, name: str
) -> Conversation | None:
    """What an import told of a conversation."""
    found = rows(
        connection,
        f"""
        SELECT {CONVERSATION_COLUMNS} FROM conversations
        WHERE partition = %s AND instance = %s AND id = %s
        """,
        [partition, instance, name],
    )
    return Conversation(*found[0]) if found else None


def starting_with(connection: Connection, field: IdField, prefix: str, scope: Scope) -> list[str]:
    """Return the first ids of a scope that start with a prefix."""
    condition, values = where_scope(scope)
    found = rows(
        connection,
        f"""
        SELECT DISTINCT m.{field} FROM messages m
        WHERE {condition} AND m.{field} >= %s AND m.{field} < %s ORDER BY 1 LIMIT {IDS_SHOWN}
        """,
        [*values, prefix, prefix + LAST_CHARACTER],
    )
    return [row[0] for row in found]


def titles(
    connection: Connection, partition: str, numbers: Sequence[str]
) -> dict[tuple[str, str | None], str]:
    """The titles of conversations by (instance, number); some have none."""
    found = rows(
        connection,
        """
        SELECT instance, id, title FROM conversations
        WHERE partition = %s AND title IS NOT NULL AND id = ANY(%s)
        """,
        [partition, list(numbers)],
    )
    return {(instance, number): title for instance, number, title in found}


def place_summaries(connection: Connection, scope: Scope) -> list[PlaceSummary]:
    """The instances of each partition, in order of their names."""
    condition, values = where_scope(scope)
    return [
        PlaceSummary(partition, instance, count, size, from_epoch_ms(first), from_epoch_ms(last))
        for partition, instance, count, size, first, last in rows(
            connection,
            f"""
            SELECT m.partition, m.instance, count(*),
            sum(octet_length(m.content) + coalesce(octet_length(m.tool_calls), 0))::bigint,
            min(m.created_at), max(m.created_at)
            FROM messages m WHERE {condition} GROUP BY 1, 2 ORDER BY 1, 2
            """,
            values,
        )
    ]


def conversations(connection: Connection, scope: Scope) -> list[ConversationSummary]:
    """The conversations of a scope that have messages, in order of their first ones."""
    condition, values = where_scope(scope)
    return [
        ConversationSummary(
            partition,
            instance,
            Conversation(*about),
            messages=count,
            first=from_epoch_ms(first),
            last=from_epoch_ms(last),
            question=question,
        )
        for partition, instance, *about, count, first, last, question in rows(
            connection,
            f"""
            SELECT t.partition, t.instance, t.conversation_id, c.title, c.source, c.model,
            c.project, c.branch,
            t.messages, t.first, t.last,
            CASE WHEN c.title IS NULL THEN substr(q.content, 1, {QUESTION_LENGTH}) END
            FROM (
                SELECT m.partition, m.instance, m.conversation_id, count(*) AS messages,
                min(m.created_at) AS first, max(m.created_at) AS last, min(m.id) AS id,
                min(m.id) FILTER (WHERE m.role = 'user') AS question
                FROM messages m WHERE {condition} AND m.conversation_id IS NOT NULL
                GROUP BY 1, 2, 3
            ) t LEFT JOIN conversations c
            ON c.partition = t.partition AND c.instance = t.instance AND c.id = t.conversation_id
            LEFT JOIN messages q ON q.partition = t.partition AND q.id = t.question
            ORDER BY t.first, t.id
            """,
            values,
        )
    ]


def runs(connection: Connection, since: int) -> list[dict[str, Any]]:
    """The records of contexts that were built since a moment, oldest first."""
    cursor = connection.execute(
        "SELECT * FROM context_runs WHERE at >= %s ORDER BY id, partition", [since]
    )
    names = [column.name for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def holdings(connection: Connection) -> dict[str, int]:
    """How much of each kind the store holds."""
    counts = {
        "messages": "SELECT count(*) FROM messages",
        "conversations": "SELECT count(*) FROM conversations",
        "embedded": "SELECT count(DISTINCT (partition, message_id)) FROM embeddings",
        "pending": "SELECT count(*) FROM pending",
        "synapses": "SELECT count(*) FROM synapses",
        "tokens": "SELECT sum(tokens) FROM messages",
    }
    return {name: number(connection, sql) for name, sql in counts.items()}
