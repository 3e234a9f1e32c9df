"""The tables on a server, as numbered migrations that are never edited once released.

Every key begins with the partition, so that a cluster can distribute the tables by it. The tables
without one, ``properties``, ``forgotten`` and ``members``, are small and copied to every machine.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

from psycopg import errors

from reservoir_cli.errors import StoreError
from reservoir_cli.messages import FIRST_MS, LAST_MS
from reservoir_cli.storage.postgres import locks, vectors
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.postgres.ids import LIMIT
from reservoir_cli.storage.postgres.tables import SCHEMA, SPREAD
from reservoir_cli.storage.transactions import refuse_newer

#: The check constraints of tables. They are not applied to rows that already exist.
RANGES = {
    "messages": f"""
        id BETWEEN 1 AND {LIMIT - 1} AND created_at BETWEEN {FIRST_MS} AND {LAST_MS}
        AND tokens >= 0 AND terms >= 0 AND asks IN (0, 1)
        AND (tool_calls IS NULL OR {SCHEMA}.are_tool_calls(tool_calls))
        """,
    "words": "part >= 0 AND start >= 0",
    "embeddings": """
        passage >= 0 AND start >= 0 AND "end" >= start AND vector_dims(vector) BETWEEN 1 AND 16000
        """,
    "synapses": "score BETWEEN -1 AND 2",
    "context_runs": f"""
        id BETWEEN 1 AND {LIMIT - 1} AND at BETWEEN {FIRST_MS} AND {LAST_MS}
        AND utilisation BETWEEN 0 AND 1e9 AND ms BETWEEN 0 AND 1e15
        """,
    "forgotten": "octet_length(mark) = 32",
}

#: The name and the statements of each migration.
MIGRATIONS: tuple[tuple[str, str], ...] = (
    (
        "messages, words, vectors, links, runs",
        """
        CREATE TABLE messages (
            partition text COLLATE "C" NOT NULL,
            id bigint NOT NULL,
            trace_id text COLLATE "C" NOT NULL,
            conversation_id text COLLATE "C",
            instance text COLLATE "C" NOT NULL,
            role text COLLATE "C" NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'tool')),
            content text COLLATE "C" NOT NULL,
            name text COLLATE "C",
            tool_calls text COLLATE "C",
            tool_call_id text COLLATE "C",
            created_at bigint NOT NULL,
            source text COLLATE "C" NOT NULL,
            source_id text COLLATE "C" NOT NULL,
            tokens integer NOT NULL,
            counter text COLLATE "C" NOT NULL,
            secrets text COLLATE "C",
            terms integer NOT NULL,
            asks smallint NOT NULL,
            thread bigint NOT NULL,
            PRIMARY KEY (partition, id),
            UNIQUE (partition, instance, source, source_id)
        );
        CREATE INDEX messages_by_id ON messages (id);
        CREATE INDEX messages_by_instance ON messages (partition, instance, created_at, id);
        CREATE INDEX messages_by_partition ON messages (partition, created_at, id);
        CREATE INDEX messages_by_trace ON messages (partition, trace_id);
        CREATE INDEX messages_by_conversation ON messages (partition, conversation_id)
            WHERE conversation_id IS NOT NULL;
        CREATE INDEX messages_by_tool_call ON messages (partition, tool_call_id)
            WHERE tool_call_id IS NOT NULL;

        CREATE TABLE words (
            partition text COLLATE "C" NOT NULL,
            message_id bigint NOT NULL,
            part integer NOT NULL,
            start integer NOT NULL,
            stems tsvector NOT NULL,
            PRIMARY KEY (partition, message_id, part),
            FOREIGN KEY (partition, message_id) REFERENCES messages ON DELETE CASCADE
        );
        -- A search reads the pending list row by row, so it must stay short.
        CREATE INDEX words_by_stem ON words USING gin (stems)
            WITH (fastupdate = on, gin_pending_list_limit = 256);

        -- Vectors stay in their rows: reading them from a TOAST table takes several times longer.
        CREATE TABLE embeddings (
            partition text COLLATE "C" NOT NULL,
            message_id bigint NOT NULL,
            model_id text COLLATE "C" NOT NULL,
            passage integer NOT NULL,
            instance text COLLATE "C" NOT NULL,
            start integer NOT NULL,
            "end" integer NOT NULL,
            vector vector NOT NULL,
            PRIMARY KEY (partition, message_id, model_id, passage),
            FOREIGN KEY (partition, message_id) REFERENCES messages ON DELETE CASCADE
        ) WITH (toast_tuple_target = 8160);
        CREATE INDEX embeddings_by_instance ON embeddings (partition, instance, model_id);

        CREATE TABLE pending (
            partition text COLLATE "C" NOT NULL,
            message_id bigint NOT NULL,
            PRIMARY KEY (partition, message_id),
            FOREIGN KEY (partition, message_id) REFERENCES messages ON DELETE CASCADE
        );
        CREATE INDEX pending_by_id ON pending (message_id);
        CREATE TABLE rebuilding (
            partition text COLLATE "C" NOT NULL,
            message_id bigint NOT NULL,
            PRIMARY KEY (partition, message_id),
            FOREIGN KEY (partition, message_id) REFERENCES messages ON DELETE CASCADE
        );
        CREATE INDEX rebuilding_by_id ON rebuilding (message_id);

        CREATE TABLE synapses (
            partition text COLLATE "C" NOT NULL,
            source_id bigint NOT NULL,
            target_id bigint NOT NULL,
            score double precision NOT NULL,
            kind text COLLATE "C" NOT NULL CHECK (kind IN ('previous', 'near')),
            PRIMARY KEY (partition, source_id, target_id),
            FOREIGN KEY (partition, source_id) REFERENCES messages ON DELETE CASCADE,
            FOREIGN KEY (partition, target_id) REFERENCES messages ON DELETE CASCADE
        );
        CREATE INDEX synapses_by_target ON synapses (partition, target_id);

        CREATE TABLE conversations (
            partition text COLLATE "C" NOT NULL,
            instance text COLLATE "C" NOT NULL,
            id text COLLATE "C" NOT NULL,
            title text COLLATE "C",
            source text COLLATE "C",
            model text COLLATE "C",
            PRIMARY KEY (partition, instance, id)
        );

        -- Numbers and names only, never the text of a question or a message.
        CREATE TABLE context_runs (
            partition text COLLATE "C" NOT NULL,
            id bigint NOT NULL,
            at bigint NOT NULL,
            instance text COLLATE "C" NOT NULL,
            model text COLLATE "C",
            format text COLLATE "C" NOT NULL,
            counter text COLLATE "C" NOT NULL,
            context_window integer NOT NULL,
            reserve integer NOT NULL,
            reserve_used integer NOT NULL,
            available integer NOT NULL,
            input_tokens integer NOT NULL,
            sections text COLLATE "C" NOT NULL,
            kept integer NOT NULL,
            dropped integer NOT NULL,
            truncations integer NOT NULL,
            utilisation double precision NOT NULL,
            ms double precision NOT NULL,
            PRIMARY KEY (partition, id)
        );

        CREATE TABLE properties (key text COLLATE "C" PRIMARY KEY, value text NOT NULL);
        -- A mark is an HMAC of (source, source id) with the property ``forgotten_key`` as its key.
        CREATE TABLE forgotten (mark bytea PRIMARY KEY);
        -- The partitions that a database user can see, once rows are guarded.
        CREATE TABLE members (
            member text COLLATE "C" NOT NULL,
            partition text COLLATE "C" NOT NULL,
            PRIMARY KEY (member, partition)
        );
        """,
    ),
    (
        "the project and the branch of a conversation",
        """
        ALTER TABLE conversations ADD COLUMN project text COLLATE "C";
        ALTER TABLE conversations ADD COLUMN branch text COLLATE "C";
        """,
    ),
    (
        "ranges of what a user may write",
        f"""
        -- PostgreSQL rejects an escaped NUL; another character does not change the structure.
        CREATE FUNCTION are_tool_calls(calls text) RETURNS boolean IMMUTABLE PARALLEL SAFE
        BEGIN ATOMIC
            SELECT count(*) = 0
            FROM json_array_elements(replace(calls, '\\u0000', '\\u0001')::json) c
            WHERE json_typeof(c.value) <> 'object' OR (c.value -> 'name')::text = '""'
            OR json_typeof(c.value -> 'name') IS DISTINCT FROM 'string';
        END;
        {
            ";".join(
                f"ALTER TABLE {table} ADD CONSTRAINT {table}_in_range CHECK ({check}) NOT VALID"
                for table, check in RANGES.items()
            )
        };
        DELETE FROM properties WHERE starts_with(key, 'last_forgotten_id:');
        CREATE FUNCTION own_partitions() RETURNS text[] STABLE PARALLEL SAFE COST 1000
        BEGIN ATOMIC
            SELECT ARRAY(
                SELECT m.partition FROM {SCHEMA}.members m WHERE m.member = current_user::text
            );
        END;
        CREATE FUNCTION is_active_model(model_id text, dimensions integer)
        RETURNS boolean STABLE PARALLEL SAFE COST 1000
        BEGIN ATOMIC
            SELECT count(*) = 2 FROM {SCHEMA}.properties p
            WHERE (p.key = 'embedding_model_id' AND p.value = model_id)
            OR (p.key = 'embedding_dimensions' AND p.value = dimensions::text);
        END;
        """,
    ),
    (
        "summaries of conversations",
        f"""
        CREATE TABLE summaries (
            partition text COLLATE "C" NOT NULL,
            instance text COLLATE "C" NOT NULL,
            conversation_id text COLLATE "C" NOT NULL,
            digest text COLLATE "C" NOT NULL,
            text text COLLATE "C" NOT NULL,
            made_by text COLLATE "C" NOT NULL,
            first_at bigint NOT NULL CHECK (first_at BETWEEN {FIRST_MS} AND {LAST_MS}),
            model_id text COLLATE "C",
            vector bytea,
            PRIMARY KEY (partition, instance, conversation_id)
        );
        """,
    ),
    (
        "sources of what is synced",
        """
        CREATE TABLE sources (
            partition text COLLATE "C" NOT NULL,
            machine text COLLATE "C" NOT NULL,
            path text COLLATE "C" NOT NULL,
            tool text COLLATE "C" NOT NULL,
            version integer NOT NULL,
            size bigint NOT NULL CHECK (size >= 0),
            mtime_ns bigint NOT NULL,
            head text COLLATE "C" NOT NULL,
            tail text COLLATE "C" NOT NULL,
            bytes_read bigint NOT NULL CHECK (bytes_read >= 0),
            state text COLLATE "C" NOT NULL,
            settled smallint NOT NULL CHECK (settled IN (0, 1)),
            PRIMARY KEY (partition, machine, path)
        );
        """,
    ),
    (
        "tags and pins of messages",
        # Without foreign keys: on a cluster a new table cannot refer to a distributed one.
        f"""
        CREATE TABLE tags (
            partition text COLLATE "C" NOT NULL,
            message_id bigint NOT NULL,
            name text COLLATE "C" NOT NULL,
            PRIMARY KEY (partition, message_id, name)
        );
        CREATE INDEX tags_by_name ON tags (partition, name, message_id);
        CREATE TABLE pins (
            partition text COLLATE "C" NOT NULL,
            message_id bigint NOT NULL,
            pinned_at bigint NOT NULL CHECK (pinned_at BETWEEN {FIRST_MS} AND {LAST_MS}),
            PRIMARY KEY (partition, message_id)
        );
        """,
    ),
    (
        "what the proxy added to questions",
        f"""
        CREATE TABLE ledger (
            partition text COLLATE "C" NOT NULL,
            conversation text COLLATE "C" NOT NULL,
            ordinal integer NOT NULL CHECK (ordinal >= 0),
            question text COLLATE "C" NOT NULL,
            block text COLLATE "C" NOT NULL,
            tokens integer NOT NULL CHECK (tokens >= 0),
            masked smallint NOT NULL CHECK (masked IN (0, 1)),
            at bigint NOT NULL CHECK (at BETWEEN {FIRST_MS} AND {LAST_MS}),
            PRIMARY KEY (partition, conversation, ordinal, question)
        );
        CREATE TABLE ledger_messages (
            partition text COLLATE "C" NOT NULL,
            message_id bigint NOT NULL,
            conversation text COLLATE "C" NOT NULL,
            ordinal integer NOT NULL,
            question text COLLATE "C" NOT NULL,
            PRIMARY KEY (partition, message_id, conversation, ordinal, question)
        );
        """,
    ),
)


def migrate(connection: Connection, settings: str, guarding: Sequence[str]) -> list[str]:
    """Migrate a store in one transaction; do nothing if another process has just migrated it.

    :param settings: the settings of every transaction, as a statement.
    :param guarding: the statements that guard a store, run again if the store is guarded.
    :returns: the names of the applied migrations.
    """
    applied = []
    with connection.server.transaction():
        connection.execute(settings)
        locks.lock_schema(connection)
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        _add_vector(connection)
        connection.execute(
            f"""
            CREATE TABLE IF NOT EXISTS {SCHEMA}.migrations (
                number integer PRIMARY KEY,
                name text NOT NULL,
                applied_at timestamptz NOT NULL DEFAULT now()
            )
            """
        )
        row: Any = connection.execute(f"SELECT max(number) FROM {SCHEMA}.migrations").fetchone()
        refuse_newer(row[0] or 0, len(MIGRATIONS))
        for number, (name, statements) in enumerate(MIGRATIONS, 1):
            if number > (row[0] or 0):
                connection.execute(statements)
                connection.execute(
                    f"INSERT INTO {SCHEMA}.migrations (number, name) VALUES (?, ?)", [number, name]
                )
                applied.append(name)
        if applied:
            vectors.note_dimensions(connection)
            _grant_as_on_messages(connection)
            _guard(connection, guarding)
        _finish(connection)
    return applied


def _add_vector(connection: Connection) -> None:
    """Add pgvector to the database.

    :raises StoreError: this user may not add it.
    """
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except errors.InsufficientPrivilege:
        raise StoreError(
            "the database has no pgvector yet, and the user may not add it",
            hint="let a superuser run CREATE EXTENSION vector in it",
        ) from None


def _grant_as_on_messages(connection: Connection) -> None:
    """Grant the users of ``messages`` the same rights on the new tables."""
    rights = connection.rows(
        """
        SELECT string_agg(a.privilege_type, ', '), CASE a.grantee WHEN 0 THEN 'PUBLIC'
            ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
        WHERE c.oid = to_regclass('messages') AND a.grantee <> c.relowner
        AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') GROUP BY 2
        """
    )
    without = connection.rows(
        """
        SELECT c.relname FROM pg_class c WHERE c.relnamespace = to_regnamespace(?)
        AND c.relname = ANY(?) AND c.relacl IS NULL ORDER BY 1
        """,
        [SCHEMA, list(SPREAD)],
    )
    for (table,), (privileges, user) in product(without, rights):
        connection.execute(f"GRANT {privileges} ON {SCHEMA}.{table} TO {user}")


def _guard(connection: Connection, statements: Sequence[str]) -> None:
    """Guard the new tables if the others are guarded."""
    guarded = connection.number(
        f"SELECT relrowsecurity::int FROM pg_class WHERE oid = '{SCHEMA}.messages'::regclass"
    )
    for statement in statements if guarded else ():
        connection.execute(statement)


def _finish(connection: Connection) -> None:
    """Comment the schema, as the last statement of a migration."""
    connection.execute(f"COMMENT ON SCHEMA {SCHEMA} IS 'a store of reservoir-cli'")
