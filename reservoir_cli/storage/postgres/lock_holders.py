"""Name the users who hold the lock for which a statement waited too long."""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psycopg

from reservoir_cli.storage.postgres.server_errors import Holder
from reservoir_cli.storage.postgres.tables import SCHEMA

#: The seconds that the statement waits again, and between two looks at it.
_AGAIN, _PAUSE = 1, 0.05
#: The processes that block another one and wait for nobody, and the tables that they lock for more
#: than reading.
_HOLDERS = f"""
    WITH RECURSIVE blocking (pid) AS (
        SELECT unnest(pg_blocking_pids(%s))
        UNION SELECT unnest(pg_blocking_pids(b.pid)) FROM blocking b
    )
    SELECT a.usename::text, b.pid, coalesce((
        SELECT string_agg(DISTINCT c.relname, ', ') FROM pg_locks l JOIN pg_class c
        ON c.oid = l.relation WHERE l.pid = b.pid AND l.granted AND c.relkind = 'r'
        AND l.mode <> 'AccessShareLock' AND c.relnamespace = to_regnamespace('{SCHEMA}')
    ), '')
    FROM blocking b JOIN pg_stat_activity a ON a.pid = b.pid
    WHERE cardinality(pg_blocking_pids(b.pid)) = 0 ORDER BY 2
"""
#: The same on a cluster, where both may wait on another machine.
_ON_CLUSTER = """
    SELECT DISTINCT a.usename::text, a.pid, ''
    FROM citus_lock_waits w JOIN citus_stat_activity a ON a.global_pid = w.blocking_gpid
    WHERE w.waiting_gpid = %s AND a.is_worker_query = false ORDER BY 2
"""
_IDENTITY = "SELECT pg_backend_pid(), to_regclass('pg_catalog.citus_lock_waits') IS NOT NULL"


def find(
    waiting: "psycopg.Connection[Any]",
    watching: "psycopg.Connection[Any]",
    begin: str,
    statement: tuple[bytes, Sequence[Any] | None],
) -> list[Holder]:
    """Run a statement that waited for a lock again, and read meanwhile who blocks it.

    :param waiting: a connection without a transaction.
    :param begin: the statements that begin a transaction like that of the statement.
    """
    waiting.execute(f"{begin}; SET LOCAL lock_timeout = '{_AGAIN}s'".encode())
    [(pid, has_cluster)] = waiting.execute(_IDENTITY)
    queries = [(_HOLDERS, pid)]
    if has_cluster:
        [(number,)] = waiting.execute("SELECT citus_backend_gpid()")
        queries.append((_ON_CLUSTER, number))
    again = threading.Thread(target=_run, args=[waiting, statement], daemon=True)
    again.start()
    try:
        deadline = time.monotonic() + _AGAIN
        while again.is_alive() and time.monotonic() < deadline:
            for query, number in queries:
                if rows := watching.execute(query.encode(), [number]).fetchall():
                    return [Holder(*row) for row in rows]
            time.sleep(_PAUSE)
        return []
    finally:
        waiting.cancel()
        again.join()
        waiting.execute("ROLLBACK")


def _run(waiting: "psycopg.Connection[Any]", statement: tuple[bytes, Sequence[Any] | None]) -> None:
    with suppress(psycopg.Error):  # it fails again, or is cancelled
        waiting.execute(*statement)
