"""What a server and the store on it can do: their versions, and the rights of the user."""

from dataclasses import dataclass

from reservoir_cli.errors import StoreError
from reservoir_cli.storage.postgres.connection import Connection
from reservoir_cli.storage.postgres.tables import SCHEMA

_POSTGRES, _VECTOR = 15, (0, 8)  #: The oldest supported versions of PostgreSQL and pgvector.


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The state of a server and of the store on it.

    :param version: of PostgreSQL, such as 160004.
    :param whole: whether this user sees the whole store, and may change shared properties.
    :param may_delete: whether this user may delete rows, other than by the function for members.
    :param listed: whether the user sees all partitions, or is a member of any.
    :param path: the ``search_path`` of the tables and of pgvector's operators.
    """

    version: int
    vector: str | None
    schema: int | None
    writable: bool
    whole: bool = True
    may_delete: bool = True
    listed: bool = True
    path: str = SCHEMA
    is_cluster: bool = False

    def describe(self) -> str:
        """Return the versions of the server, of pgvector and of the store's schema."""
        version = f"{self.version // 10_000}.{self.version % 10_000}"
        return f"PostgreSQL {version}, pgvector {self.vector}, schema {self.schema}"


def inspect(connection: Connection) -> ServerInfo:
    """Return the state of a server and of the store on it, without changing anything."""
    version, encoding, has_store, vector, read_only, path = connection.execute(
        f"""
        SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
        to_regclass('{SCHEMA}.migrations') IS NOT NULL,
        coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'),
            (SELECT default_version FROM pg_available_extensions WHERE name = 'vector')),
        current_setting('transaction_read_only') = 'on',
        -- The operators of pgvector may be in any schema. No other is searched: functions that
        -- members created there would run with the rights of their callers.
        coalesce((SELECT '{SCHEMA}, ' || quote_ident(nspname) FROM pg_extension e
             JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'vector'), '{SCHEMA}')
        """
    ).fetchone()  # type: ignore[misc]
    _refuse(version, encoding, vector)
    if not has_store:
        return ServerInfo(version, vector, None, not read_only, path=path)
    schema, may, may_delete, whole, listed, is_cluster = connection.execute(
        f"""
        SELECT (SELECT max(number) FROM {SCHEMA}.migrations),
        has_table_privilege('{SCHEMA}.messages', 'INSERT'),
        has_table_privilege('{SCHEMA}.messages', 'DELETE'),
        NOT row_security_active('{SCHEMA}.messages')
            AND has_table_privilege('{SCHEMA}.properties', 'DELETE'),
        NOT row_security_active('{SCHEMA}.messages')
            OR EXISTS (SELECT 1 FROM {SCHEMA}.members WHERE member = current_user),
        to_regclass('pg_catalog.citus_shards') IS NOT NULL
        """
    ).fetchone()  # type: ignore[misc]
    writable = may and not read_only
    return ServerInfo(
        version, vector, schema or 0, writable, whole, may_delete, listed, path, is_cluster
    )


def _refuse(version: int, encoding: str, vector: str | None) -> None:
    if version < _POSTGRES * 10_000:
        raise StoreError(
            f"the server is PostgreSQL {version // 10_000}", hint=f"{_POSTGRES} or newer is needed"
        )
    if vector is None:
        raise StoreError(
            "the server has no pgvector",
            hint="install the extension vector on it: https://github.com/pgvector/pgvector",
        )
    if tuple(map(int, vector.split(".")[:2])) < _VECTOR:
        raise StoreError(
            f"the server has pgvector {vector}",
            hint="0.8 or newer is needed: ALTER EXTENSION "
            "vector UPDATE brings an installed one up to date",
        )
    if encoding != "UTF8":
        raise StoreError(
            f"the encoding of the database is {encoding}",
            hint="create one with createdb --encoding UTF8 --template template0",
        )
