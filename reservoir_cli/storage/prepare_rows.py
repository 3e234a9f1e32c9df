"""Prepare the rows of new messages, and link replies to their questions."""

import json
import uuid
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from reservoir_cli.messages import (
    DOCUMENT_SOURCES,
    LAST_MS,
    Message,
    Scope,
    StoredMessage,
    call_to_dict,
    check_name,
    clean_name,
    clean_text,
    parse_role,
    plain_text,
    searchable_text,
    to_epoch_ms,
)
from reservoir_cli.storage.portable_sql import Connection, placeholders
from reservoir_cli.storage.search import fulltext
from reservoir_cli.storage.tables.reads import to_message
from reservoir_cli.storage.tables.writes import find_present, join_kinds, source_of
from reservoir_cli.tokens import TokenCounter, counter_id
from reservoir_cli.util.clock import FAR_AHEAD
from reservoir_cli.util.unicode_text import has_question_mark

LATEST = 2**62  #: A time after that of every message.


class PreparedRows(NamedTuple):
    """Messages ready to be inserted."""

    added: list[StoredMessage | None]
    rows: list[tuple[Any, ...]]


def prepare(
    connection: Connection,
    scope: Scope,
    messages: Sequence[Message],
    counter: TokenCounter,
    now_ms: int,
    ids: Iterator[int],
    *,
    pair: bool,
) -> PreparedRows:
    """Build the rows of those messages that are not stored yet.

    :param now_ms: the time of messages without one; a reply is placed after its question.
    :param pair: whether an assistant message without a trace id answers the newest open question.
    """
    for name in (scope.partition, scope.instance):
        check_name(str(name))
    counted_by = counter_id(counter)
    sources = [source_of(message) for message in messages if message.source_id]
    present = set(find_present(connection, scope, sources))
    prepared = PreparedRows([], [])
    question_times: dict[str, int] = {}

    def moment_of(message: Message, trace_id: str | None) -> int:
        """Return a message's own time, else now, or 1 ms after a question that is in the future."""
        if message.created_at:
            return to_epoch_ms(message.created_at)
        question = None
        if trace_id and message.role in ("assistant", "tool"):
            question = question_times.get(trace_id) or _asked_at(connection, scope, trace_id)
        return now_ms if question is None or question <= now_ms else min(question + 1, LAST_MS)

    for message in messages:
        trace_id = message.trace_id
        if trace_id is None and pair and message.role == "assistant":
            trace_id = _open_question(connection, scope, now_ms)
        moment = moment_of(message, trace_id)
        if message.role == "user" and trace_id:
            question_times[trace_id] = moment
        row = _row(scope, message, trace_id, moment)
        if row[-2:] in present:
            prepared.added.append(None)
            continue
        present.add(row[-2:])
        tokens = counter.count(clean_text(plain_text(message)))
        row = (next(ids), *row, tokens, counted_by, join_kinds(message.secrets))
        text = clean_text(searchable_text(message))
        counts = fulltext.count_terms(text), int(has_question_mark(text))
        prepared.rows.append((*row, *counts, None))
        prepared.added.append(to_message(row))
    return prepared


def _row(scope: Scope, message: Message, trace_id: str | None, moment: int) -> tuple[Any, ...]:
    calls = [call_to_dict(call) for call in message.tool_calls]
    return (
        clean_name(trace_id) if trace_id else str(uuid.uuid4()),
        clean_name(message.conversation_id) if message.conversation_id else message.conversation_id,
        scope.partition,
        scope.instance,
        parse_role(message.role).value,
        clean_text(message.content),
        _clean(message.name),
        clean_text(json.dumps(calls, ensure_ascii=False)) if calls else None,
        _clean(message.tool_call_id),
        moment,
        *source_of(message),
    )


def _clean(text: str | None) -> str | None:
    return None if text is None else clean_text(text)


def _asked_at(connection: Connection, scope: Scope, trace_id: str) -> int | None:
    row = connection.execute(
        "SELECT MAX(created_at) FROM messages WHERE partition = ? AND trace_id = ? "
        "AND role = 'user'",
        (scope.partition, clean_name(trace_id)),
    ).fetchone()
    return None if row[0] is None else int(row[0])


def _open_question(connection: Connection, scope: Scope, now_ms: int) -> str | None:
    """Return the trace of the newest unanswered user message, among the last thousand."""
    no_documents = f"q.source NOT IN ({placeholders(DOCUMENT_SOURCES)})"
    for until in (now_ms + FAR_AHEAD // timedelta(milliseconds=1), LATEST):
        row = connection.execute(
            f"""
            SELECT q.trace_id FROM (
                SELECT trace_id, created_at, id, source FROM messages
                WHERE partition = ? AND instance = ? AND role = 'user' AND created_at <= ?
                ORDER BY created_at DESC, id DESC LIMIT 1000
            ) q WHERE {no_documents} AND NOT EXISTS (
                SELECT 1 FROM messages r WHERE r.partition = ?
                AND r.trace_id = q.trace_id AND r.role = 'assistant'
            ) ORDER BY q.created_at DESC, q.id DESC LIMIT 1
            """,
            [scope.partition, scope.instance, until, *DOCUMENT_SOURCES, scope.partition],
        ).fetchone()
        if row:
            return str(row[0])
    return None
