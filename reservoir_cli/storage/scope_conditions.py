"""SQL conditions that select a scope, or one thread of it, with their values."""

from reservoir_cli.messages import Scope
from reservoir_cli.storage.portable_sql import Condition


def where_scope(scope: Scope, table: str = "m") -> Condition:
    """Return the condition that restricts a table to a scope."""
    if scope.partition is None:
        return "true", []
    if scope.instance is None:
        return f"{table}.partition = ?", [scope.partition]
    return f"{table}.partition = ? AND {table}.instance = ?", [scope.partition, scope.instance]


def where_thread(conversation_id: str | None) -> Condition:
    """Return the condition that selects one thread of a partition and instance."""
    if conversation_id is None:
        return "m.conversation_id IS NULL", []
    return "m.conversation_id = ?", [conversation_id]
