"""Find foreign code in a store's schema, which would run when the store is written to.

A trigger can prevent a message from being deleted, and a view or a generated column can return
values that were never stored. Foreign tables, indexes and statistics are harmless.
"""

import sqlite3

#: Our tables; those of the full-text index start with :data:`FULL_TEXT`.
TABLES = frozenset(
    "messages conversations embeddings pending properties synapses context_runs vector_chunks "
    "forgotten rebuilding summaries sources tags pins ledger ledger_messages "
    "_sqlite_migrations".split()
)
FULL_TEXT = "messages_fts"


def find_code(connection: sqlite3.Connection) -> str | None:
    """Describe the first code that would run in a write to our tables, if there is any."""
    entries = connection.execute(
        "SELECT type, name, lower(tbl_name), coalesce(sql, '') FROM sqlite_master"
    )
    described = (_describe(connection, *entry) for entry in entries.fetchall())
    return next(filter(None, described), None)


def _describe(
    connection: sqlite3.Connection, kind: str, name: str, table: str, sql: str
) -> str | None:
    """Describe the code in an entry of the schema, if any; escape its name."""
    if kind == "view":
        return f"a view ({name!a})"
    if table not in TABLES and not table.startswith(FULL_TEXT):
        return None
    if kind == "trigger":
        return f"a trigger on {table} ({name!a})"
    if kind != "table":
        return None
    if sql.upper().startswith("CREATE VIRTUAL") != (table == FULL_TEXT):
        return f"another kind of table in place of {table}"
    if table != FULL_TEXT and _has_generated(connection, table):
        return f"a generated column in {table}"
    return None


def _has_generated(connection: sqlite3.Connection, table: str) -> bool:
    rows = connection.execute("SELECT hidden FROM pragma_table_xinfo(?)", [table])
    return any(hidden in (2, 3) for (hidden,) in rows)
