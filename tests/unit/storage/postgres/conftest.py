"""Databases on a real server."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from postgres_server import PostgresServer

from reservoir_cli.storage.base import Store
from reservoir_cli.storage.factory import open_store


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """Return the URL of a database with an empty store."""
    made = postgres.store_database()
    yield made
    postgres.drop(made)


@pytest.fixture
def empty(postgres: PostgresServer) -> Iterator[str]:
    """Return the URL of an empty database."""
    made = postgres.empty_database()
    yield made
    postgres.drop(made)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(open_store(url)) as opened:
        yield opened
