"""Writing messages: the row, its full text, and that its vector is still to come."""

import json
import sqlite3
import uuid
from collections.abc import Sequence
from typing import Any

from reservoir_cli.messages import (
    Message,
    Scope,
    StoredMessage,
    call_to_dict,
    clean_text,
    parse_role,
    plain_text,
    to_epoch_ms,
)
from reservoir_cli.store import fulltext, queries
from reservoir_cli.tokens import TokenCounter, counter_id


def add(
    connection: sqlite3.Connection,
    scope: Scope,
    messages: Sequence[Message],
    counter: TokenCounter,
    now_ms: int,
    *,
    pair: bool,
) -> list[StoredMessage | None]:
    """Store messages in a partition and instance; call it inside a write transaction.

    :param now_ms: the time of messages without one, but never before the instance's newest.
    :param pair: an assistant message without a trace id answers the newest open question.
    :returns: one entry a message; ``None`` where its source id was there already.
    """
    scope_keys = fulltext.scope_keys(str(scope.partition), str(scope.instance))
    counted_by = counter_id(counter)
    newest = max(now_ms, _newest_time(connection, scope))
    added: list[StoredMessage | None] = []
    for each in messages:
        trace_id = each.trace_id
        if trace_id is None and pair and each.role == "assistant":
            trace_id = _open_question(connection, scope)
        text = clean_text(plain_text(each))
        moment = to_epoch_ms(each.created_at) if each.created_at else newest
        newest = max(newest, moment)
        row = (
            *map(_storable, _row(scope, each, trace_id, moment)),
            counter.count(text),
            counted_by,
        )
        number = _insert(connection, row, text, scope_keys)
        added.append(None if number is None else queries.to_message((number, *row)))
    return added


def _row(scope: Scope, message: Message, trace_id: str | None, moment: int) -> tuple[Any, ...]:
    calls = [call_to_dict(call) for call in message.tool_calls]
    return (
        trace_id or str(uuid.uuid4()),
        message.conversation_id,
        scope.partition,
        scope.instance,
        parse_role(message.role).value,
        message.content,
        message.name,
        json.dumps(calls, ensure_ascii=False) if calls else None,
        message.tool_call_id,
        moment,
        message.source or "python",
        message.source_id or str(uuid.uuid4()),
    )


def _insert(
    connection: sqlite3.Connection, row: tuple[Any, ...], text: str, scope_keys: str
) -> int | None:
    """Write one message; ``None`` if its source id is there already."""
    inserted = connection.execute(
        """
        INSERT INTO messages (trace_id, conversation_id, partition, instance, role, content,
        name, tool_calls, tool_call_id, created_at, source, source_id, tokens, counter,
        terms, asks) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (partition, instance, source, source_id) DO NOTHING RETURNING id
        """,
        (*row, fulltext.count_terms(text), fulltext.asks(text)),
    ).fetchone()
    if inserted is None:
        return None
    number = int(inserted[0])
    connection.execute(
        "INSERT INTO messages_fts (rowid, text, scope) VALUES (?, ?, ?)",
        (number, fulltext.indexed_text(text), scope_keys),
    )
    connection.execute("INSERT INTO pending (message_id) VALUES (?)", (number,))
    return number


def _storable(value: Any) -> Any:
    return clean_text(value) if isinstance(value, str) else value


def _newest_time(connection: sqlite3.Connection, scope: Scope) -> int:
    row = connection.execute(
        "SELECT MAX(created_at) FROM messages WHERE partition = ? AND instance = ?",
        (scope.partition, scope.instance),
    ).fetchone()
    return int(row[0] or 0)


def _open_question(connection: sqlite3.Connection, scope: Scope) -> str | None:
    """The trace of the newest user message without a reply, among the last thousand."""
    row = connection.execute(
        """
        SELECT q.trace_id FROM (
            SELECT trace_id, created_at, id FROM messages
            WHERE partition = :partition AND instance = :instance AND role = 'user'
            ORDER BY created_at DESC, id DESC LIMIT 1000
        ) q WHERE NOT EXISTS (
            SELECT 1 FROM messages r WHERE r.partition = :partition
            AND r.trace_id = q.trace_id AND r.role = 'assistant'
        ) ORDER BY q.created_at DESC, q.id DESC LIMIT 1
        """,
        {"partition": scope.partition, "instance": scope.instance},
    ).fetchone()
    return row[0] if row else None
