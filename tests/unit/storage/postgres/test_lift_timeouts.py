"""A server's own limits: timeouts and the number of connections."""

import threading
import time
from contextlib import closing
from itertools import chain, repeat

import psycopg
import pytest
from behind import behind
from on_server import EVERYWHERE, contents, embed, say
from postgres_server import PostgresServer

from reservoir_cli.errors import StoreError, StoreLockedError
from reservoir_cli.messages import Scope
from reservoir_cli.storage.copying import copy_store
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.postgres import ann_index
from reservoir_cli.storage.postgres.server_errors import unreachable_error
from reservoir_cli.storage.postgres.store import PostgresStore

TIMEOUTS = (
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "transaction_timeout",
)
#: Raises an error in a transaction that one of the server's timeouts could end.
REQUIRE_LIFTED = """
CREATE FUNCTION public.require_lifted() RETURNS {kind} LANGUAGE plpgsql AS $$
BEGIN
    IF {limited} THEN RAISE EXCEPTION 'a timeout is set'; END IF;
    {result}
END $$
"""


CONNECTED = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def limit(url: str, **timeouts: str) -> None:
    """Set timeouts for all later connections to a database."""
    database = url.rsplit("/", 1)[1]
    for name, value in timeouts.items():
        behind(url, f"ALTER DATABASE {database} SET {name} = '{value}'")


def limited(*names: str) -> str:
    return " OR ".join(f"current_setting('{name}') <> '0'" for name in names)


def test_an_index_is_built_and_dropped_without_the_timeouts_of_the_server(url, fake_embedder):
    with closing(open_store(url)) as store:
        say(store, "quokkas", "wombats")
        embed(store, fake_embedder)
    result = REQUIRE_LIFTED.format(kind="event_trigger", limited=limited(*TIMEOUTS), result="")
    behind(url, result)
    behind(
        url,
        "CREATE EVENT TRIGGER require_lifted ON ddl_command_start "
        "WHEN TAG IN ('CREATE INDEX', 'DROP INDEX') EXECUTE FUNCTION public.require_lifted()",
    )
    limit(url, **dict.fromkeys(TIMEOUTS, "1h"))
    with closing(PostgresStore(url, patience=30)) as store:
        assert ann_index.build(store, "p", lambda *_: None).recall == 1
        assert ann_index.drop(store, "p")
        assert store._connection.number("SELECT 1") == 1


def test_only_administrative_transactions_lift_the_timeouts(url):
    with closing(open_store(url)) as store:
        say(store, "quokkas")
    condition = limited(*(name for name in TIMEOUTS if name != "lock_timeout"))
    behind(url, REQUIRE_LIFTED.format(kind="trigger", limited=condition, result="RETURN NEW;"))
    behind(
        url,
        "CREATE TRIGGER require_lifted BEFORE INSERT ON messages "
        "FOR EACH ROW EXECUTE FUNCTION public.require_lifted()",
    )
    limit(url, **dict.fromkeys(TIMEOUTS, "1h"))
    with closing(open_store(url)) as store:
        with pytest.raises(StoreError):
            say(store, "wombats")
        assert store.move_partition("p", "renamed")[0] == 1
        assert contents(store.last(Scope("renamed"), 0)) == ["quokkas"]


def test_a_copy_may_leave_its_source_idle(url, empty):
    with closing(open_store(url)) as source:
        say(source, *map(str, range(600)))
    # Long enough for what is limited, on a busy machine, too.
    limit(url, idle_in_transaction_session_timeout="2s")
    pauses = chain([2.5], repeat(0))
    with closing(open_store(url)) as source, closing(open_store(empty)) as target:
        copy_store.copy(source, target, lambda *_: time.sleep(next(pauses)))
        assert target.holdings()["messages"] == 600


@pytest.mark.parametrize(
    ("timeout", "expected"),
    [
        ("statement_timeout", "ended a statement that took too long"),
        ("transaction_timeout", "ended a transaction that took too long"),
        ("idle_in_transaction_session_timeout", "ended a transaction that was idle for too long"),
    ],
)
def test_a_timeout_in_ordinary_work_is_named(url, timeout, expected):
    with closing(PostgresStore(url, patience=30)) as store:

        def work() -> None:
            # Limits this transaction alone: any other could be as slow on a busy machine.
            store._connection.execute(f"SET LOCAL {timeout} = '300ms'")
            if "idle" in timeout:
                while behind(url, CONNECTED):
                    time.sleep(0.01)
            else:
                store._connection.execute("SELECT pg_sleep(10)")
            store.holdings()

        with pytest.raises(StoreError, match=expected) as caught:
            store._run_read(work)
        assert caught.value.exit_code == 3
        assert timeout in (caught.value.hint or "")
        assert store.last(EVERYWHERE, 0) == []


def test_waiting_for_a_lock_until_a_timeout_means_that_the_store_is_locked(url):
    with closing(open_store(url)) as holder:
        limit(url, statement_timeout="2s")
        with closing(open_store(url)) as store, holder.write():
            holder._connection.lock(None)
            with pytest.raises(StoreLockedError):
                say(store, "quokkas")


@pytest.fixture
def one_connection(postgres: PostgresServer, url: str) -> str:
    """Return the URL of a user who may have one connection at a time."""
    database = url.rsplit("/", 1)[1]
    user = f"single_{database}"
    postgres.sql(f"CREATE ROLE {user} LOGIN CONNECTION LIMIT 1")
    behind(url, f"GRANT USAGE ON SCHEMA reservoir TO {user}")
    behind(url, f"GRANT SELECT ON ALL TABLES IN SCHEMA reservoir TO {user}")
    return url.replace("postgres@", f"{user}@")


def test_a_store_waits_until_the_server_has_a_connection_left(one_connection):
    first = open_store(one_connection)
    opened: list[int] = []

    def open_second() -> None:
        with closing(open_store(one_connection, patience=60)) as second:
            opened.append(len(second.last(EVERYWHERE, 0)))

    thread = threading.Thread(target=open_second)
    thread.start()
    thread.join(0.5)
    assert thread.is_alive()
    first.close()
    thread.join()
    assert opened == [0]


def test_a_server_that_stays_full_is_one_clear_error(one_connection):
    with (
        closing(open_store(one_connection)),
        pytest.raises(StoreError, match="has too many connections") as caught,
    ):
        open_store(one_connection, patience=0.1)
    assert caught.value.exit_code == 3
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "FATAL:  sorry, too many clients already",
        "FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute",
        "FATAL:  no more connections allowed (max_client_conn)",
    ],
)
def test_every_report_of_a_full_server_is_recognised(text):
    error = unreachable_error(psycopg.OperationalError(text), "postgresql://h/d")
    assert "has too many connections" in error.message
