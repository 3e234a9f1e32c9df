"""SQL conditions that select a scope, or one thread of it, with their values."""

from reservoir_cli.messages import Scope
from reservoir_cli.storage.portable_sql import Condition, Connection


def where_scope(scope: Scope, table: str = "m") -> Condition:
    """Return the condition that restricts a table to a scope."""
    if scope.partition is None:
        return "true", []
    if scope.instance is None:
        return f"{table}.partition = ?", [scope.partition]
    return f"{table}.partition = ? AND {table}.instance = ?", [scope.partition, scope.instance]


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
