"""The tables of a store in a file, made by numbered migrations that are never edited once released.

``PRAGMA user_version`` holds the number of applied migrations, so that opening an up-to-date file
needs only the standard library's ``sqlite3``; sqlite-utils is loaded only to migrate.
"""

import sqlite3
from collections.abc import Callable

from sqlite_utils import Database, Migrations

from reservoir_cli.storage.schema import TABLES, VERSION, Table, define_columns, statements
from reservoir_cli.storage.search import fulltext
from reservoir_cli.storage.sqlite.blocks import COLUMNS

migrations = Migrations("reservoir")

_TYPES = {"text": "TEXT", "integer": "INTEGER", "real": "REAL", "blob": "BLOB"}
#: The tables whose key is the row id: SQLite appends it to every index entry. The ids of messages
#: are never reused.
_NUMBERED = {
    "messages": "INTEGER PRIMARY KEY AUTOINCREMENT",
    **dict.fromkeys(("context_runs", "blocks"), "INTEGER PRIMARY KEY"),
}
#: The tables with long rows, of which a damaged file keeps more with row ids.
_LONG_ROWS = ("summaries", "sources", "ledger")
#: See the module ``blocks``. An index answers which blocks hold a message, and which are new.
_BLOCKS = Table(
    "id integer, model_id text, partition text, instance text, n integer, embedded integer, "
    f"lowest integer, highest integer, {', '.join(f'{name} blob' for name in COLUMNS)}",
    key="id",
    indexes={
        "blocks_by_place": "partition, instance, model_id, id, lowest, highest, embedded",
    },
)
#: Contentless: the index holds the words, and only ``messages`` the text.
_FULL_TEXT = f"""
    CREATE VIRTUAL TABLE messages_fts USING fts5 (text, scope, content='', {fulltext.TOKENIZE})
"""


@migrations()
def m001(db: Database) -> None:
    """Create all tables."""
    tables = {**TABLES, "blocks": _BLOCKS}
    for statement in (*statements(tables, _define, _NUMBERED), _FULL_TEXT):
        db.execute(statement)


def _define(name: str, table: Table) -> str:
    parts = define_columns(table, _TYPES)
    if name in _NUMBERED:
        parts = [f'"id" {_NUMBERED[name]}' if part.startswith('"id" ') else part for part in parts]
    else:
        parts.append(f"PRIMARY KEY ({table.key})")
    if table.unique:
        parts.append(f"UNIQUE ({table.unique})")
    if table.check:
        parts.append(f"CHECK ({table.check})")
    has_rowid = name in _NUMBERED or name in _LONG_ROWS
    return f"CREATE TABLE {name} ({', '.join(parts)}){'' if has_rowid else ' WITHOUT ROWID'}"


def migrate(connection: sqlite3.Connection, application: int, check: Callable[[], None]) -> None:
    """Migrate a file in one transaction; do nothing if another process has just migrated it."""
    database = Database(connection, execute_plugins=False)  # finding them takes 10 ms
    connection.execute("BEGIN IMMEDIATE")
    try:
        check()
        migrations.apply(database)
        check()
        connection.execute(f"PRAGMA application_id = {application:d}")
        connection.execute(f"PRAGMA user_version = {VERSION:d}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
