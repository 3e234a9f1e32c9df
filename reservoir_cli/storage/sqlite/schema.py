"""The tables of a store, as numbered migrations that are never edited once released.

``PRAGMA user_version`` holds the number of applied migrations, so that opening an up-to-date file
needs only the standard library's ``sqlite3``; sqlite-utils is loaded only to migrate.
"""

import json
import sqlite3
from collections.abc import Callable

from sqlite_utils import Database, Migrations

from reservoir_cli.messages import Message, call_from_dict, clean_text, plain_text
from reservoir_cli.storage import fulltext, properties

migrations = Migrations("reservoir")
#: The first schema whose full-text index has ł, ø, æ and ß as plain letters, and ü also as ue.
FOLDED = 7


@migrations()
def m001_messages(db: Database) -> None:
    """Create messages, conversations, vectors and the full-text index."""
    db.execute(
        """
        CREATE TABLE messages (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            trace_id TEXT NOT NULL,
            conversation_id TEXT,
            partition TEXT NOT NULL,
            instance TEXT NOT NULL,
            role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'tool')),
            content TEXT NOT NULL,
            name TEXT,
            tool_calls TEXT,
            tool_call_id TEXT,
            created_at INTEGER NOT NULL,
            source TEXT NOT NULL,
            source_id TEXT NOT NULL,
            tokens INTEGER NOT NULL,
            counter TEXT NOT NULL,
            terms INTEGER NOT NULL,
            asks INTEGER NOT NULL,
            UNIQUE (partition, instance, source, source_id)
        )
        """
    )
    for name, columns in {
        "messages_by_instance": "(partition, instance, created_at, id)",
        "messages_by_partition": "(partition, created_at, id)",
        "messages_by_trace": "(partition, trace_id)",
        "messages_by_conversation": "(partition, conversation_id) WHERE conversation_id NOT NULL",
        "messages_by_tool_call": "(partition, tool_call_id) WHERE tool_call_id NOT NULL",
    }.items():
        db.execute(f"CREATE INDEX {name} ON messages {columns}")
    db.execute(
        """
        CREATE TABLE conversations (
            partition TEXT NOT NULL,
            instance TEXT NOT NULL,
            id TEXT NOT NULL,
            title TEXT,
            source TEXT,
            model TEXT,
            PRIMARY KEY (partition, instance, id)
        ) WITHOUT ROWID
        """
    )
    # Vectors are apart from the text, so that a scan of one does not read the other.
    db.execute(
        """
        CREATE TABLE embeddings (
            message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
            model_id TEXT NOT NULL,
            passage INTEGER NOT NULL,
            start INTEGER NOT NULL,
            "end" INTEGER NOT NULL,
            vector BLOB NOT NULL,
            PRIMARY KEY (message_id, model_id, passage)
        )
        """
    )
    db.execute(
        """
        CREATE TABLE pending (
            message_id INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE
        )
        """
    )
    db.execute("CREATE TABLE properties (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
    # Contentless: the index holds the words, and only ``messages`` the text.
    db.execute(
        """
        CREATE VIRTUAL TABLE messages_fts USING fts5 (
            text, scope, content='', tokenize='porter unicode61 remove_diacritics 2'
        )
        """
    )


@migrations()
def m002_synapses_and_runs(db: Database) -> None:
    """Add links between messages, and records of built contexts."""
    db.execute(
        """
        CREATE TABLE synapses (
            source_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
            target_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
            score REAL NOT NULL,
            kind TEXT NOT NULL CHECK (kind IN ('previous', 'near')),
            PRIMARY KEY (source_id, target_id)
        ) WITHOUT ROWID
        """
    )
    db.execute("CREATE INDEX synapses_by_target ON synapses (target_id)")
    # Numbers and names only, never the text of a question or a message.
    db.execute(
        """
        CREATE TABLE context_runs (
            id INTEGER PRIMARY KEY,
            at INTEGER NOT NULL,
            partition TEXT NOT NULL,
            instance TEXT NOT NULL,
            model TEXT,
            format TEXT NOT NULL,
            counter TEXT NOT NULL,
            context_window INTEGER NOT NULL,
            reserve INTEGER NOT NULL,
            reserve_used INTEGER NOT NULL,
            available INTEGER NOT NULL,
            input_tokens INTEGER NOT NULL,
            sections TEXT NOT NULL,
            kept INTEGER NOT NULL,
            dropped INTEGER NOT NULL,
            truncations INTEGER NOT NULL,
            utilisation REAL NOT NULL,
            ms REAL NOT NULL
        )
        """
    )
    db.execute("CREATE INDEX context_runs_by_time ON context_runs (at)")


@migrations()
def m003_vector_chunks(db: Database) -> None:
    """Add packed ranking data; messages are embedded in passages from now on."""
    db.execute(
        """
        CREATE TABLE vector_chunks (
            id INTEGER PRIMARY KEY,
            model_id TEXT NOT NULL,
            partition TEXT NOT NULL,
            instance TEXT NOT NULL,
            n INTEGER NOT NULL,
            ids BLOB NOT NULL,
            created_at BLOB NOT NULL,
            threads BLOB NOT NULL,
            tokens BLOB NOT NULL,
            terms BLOB NOT NULL,
            flags BLOB NOT NULL,
            scales BLOB NOT NULL,
            codes BLOB NOT NULL
        )
        """
    )
    db.execute(
        "CREATE INDEX vector_chunks_by_place ON vector_chunks (model_id, partition, instance, id)"
    )
    # The vectors of whole messages are replaced by those of their passages.
    db.execute("DELETE FROM synapses")
    db.execute("DELETE FROM embeddings")
    db.execute("DELETE FROM properties WHERE key LIKE 'embedding_model%'")
    db.execute("INSERT OR IGNORE INTO pending SELECT id FROM messages")


@migrations()
def m004_forgotten_and_rebuilding(db: Database) -> None:
    """Add tombstones, and the list of messages that the next model has not embedded yet."""
    # A mark is an HMAC of (source, source id) with the property ``forgotten_key`` as its key.
    db.execute("CREATE TABLE forgotten (mark BLOB PRIMARY KEY) WITHOUT ROWID")
    # Like ``pending``, for the model in the properties ``next_model_id`` and ``next_model_name``.
    db.execute(
        """
        CREATE TABLE rebuilding (
            message_id INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE
        )
        """
    )


@migrations()
def m005_secrets(db: Database) -> None:
    """Add the kinds of secrets in a message."""
    # The kinds, separated by spaces; NULL if none was found.
    db.execute("ALTER TABLE messages ADD COLUMN secrets TEXT")


@migrations()
def m006_projects(db: Database) -> None:
    """Add the project folder and the branch of a conversation."""
    db.execute("ALTER TABLE conversations ADD COLUMN project TEXT")
    db.execute("ALTER TABLE conversations ADD COLUMN branch TEXT")


@migrations()
def m007_summaries(db: Database) -> None:
    """Add summaries of conversations; the full-text index folds letters from now on."""
    # The vector is little-endian float32, by the model ``model_id``.
    db.execute(
        """
        CREATE TABLE summaries (
            partition TEXT NOT NULL,
            instance TEXT NOT NULL,
            conversation_id TEXT NOT NULL,
            digest TEXT NOT NULL,
            text TEXT NOT NULL,
            made_by TEXT NOT NULL,
            first_at INTEGER NOT NULL,
            model_id TEXT,
            vector BLOB,
            PRIMARY KEY (partition, instance, conversation_id)
        )
        """
    )


@migrations()
def m008_sources(db: Database) -> None:
    """Add records of how far the files of other tools were read."""
    db.execute(
        """
        CREATE TABLE sources (
            partition TEXT NOT NULL,
            machine TEXT NOT NULL,
            path TEXT NOT NULL,
            tool TEXT NOT NULL,
            version INTEGER NOT NULL,
            size INTEGER NOT NULL,
            mtime_ns INTEGER NOT NULL,
            head TEXT NOT NULL,
            tail TEXT NOT NULL,
            bytes_read INTEGER NOT NULL,
            state TEXT NOT NULL,
            settled INTEGER NOT NULL,
            PRIMARY KEY (partition, machine, path)
        )
        """
    )


@migrations()
def m009_tags_and_pins(db: Database) -> None:
    """Add tags and pins of messages."""
    db.execute(
        """
        CREATE TABLE tags (
            message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            PRIMARY KEY (message_id, name)
        ) WITHOUT ROWID
        """
    )
    db.execute("CREATE INDEX tags_by_name ON tags (name, message_id)")
    db.execute(
        """
        CREATE TABLE pins (
            message_id INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
            pinned_at INTEGER NOT NULL
        )
        """
    )


@migrations()
def m010_ledger(db: Database) -> None:
    """Add the blocks that the proxy added to questions, and the messages that they quote."""
    db.execute(
        """
        CREATE TABLE ledger (
            partition TEXT NOT NULL,
            conversation TEXT NOT NULL,
            ordinal INTEGER NOT NULL,
            question TEXT NOT NULL,
            block TEXT NOT NULL,
            tokens INTEGER NOT NULL,
            masked INTEGER NOT NULL,
            at INTEGER NOT NULL,
            PRIMARY KEY (partition, conversation, ordinal, question)
        )
        """
    )
    db.execute(
        """
        CREATE TABLE ledger_messages (
            partition TEXT NOT NULL,
            message_id INTEGER NOT NULL,
            conversation TEXT NOT NULL,
            ordinal INTEGER NOT NULL,
            question TEXT NOT NULL,
            PRIMARY KEY (partition, message_id, conversation, ordinal, question)
        ) WITHOUT ROWID
        """
    )


@migrations()
def m011_escapes(db: Database) -> None:
    """Record the messages indexed with the escapes of their tool calls as they are written."""
    db.execute(
        "INSERT INTO properties (key, value) SELECT ?, id FROM messages ORDER BY id DESC LIMIT 1",
        [properties.ESCAPED_UNTIL],
    )


def migrate(
    connection: sqlite3.Connection, version: int, application: int, check: Callable[[], None]
) -> None:
    """Migrate a file in one transaction; do nothing if another process has just migrated it.

    :param application: the ``PRAGMA application_id`` to set.
    :param version: the ``PRAGMA user_version`` to set: the number of migrations.
    :param check: called before and after the migrations, in the transaction; raises to refuse the
        file.
    """
    database = Database(connection, execute_plugins=False)  # finding them takes 10 ms
    connection.execute("BEGIN IMMEDIATE")
    try:
        check()
        before = connection.execute("PRAGMA user_version").fetchone()[0]
        migrations.apply(database)
        if 0 < before < FOLDED:
            fold_letters(connection)
        check()
        connection.execute(f"PRAGMA application_id = {application:d}")
        connection.execute(f"PRAGMA user_version = {version:d}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def fold_letters(connection: sqlite3.Connection) -> None:
    """Index those messages again whose words in the index have changed.

    The index does not store the texts: to remove a message, FTS5 needs the text that was indexed.
    """
    rows = connection.execute("SELECT id, partition, instance, content, tool_calls FROM messages")
    for message_id, partition, instance, content, calls in rows.fetchall():
        tool_calls = tuple(map(call_from_dict, json.loads(calls or "[]")))
        text = clean_text(plain_text(Message("assistant", content, tool_calls=tool_calls)))
        before, after = fulltext.spaced_text(text), fulltext.indexed_text(text)
        if before != after:
            keys = fulltext.scope_keys(partition, instance)
            connection.execute(
                "INSERT INTO messages_fts (messages_fts, rowid, text, scope) "
                "VALUES ('delete', ?, ?, ?)",
                [message_id, before, keys],
            )
            connection.execute(
                "INSERT INTO messages_fts (rowid, text, scope) VALUES (?, ?, ?)",
                [message_id, after, keys],
            )
