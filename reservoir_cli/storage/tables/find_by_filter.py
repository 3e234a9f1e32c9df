"""Find the messages of a scope that match a filter."""

import json
from array import array
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from reservoir_cli.messages import (
    DOCUMENT_SOURCES,
    EVERYTHING,
    ConversationName,
    Filter,
    Scope,
    StoredMessage,
    call_from_dict,
    call_text,
    to_epoch_ms,
)
from reservoir_cli.storage.keys import Keys
from reservoir_cli.storage.portable_sql import (
    NO_LIMIT,
    Condition,
    Connection,
    decoding,
    placeholders,
    where_scope,
)
from reservoir_cli.storage.tables import rows_of_tags_and_pins
from reservoir_cli.storage.tables.reads import COLUMNS, to_message
from reservoir_cli.util.unicode_text import fold

_ABOUT_PROJECT = """EXISTS (
    SELECT 1 FROM conversations c WHERE c.partition = m.partition AND c.instance = m.instance
    AND c.id = m.conversation_id AND c.project = ?
)"""
_IN_SESSION = (
    # The range from the session's id to all ids below it, for the index; "0" follows "/".
    "(m.conversation_id >= ? AND m.conversation_id < ? "
    "AND (m.conversation_id = ? OR m.conversation_id > ?))"
)


def last(
    connection: Connection, scope: Scope, count: int, where: Filter = EVERYTHING
) -> list[StoredMessage]:
    """Return the newest messages of a scope, oldest first; all when ``count`` is 0."""
    order = _order(where, "DESC")
    rows = list(_stream(connection, COLUMNS, scope, where, order, count or None))
    return rows_of_tags_and_pins.attach(connection, [to_message(row) for row in reversed(rows)])


def find(connection: Connection, scope: Scope, where: Filter = EVERYTHING) -> Keys:
    """Return the keys of messages in order of time."""
    order = _order(where)
    if where.text or scope.partition is None:
        return Keys(_stream(connection, "m.partition, m.id", scope, where, order))
    condition, bound = conditions(connection, scope, where)
    # Few messages have a pin or a tag: look them up by id instead of scanning the scope.
    hint = connection.index_hint(None) if where.pinned or where.tag else ""
    ids = connection.numbers(
        "t.id", f"FROM (SELECT m.id FROM messages m {hint} WHERE {condition} {order}) t", bound
    )
    return Keys((scope.partition, message_id) for message_id in ids)


def ids_by_conversation(
    connection: Connection, scope: Scope, where: Filter = EVERYTHING
) -> "dict[ConversationName, array[int]]":
    """Return the ids of messages by their conversation, both in order of time."""
    ids: dict[ConversationName, array[int]] = {}
    columns = "m.id, m.partition, m.instance, m.conversation_id"
    for message_id, *name in _stream(connection, columns, scope, where, _order(where)):
        ids.setdefault(tuple(name), array("q")).append(message_id)
    return ids


def _order(where: Filter, direction: str = "ASC") -> str:
    """Return the clause that sorts messages by time.

    The sign keeps SQLite from reading the whole scope by an index on times, only to avoid sorting
    a few messages.
    """
    is_narrow = where.trace_id or where.conversation_id or where.session
    sign = "+" if is_narrow else ""
    return f"ORDER BY {sign}m.created_at {direction}, m.id {direction}"


def conditions(connection: Connection, scope: Scope, where: Filter) -> Condition:
    """Return the condition on ``messages m`` for a scope and a filter, except the filter's text."""
    terms = [where_scope(scope)]
    for condition, value in (
        ("m.role = ?", where.role),
        ("m.trace_id = ?", where.trace_id),
        ("m.conversation_id = ?", where.conversation_id),
        ("m.source = ?", where.source),
        (_ABOUT_PROJECT, where.project),
        ("m.created_at >= ?", to_epoch_ms(where.since) if where.since else None),
        ("m.created_at <= ?", to_epoch_ms(where.until) if where.until else None),
    ):
        if value is not None:
            terms.append((condition, [value]))
    if where.session is not None:
        bounds = [where.session, f"{where.session}0", where.session, f"{where.session}/"]
        terms.append((_IN_SESSION, bounds))
    if where.tag is not None:
        terms.append(
            rows_of_tags_and_pins.where_in("tags", scope.partition, "t.name = ?", [where.tag])
        )
    if where.pinned:
        terms.append(rows_of_tags_and_pins.where_in("pins", scope.partition))
    if where.secrets:
        terms.append(("m.secrets IS NOT NULL", []))
    if not where.documents:
        excluded = f"m.source NOT IN ({placeholders(DOCUMENT_SOURCES)})"
        terms.append((excluded, list(DOCUMENT_SOURCES)))
    texts, values = zip(*terms, strict=True)
    return " AND ".join(texts), list(chain(*values))


def _stream(
    connection: Connection,
    columns: str,
    scope: Scope,
    where: Filter,
    order: str,
    count: int | None = None,
) -> Iterator[Any]:
    condition, bound = conditions(connection, scope, where)
    if not where.text:
        sql = f"SELECT {columns} FROM messages m WHERE {condition} {order} LIMIT ?"
        yield from connection.stream(sql, [*bound, count or NO_LIMIT])
        return
    sql = f"SELECT m.content, m.tool_calls, {columns} FROM messages m WHERE {condition}"
    text = fold(where.text)
    rows = (
        row[2:]
        for row in connection.stream(f"{sql} {order}", bound)
        if _contains_text(row[0], row[1], text)
    )
    yield from islice(rows, count)


def _contains_text(content: str, tool_calls: str | None, text: str) -> bool:
    with decoding("texts of messages"):
        if text in fold(content):
            return True
        calls = json.loads(tool_calls) if tool_calls else []
        return any(text in fold(call_text(call_from_dict(call))) for call in calls)
