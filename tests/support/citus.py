"""A store on a Citus cluster for tests, if ``RESERVOIR_TEST_CITUS`` names a coordinator.

The variable is the URL of an empty database there, as a superuser; its schema ``reservoir`` is
dropped. Other machines have to be reachable by the names in ``pg_dist_node``, without a password.
"""

import os
from contextlib import closing
from urllib.parse import urlsplit

import psycopg
from behind import behind

from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.postgres import admin, tables

COORDINATOR = os.environ.get("RESERVOIR_TEST_CITUS")


def new_store() -> str:
    """Replace the store of the cluster by an empty one, distributed and guarded; return its URL."""
    assert COORDINATOR
    behind(COORDINATOR, "DROP SCHEMA IF EXISTS reservoir CASCADE")
    open_store(COORDINATOR).close()
    with psycopg.connect(COORDINATOR, autocommit=True) as connection:
        for statement in tables.sharding_statements():
            connection.execute(statement.encode())
    with closing(open_store(COORDINATOR)) as store:
        admin.guard(store)
    return COORDINATOR


def urls_of(user: str) -> list[str]:
    """Return the URLs of the database as a user, by way of each machine."""
    assert COORDINATOR
    database = urlsplit(COORDINATOR).path
    machines = behind(
        COORDINATOR, "SELECT nodename, nodeport FROM pg_dist_node WHERE isactive ORDER BY groupid"
    )
    return [f"postgresql://{user}@{name}:{port}{database}" for name, port in machines]
