"""The filter of messages, and its SQL: conditions on ``messages m`` and their values."""

import json
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Literal

from reservoir_cli.messages import (
    DOCUMENT_SOURCES,
    Scope,
    call_from_dict,
    call_text,
    check_text,
    check_time,
    to_epoch_ms,
)
from reservoir_cli.storage import tag_and_pin_rows
from reservoir_cli.storage.portable_sql import Condition, Connection, decoding, placeholders
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


#: The conditions that are texts.
_TEXTS = "role trace_id conversation_id text source project tag session".split()
#: The text ids that may be abbreviated to a prefix.
IdField = Literal["trace_id", "conversation_id"]


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on the messages of a scope; ``None`` matches every message.

    :param text: a literal text in their content or tool calls; case is ignored.
    :param session: the id of their conversation, or its beginning up to a slash: sub-agents
        append a slash and an id of their own.
    :param source: the tool they came from.
    :param project: the folder that their conversation was about.
    :param tag: a tag that a person gave them.
    :param pinned: only pinned messages.
    :param secrets: only messages in which secrets were found.
    :param documents: whether to include the documents of an ingested folder.
    :raises UsageError: a text is something else, or a time has no zone.
    """

    role: str | None = None
    trace_id: str | None = None
    conversation_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None
    source: str | None = None
    project: str | None = None
    tag: str | None = None
    pinned: bool = False
    secrets: bool = False
    documents: bool = True
    session: str | None = None

    def __post_init__(self) -> None:
        for name in _TEXTS:
            if (value := getattr(self, name)) is not None:
                check_text(name, value)
        for name in ("since", "until"):
            if (value := getattr(self, name)) is not None:
                check_time(name, value)


#: The filter that every message matches.
EVERYTHING = Filter()


def where_scope(scope: Scope, table: str = "m") -> Condition:
    """Return the condition that restricts a table to a scope."""
    if scope.partition is None:
        return "true", []
    if scope.instance is None:
        return f"{table}.partition = ?", [scope.partition]
    return f"{table}.partition = ? AND {table}.instance = ?", [scope.partition, scope.instance]


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
        terms.append(tag_and_pin_rows.where_tagged(connection, scope.partition, where.tag))
    if where.pinned:
        terms.append(tag_and_pin_rows.where_pinned(connection, scope.partition))
    if where.secrets:
        terms.append(("m.secrets IS NOT NULL", []))
    if not where.documents:
        excluded = f"m.source NOT IN ({placeholders(DOCUMENT_SOURCES)})"
        terms.append((excluded, list(DOCUMENT_SOURCES)))
    texts, values = zip(*terms, strict=True)
    return " AND ".join(texts), list(chain(*values))


def contains_text(content: str, tool_calls: str | None, text: str) -> bool:
    """Return whether a message contains a text, ignoring case alike for both databases.

    :param text: the case-folded text.
    """
    with decoding("texts of messages"):
        if text in fold(content):
            return True
        calls = json.loads(tool_calls) if tool_calls else []
        return any(text in fold(call_text(call_from_dict(call))) for call in calls)


def where_thread(connection: Connection, conversation_id: str | None) -> tuple[str, str, list[str]]:
    """Return the SQL that selects one thread of a partition and instance.

    :returns: an index hint, a condition on ``messages m``, and its values. Without the hint
        SQLite would scan all other threads of the instance.
    """
    if conversation_id is None:
        hint = connection.index_hint("messages_by_instance")
        return hint, "m.conversation_id IS NULL", []
    hint = connection.index_hint("messages_by_conversation")
    return hint, "m.conversation_id = ?", [conversation_id]
