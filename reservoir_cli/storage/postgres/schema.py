"""The tables on a server, as numbered migrations that are never edited once released.

Every key begins with the partition, so that a cluster can distribute the tables by it. The tables
without one, ``properties``, ``tombstones`` and ``members``, are small and copied to every machine.
"""

from collections.abc import Sequence
from typing import Any

from psycopg import errors

from reservoir_cli.errors import StoreError
from reservoir_cli.messages import FIRST_MS, LAST_MS
from reservoir_cli.storage import properties
from reservoir_cli.storage.postgres import vectors
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.postgres.ids import LIMIT
from reservoir_cli.storage.postgres.tables import REPLICATED, SCHEMA
from reservoir_cli.storage.schema import TABLES, Table, define_columns, statements
from reservoir_cli.storage.transactions import refuse_newer

_GREATEST = 2**31 - 1  #: The greatest number that ranking can hold.
_TIMES = f"BETWEEN {FIRST_MS} AND {LAST_MS}"
#: The check constraints of tables, whoever writes to them.
RANGES = {
    "messages": f"""
        id BETWEEN 1 AND {LIMIT - 1} AND created_at {_TIMES}
        AND (edited_at IS NULL OR edited_at {_TIMES})
        AND tokens BETWEEN 0 AND {_GREATEST} AND word_count BETWEEN 0 AND {_GREATEST}
        AND has_question_mark IN (0, 1)
        AND (tool_calls IS NULL OR {SCHEMA}.are_tool_calls(tool_calls))
        """,
    "words": "part >= 0 AND start >= 0",
    "embeddings": f"""
        passage >= 0 AND start >= 0 AND "end" BETWEEN start AND {_GREATEST}
        AND vector_dims(vector) BETWEEN 1 AND 16000
        """,
    "context_runs": f"""
        id BETWEEN 1 AND {LIMIT - 1} AND at {_TIMES}
        AND utilisation BETWEEN 0 AND 1e9 AND ms BETWEEN 0 AND 1e15
        """,
    "tombstones": "octet_length(mark) = 32",
    "summaries": f"first_at {_TIMES}",
    "sources": "size >= 0 AND bytes_read >= 0 AND settled IN (0, 1)",
    "pins": f"pinned_at {_TIMES}",
    "ledger": f"ordinal >= 0 AND tokens >= 0 AND masked IN (0, 1) AND at {_TIMES}",
}
_WORDS = {
    "text": 'text COLLATE "C"',
    "integer": "bigint",
    "real": "double precision",
    "blob": "bytea",
}
#: The tables from which members delete rows.
DELETABLE = [name for name in TABLES if name not in REPLICATED]


def _delete(table: str) -> str:
    types = TABLES[table].types()
    key = TABLES[table].key.removeprefix("partition, ").split(", ")
    same = " AND ".join(
        f"t.{name} = (k.value ->> {at})::{_WORDS[types[name]]}" for at, name in enumerate(key)
    )
    return f"""
        WHEN '{table}' THEN DELETE FROM {SCHEMA}.{table} t USING json_array_elements(keys) k
        WHERE t.partition = of_partition AND {same};
    """


