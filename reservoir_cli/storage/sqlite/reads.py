"""Every read of the store but the vectors: small functions from a connection to values."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from reservoir_cli.chat.tool_calls import unpaired
from reservoir_cli.errors import StoreCorruptError
from reservoir_cli.messages import (
    DOCUMENT_SOURCES,
    Role,
    Scope,
    StoredMessage,
    call_from_dict,
    call_text,
    from_epoch_ms,
    to_epoch_ms,
)
from reservoir_cli.storage.records import Filter, IdField

Value = TypeVar("Value")

COLUMNS = (
    "m.id, m.trace_id, m.conversation_id, m.partition, m.instance, m.role, m.content, m.name, "
    "m.tool_calls, m.tool_call_id, m.created_at, m.source, m.source_id, m.tokens, m.counter, "
    "m.secrets"
)
IN_SESSION = "(m.conversation_id = ? OR (m.conversation_id > ? AND m.conversation_id < ?))"
#: What is known of a conversation, in the order of :class:`~reservoir_cli.messages.Conversation`.
CONVERSATION_COLUMNS = "id, title, source, model, project, branch"
ABOUT_PROJECT = """EXISTS (
    SELECT 1 FROM conversations c WHERE c.partition = m.partition AND c.instance = m.instance
    AND c.id = m.conversation_id AND c.project = ?
)"""
#: No text of a message or a name goes on with a character behind it.
LAST_CHARACTER = "\U0010ffff"
#: Ids that are read for a prefix: enough to show that it is ambiguous.
IDS_SHOWN = 10
#: Characters of a first question that are read for a title.
QUESTION_LENGTH = 2_000
#: What every message has of them as text. SQLite keeps whatever type a damaged row says.
_texts = itemgetter(1, 3, 4, 6, 11, 12, 14)
#: SQLite takes 32,766 values in one statement; we stay far below.
_AT_ONCE = 5_000


def where_scope(scope: Scope) -> tuple[str, list[str]]:
    """The condition on ``messages m`` that keeps a statement inside a scope."""
    if scope.partition is None:
        return "1", []
    if scope.instance is None:
        return "m.partition = ?", [scope.partition]
    return "m.partition = ? AND m.instance = ?", [scope.partition, scope.instance]


def conditions(scope: Scope, where: Filter) -> tuple[str, list[str | int]]:
    """The condition on ``messages m`` that a scope and a filter make, and the values it takes."""
    in_scope, values = where_scope(scope)
    parts: list[str] = [in_scope]
    bound: list[str | int] = [*values]
    for condition, value in (
        ("m.role = ?", where.role),
        ("m.trace_id = ?", where.trace_id),
        ("m.conversation_id = ?", where.conversation_id),
        ("m.source = ?", where.source),
        (ABOUT_PROJECT, where.project),
        ("m.created_at >= ?", to_epoch_ms(where.since) if where.since else None),
        ("m.created_at <= ?", to_epoch_ms(where.until) if where.until else None),
        ("holds(m.content, m.tool_calls, ?)", where.text.casefold() if where.text else None),
    ):
        if value is not None:
            parts.append(condition)
            bound.append(value)
    if where.session is not None:
        parts.append(IN_SESSION)
        bound += [where.session, f"{where.session}/", f"{where.session}0"]  # "0" follows "/"
    if where.secrets:
        parts.append("m.secrets NOT NULL")
    if not where.documents:
        parts.append(f"m.source NOT IN ({marks(DOCUMENT_SOURCES)})")
        bound += DOCUMENT_SOURCES
    return " AND ".join(parts), bound


def holds(content: str, tool_calls: str | None, text: str) -> bool:
    """Whether a message says a text; an SQL function on every connection.

    SQLite's own comparisons ignore case in ASCII only.

    :param text: casefolded.
    """
    if text in content.casefold():
        return True
    calls = json.loads(tool_calls) if tool_calls else []
    return any(text in call_text(call_from_dict(each)).casefold() for each in calls)


def one_thread(conversation_id: str | None) -> tuple[str, str, list[str]]:
    """How to read one thread of a partition and instance.

    :returns: an index of ``messages``, a condition on ``messages m``, and the values it takes. The
        index is to be named: the planner would walk through all other threads of the instance.
    """
    if conversation_id is None:
        return "messages_by_instance", "m.conversation_id IS NULL", []
    return "messages_by_conversation", "m.conversation_id = ?", [conversation_id]


def to_message(row: Sequence[Any]) -> StoredMessage:
    """A row of :data:`COLUMNS` as a value.

    :raises StoreCorruptError: it holds what no message can hold: the file was damaged.
    """
    try:
        texts = _texts(row)
        if {*map(type, texts)} != {str} or any("\0" in each for each in texts):
            raise ValueError("what is to be a text is none")
        calls = json.loads(row[8]) if row[8] else ()
        return StoredMessage(
            id=row[0],
            trace_id=row[1],
            conversation_id=row[2],
            partition=row[3],
            instance=row[4],
            role=Role(row[5]),
            content=row[6],
            name=row[7],
            tool_calls=tuple(call_from_dict(call) for call in calls),
            tool_call_id=row[9],
            created_at=from_epoch_ms(row[10]),
            source=row[11],
            source_id=row[12],
            tokens=row[13],
            counter=row[14],
            secrets=tuple(row[15].split()) if row[15] else (),
        )
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise StoreCorruptError(
            f"the store is corrupt: message {row[0]} cannot be read",
            hint="reservoir doctor says what else; the message is in a backup",
        ) from error


def last(
    connection: sqlite3.Connection, scope: Scope, count: int, where: Filter
) -> list[StoredMessage]:
    """The newest messages of a scope, oldest first; all when ``count`` is 0."""
    condition, bound = conditions(scope, where)
    # Named, for the planner would walk through the whole scope to save itself the sorting.
    index = ""
    if scope.partition is not None and where.trace_id is not None:
        index = "INDEXED BY messages_by_trace"
    elif scope.partition is not None and where.conversation_id is not None:
        index = "INDEXED BY messages_by_conversation"
    rows = connection.execute(
        f"""
        SELECT {COLUMNS} FROM messages m {index} WHERE {condition}
        ORDER BY m.created_at DESC, m.id DESC LIMIT ?
        """,
        [*bound, count or -1],
    ).fetchall()
    return [to_message(row) for row in reversed(rows)]


def starting_with(
    connection: sqlite3.Connection, field: IdField, prefix: str, scope: Scope
) -> list[str]:
    """Return the first ids of a scope that start with a prefix."""
    condition, values = where_scope(scope)
    rows = connection.execute(
        f"""
        SELECT DISTINCT m.{field} FROM messages m
        WHERE {condition} AND m.{field} >= ? AND m.{field} < ? ORDER BY 1 LIMIT {IDS_SHOWN}
        """,
        [*values, prefix, prefix + LAST_CHARACTER],
    )
    return [row[0] for row in rows]


def by_id(connection: sqlite3.Connection, ids: Sequence[int], scope: Scope) -> list[StoredMessage]:
    """These messages, where they are in the scope, oldest first."""
    condition, values = where_scope(scope)
    found = []
    for some in portions(ids):
        found += connection.execute(
            # By their ids: for many of them the planner would rather walk through the partition.
            f"""
            SELECT {COLUMNS} FROM messages m NOT INDEXED
            WHERE m.id IN ({marks(some)}) AND {condition}
            """,
            [*some, *values],
        ).fetchall()
    return sorted((to_message(row) for row in found), key=lambda each: (each.created_at, each.id))


def with_partners(
    connection: sqlite3.Connection, ids: Sequence[int], scope: Scope
) -> list[StoredMessage]:
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


def _of_traces(
    connection: sqlite3.Connection, messages: Iterable[StoredMessage], scope: Scope
) -> set[int]:
    condition, values = where_scope(scope)
    partners: set[int] = set()
    traces: dict[str, set[str]] = {}
    for each in messages:
        traces.setdefault(each.partition, set()).add(each.trace_id)
    for partition, of_partition in traces.items():
        for some in portions(sorted(of_partition)):
            rows = connection.execute(
                f"""
                SELECT m.id FROM messages m INDEXED BY messages_by_trace
                WHERE m.partition = ? AND m.trace_id IN ({marks(some)}) AND {condition}
                """,
                [partition, *some, *values],
            )
            partners.update(row[0] for row in rows)
    return partners


def _of_calls(connection: sqlite3.Connection, messages: Iterable[StoredMessage]) -> set[int]:
    """The results of open calls, and the callers of results."""
    partners: set[int] = set()
    for each in messages:
        tool = each.role is Role.TOOL
        partners.update(_caller(connection, each) if tool else _results(connection, each))
    return partners


def _results(connection: sqlite3.Connection, caller: StoredMessage) -> list[int]:
    """The tool results whose call a message made."""
    called = [call.id for call in caller.tool_calls]
    rows = connection.execute(
        f"""
        SELECT {COLUMNS} FROM messages m INDEXED BY messages_by_tool_call
        WHERE m.partition = ? AND m.tool_call_id IN ({marks(called)})
        AND m.instance = ? AND m.conversation_id IS ? AND (m.created_at, m.id) > (?, ?)
        """,
        [
            caller.partition,
            *called,
            caller.instance,
            caller.conversation_id,
            to_epoch_ms(caller.created_at),
            caller.id,
        ],
    ).fetchall()
    # The id may be used again later: a result belongs to the nearest call before it.
    results = (to_message(row) for row in rows)
    return [each.id for each in results if _caller(connection, each) == [caller.id]]


def _caller(connection: sqlite3.Connection, result: StoredMessage) -> list[int]:
    """The nearest message before a tool result that made its call."""
    index, condition, values = one_thread(result.conversation_id)
    rows = connection.execute(
        f"""
        SELECT m.id FROM messages m INDEXED BY {index}
        WHERE m.partition = ? AND m.instance = ? AND {condition}
        AND (m.created_at, m.id) < (?, ?) AND m.tool_calls IS NOT NULL
        AND instr(m.tool_calls, ?) ORDER BY m.created_at DESC, m.id DESC LIMIT 1
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
    return [row[0] for row in rows]


