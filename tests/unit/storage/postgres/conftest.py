"""Databases on a real server."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from postgres_server import PostgresServer

from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.store import Store


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """Return the URL of a database with an empty store."""
    database = postgres.store_database()
    yield database
    postgres.drop(database)


@pytest.fixture
def empty(postgres: PostgresServer) -> Iterator[str]:
    """Return the URL of an empty database."""
    database = postgres.empty_database()
    yield database
    postgres.drop(database)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(open_store(url)) as opened:
        yield opened