_FUNCTIONS = f"""
    -- PostgreSQL rejects an escaped NUL; another character does not change the structure.
    CREATE FUNCTION are_tool_calls(calls text) RETURNS boolean IMMUTABLE PARALLEL SAFE
    BEGIN ATOMIC
        SELECT count(*) = 0
        FROM json_array_elements(replace(calls, '\\u0000', '\\u0001')::json) c
        WHERE json_typeof(c.value) <> 'object' OR (c.value -> 'name')::text = '""'
        OR json_typeof(c.value -> 'name') IS DISTINCT FROM 'string';
    END;
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
    -- Members delete by this function: a user who may delete from a table may lock all of it.
    CREATE FUNCTION delete_rows(of_partition text, of_table text, keys json)
    RETURNS void LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    AS $$
    BEGIN
        -- The current user is the owner here; a role that was set is still that of the caller.
        PERFORM FROM {SCHEMA}.members m WHERE m.partition = of_partition
        AND m.member = coalesce(nullif(current_setting('role'), 'none'), session_user);
        IF NOT FOUND THEN
            RAISE insufficient_privilege USING MESSAGE = 'not a member of the partition';
        END IF;
        CASE of_table
            {" ".join(map(_delete, DELETABLE))}
        END CASE;
    END $$;
    -- Members add to the tables that all share by this function: for an insert of theirs, a cluster
    -- would have to let them call its function that locks tables.
    CREATE FUNCTION add_shared(of_table text, keys text[], value text)
    RETURNS void LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    AS $$
    BEGIN
        IF of_table = 'tombstones' THEN
            INSERT INTO {SCHEMA}.tombstones (mark) SELECT decode(key, 'hex') FROM unnest(keys) key;
        ELSIF of_table = 'properties' AND cardinality(keys) = 1 AND (
            keys[1] IN ('{properties.MODEL_ID}', '{properties.MODEL_NAME}')
            OR (keys[1] = '{properties.DIMENSIONS}' AND value ~ '^[1-9][0-9]{{0,4}}$')
        ) THEN
            INSERT INTO {SCHEMA}.properties (key, value) VALUES (keys[1], value);
        ELSE
            RAISE insufficient_privilege USING MESSAGE = 'only the owner may add this';
        END IF;
    END $$;
    REVOKE ALL ON FUNCTION delete_rows, add_shared FROM PUBLIC;
"""
#: The tables that only a server has.
_OWN_TABLES = """
    CREATE INDEX messages_by_id ON messages (id);

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

    -- A writer of a partition locks its row.
    CREATE TABLE partition_locks (partition text COLLATE "C" PRIMARY KEY);

    -- The partitions that a database user can see, once rows are guarded.
    CREATE TABLE members (
        member text COLLATE "C" NOT NULL,
        partition text COLLATE "C" NOT NULL,
        PRIMARY KEY (member, partition)
    );
"""


def _define(name: str, table: Table) -> str:
    parts = define_columns(table, _WORDS)
    if name == "messages":  # see keys.thread_key
        parts.append("thread bigint NOT NULL")
    parts.append(f"PRIMARY KEY ({table.key})")
    if table.unique:
        parts.append(f"UNIQUE ({table.unique})")
    if table.check:
        parts.append(f"CHECK ({table.check})")
    return f"CREATE TABLE {name} ({', '.join(parts)})"


_CONSTRAINTS = ";".join(
    f"ALTER TABLE {table} ADD CONSTRAINT {table}_in_range CHECK ({check})"
    for table, check in RANGES.items()
)
#: The name and the statements of each migration.
MIGRATIONS: tuple[tuple[str, str], ...] = (
    (
        "all tables",
        f"{';'.join(statements(TABLES, _define))};{_OWN_TABLES}{_FUNCTIONS}{_CONSTRAINTS}",
    ),
)


def migrate(connection: Connection, settings: str, guarding: Sequence[str]) -> list[str]:
    """Migrate a store in one transaction; do nothing if another process has just migrated it."""
    applied = []
    with connection.server.transaction():
        connection.execute(settings)
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
        connection.execute(f"LOCK TABLE {SCHEMA}.migrations IN SHARE ROW EXCLUSIVE MODE")
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
            guarded = connection.number(
                "SELECT relrowsecurity::int FROM pg_class "
                f"WHERE oid = '{SCHEMA}.messages'::regclass"
            )
            for statement in guarding if guarded else ():
                connection.execute(statement)
        _finish(connection)
    return applied


def _add_vector(connection: Connection) -> None:
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except errors.InsufficientPrivilege:
        raise StoreError(
            "the database has no pgvector yet, and the user may not add it",
            hint="let a superuser run CREATE EXTENSION vector in it",
        ) from None


def _finish(connection: Connection) -> None:
    connection.execute(f"COMMENT ON SCHEMA {SCHEMA} IS 'a store of reservoir-cli'")