def pending(
    connection: sqlite3.Connection, scope: Scope, limit: int, *, newest: bool
) -> list[StoredMessage]:
    """Messages without vectors as they came in, the last ones first if ``newest``.

    Not by their times: to sort a backlog of a million for each batch would take hours in all.
    """
    condition, values = where_scope(scope)
    order = "DESC" if newest else "ASC"
    rows = connection.execute(
        f"""
        SELECT {COLUMNS} FROM pending p CROSS JOIN messages m ON m.id = p.message_id
        WHERE {condition} ORDER BY p.message_id {order} LIMIT ?
        """,
        [*values, limit],
    )
    return [to_message(row) for row in rows]


def pending_count(connection: sqlite3.Connection, scope: Scope) -> int:
    """How many messages of a scope have no vectors yet."""
    condition, values = where_scope(scope)
    join = "CROSS JOIN messages m ON m.id = p.message_id" if values else ""
    row = connection.execute(f"SELECT COUNT(*) FROM pending p {join} WHERE {condition}", values)
    return int(row.fetchone()[0])


def still_pending(
    connection: sqlite3.Connection, ids: Sequence[int], table: str = "pending"
) -> set[int]:
    """Those of these messages that have no vectors yet.

    :param table: ``rebuilding`` for the model that is being built.
    """
    found: set[int] = set()
    for some in portions(ids):
        rows = connection.execute(
            f"SELECT message_id FROM {table} WHERE message_id IN ({marks(some)})", some
        )
        found.update(row[0] for row in rows)
    return found


