"""SQL conditions on ``messages m`` for scopes, filters and threads, with their values."""

from itertools import chain

from reservoir_cli.message_filter import Filter
from reservoir_cli.messages import DOCUMENT_SOURCES, Scope, to_epoch_ms
from reservoir_cli.storage import tag_and_pin_rows
from reservoir_cli.storage.portable_sql import Condition, Connection, placeholders

_ABOUT_PROJECT = """EXISTS (
    SELECT 1 FROM conversations c WHERE c.partition = m.partition AND c.instance = m.instance
    AND c.id = m.conversation_id AND c.project = ?
)"""
_IN_SESSION = (
    # The range from the session's id to all ids below it, for the index; "0" follows "/".
    "(m.conversation_id >= ? AND m.conversation_id < ? "
    "AND (m.conversation_id = ? OR m.conversation_id > ?))"
)


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
