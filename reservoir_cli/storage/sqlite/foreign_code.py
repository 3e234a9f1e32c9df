"""Find code in a file's schema that somebody else put there.

Foreign code would run when the store is written to: a trigger can prevent a message from being
deleted, and a view or a generated column can return values that were never stored. Foreign tables,
indexes and statistics are harmless.
"""

import sqlite3

from reservoir_cli.errors import StoreError
from reservoir_cli.storage import schema

#: Our tables; those of the full-text index start with :data:`FULL_TEXT`.
TABLES = frozenset({*schema.TABLES, "blocks", "_sqlite_migrations"})
FULL_TEXT = "messages_fts"


def refuse_code(connection: sqlite3.Connection, location: str) -> None:
    """Refuse to write to a store if foreign code in the file's schema would run."""
    if code := find_code(connection):
        raise StoreError(
            f"the store {location} has {code}, and is not written to",
            hint="drop it if it is yours; else reservoir doctor --salvage FILE makes a store "
            "without it",
        )


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
    if table == FULL_TEXT:
        return None
    columns = connection.execute("SELECT hidden FROM pragma_table_xinfo(?)", [table])
    is_generated = any(hidden in (2, 3) for (hidden,) in columns)
    return f"a generated column in {table}" if is_generated else None