def newest_instance(connection: sqlite3.Connection, partition: str) -> str | None:
    """The instance of a partition that was written to last, but for documents."""
    condition, bound = conditions(Scope(partition), Filter(documents=False))
    row = connection.execute(
        f"""
        SELECT m.instance FROM messages m WHERE {condition}
        ORDER BY m.created_at DESC, m.id DESC LIMIT 1
        """,
        bound,
    ).fetchone()
    return row[0] if row else None


def places(connection: sqlite3.Connection) -> list[tuple[str, str, int]]:
    """(partition, instance, messages), the fullest first."""
    return connection.execute(
        "SELECT partition, instance, COUNT(*) FROM messages GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2"
    ).fetchall()


def marks(values: Sequence[object]) -> str:
    """A placeholder for each value."""
    return ", ".join("?" * len(values))


def portions(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Values in portions that one statement can take."""
    for start in range(0, len(values), _AT_ONCE):
        yield values[start : start + _AT_ONCE]


def runs(connection: sqlite3.Connection, since: int) -> list[dict[str, Any]]:
    """The records of contexts that were built since a moment, oldest first."""
    cursor = connection.execute("SELECT * FROM context_runs WHERE at >= ? ORDER BY id", [since])
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def holdings(connection: sqlite3.Connection) -> dict[str, int]:
    """How much of each kind the store holds."""
    counts = {
        "messages": "SELECT COUNT(*) FROM messages",
        "conversations": "SELECT COUNT(*) FROM conversations",
        "embedded": "SELECT COUNT(DISTINCT message_id) FROM embeddings",
        "pending": "SELECT COUNT(*) FROM pending",
        "synapses": "SELECT COUNT(*) FROM synapses",
        "tokens": "SELECT coalesce(SUM(tokens), 0) FROM messages",
    }
    return {name: int(connection.execute(sql).fetchone()[0]) for name, sql in counts.items()}
