"""Users of a shared server who lock what others need."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import product

import psycopg
import pytest
from behind import behind
from builders import embed
from on_server import EVERYWHERE, HOSTILE, contents, say
from postgres_server import PostgresServer

from reservoir_cli.errors import StoreLockedError
from reservoir_cli.messages import Scope
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.postgres import admin, lock_holders, tables
from reservoir_cli.storage.postgres.store import PostgresStore
from reservoir_cli.util import timeouts

TEAM = Scope("team", "team")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for those who hold a lock until they are found, on a busy machine, too."""
    monkeypatch.setattr(lock_holders, "_AGAIN", 60)


@pytest.fixture
def users(postgres: PostgresServer, url: str, fake_embedder) -> Iterator[dict[str, str]]:
    """Create two members of a partition, each with one of their own, and a reader of it."""
    names = {"nils": "reservoir_member", "olga": "reservoir_member", "pia": "reservoir_reader"}
    with closing(open_store(url)) as store:
        admin.guard(store)
        say(store, "the boiler is in the cellar", scope=TEAM)
        embed(store, fake_embedder, TEAM, threshold=0)
    for name, role in names.items():
        behind(url, f"CREATE ROLE {name} LOGIN")
        behind(url, f"GRANT {role} TO {name}")
        behind(url, "INSERT INTO members VALUES (?, 'team'), (?, ?)", [name, name, name])
    yield {name: postgres.url(url.rsplit("/", 1)[1], name) for name in names}
    for name in names:
        behind(url, f"DROP OWNED BY {name}")
        behind(url, f"DROP ROLE {name}")


#: Modes that stop readers, writers or both.
MODES = ("ACCESS EXCLUSIVE", "EXCLUSIVE", "SHARE ROW EXCLUSIVE", "SHARE", "SHARE UPDATE EXCLUSIVE")


@pytest.mark.parametrize("name", ["nils", "pia"])
def test_no_user_can_lock_a_table(users, name):
    allowed = []
    with psycopg.connect(users[name]) as connection:
        for table, mode in product((*tables.SPREAD, *tables.REPLICATED), MODES):
            try:
                connection.execute(f"LOCK TABLE reservoir.{table} IN {mode} MODE".encode())
                allowed.append((table, mode))
            except psycopg.errors.InsufficientPrivilege:
                pass
            connection.rollback()
    assert allowed == []


def test_open_transactions_of_others_stop_nobody(url, users, fake_embedder):
    """Each leaves a transaction open; another writes, reads, embeds and forgets meanwhile."""
    scope = Scope("olga", "olga")
    with closing(open_store(users["nils"])) as store:
        say(store, "mine", scope=Scope("nils", "nils"))
    for name, statements in HOSTILE.items():
        for statement in statements:
            with psycopg.connect(users[name]) as hostile:
                hostile.execute(statement.encode())
                for location in (users["olga"], url):
                    with closing(open_store(location, patience=0.2)) as store:
                        say(store, "the queue lost jobs", "twice", scope=scope)
                        embed(store, fake_embedder, scope, threshold=0)
                        assert len(store.find(scope)) == 2, statement
                        assert store.last(TEAM, 1), statement
                        store.delete(store.find(scope))
                        assert not store.find(scope), statement
                hostile.rollback()


def test_an_operation_on_all_messages_waits_for_writers_and_they_for_it(url, users):
    with closing(open_store(url, patience=0.2)) as owner:
        with closing(open_store(users["nils"], patience=0.2)) as nils:
            with nils.write():
                nils._connection.lock(["nils"])
                with pytest.raises(StoreLockedError, match="the user nils"), owner.write():
                    owner._connection.lock(None)
            with owner.write():
                owner._connection.lock(None)
                with pytest.raises(StoreLockedError, match="the user postgres"), nils.write():
                    nils._connection.lock(["nils"])


def test_the_error_of_a_lock_names_who_holds_it(url, users):
    olga = open_store(users["olga"], patience=0.2)
    with closing(olga):
        with closing(open_store(users["nils"])) as nils, nils.write():
            nils._connection.lock(["team"])
            with pytest.raises(StoreLockedError, match=r"the user nils \(process \d+") as caught:
                say(olga, "to all", scope=TEAM)
            assert "partition_locks" in str(caught.value)
            assert "pg_terminate_backend(" in str(caught.value.hint)
        with psycopg.connect(url) as owner:
            owner.execute("LOCK TABLE reservoir.messages IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StoreLockedError, match=r"the user postgres .*locks messages"):
                olga.last(TEAM, 0)
        say(olga, "to all", scope=TEAM)
        assert contents(olga.last(TEAM, 1)) == ["to all"]


def test_a_change_of_tables_names_the_reader_that_it_waits_for(url, users, monkeypatch):
    """Others wait behind it, but not for longer than it does."""
    monkeypatch.setattr(timeouts, "CHANGE_OF_TABLES", 0.5)
    errors: list[StoreLockedError] = []

    def guard() -> None:
        with closing(open_store(url)) as owner:
            with pytest.raises(StoreLockedError) as caught:
                admin.guard(owner)
            errors.append(caught.value)

    with closing(open_store(users["pia"])) as pia, closing(open_store(users["olga"])) as olga:
        with pia.snapshot():
            pia.last(TEAM, 0)
            changing = threading.Thread(target=guard)
            changing.start()
            while changing.is_alive():
                if behind(url, "SELECT 1 FROM pg_locks WHERE NOT granted"):
                    break
                time.sleep(0.01)
            assert contents(olga.last(TEAM, 0)) == ["the boiler is in the cellar"]
            changing.join()
    [error] = errors
    assert "the user pia" in str(error)


def test_a_member_deletes_by_a_function_that_checks_the_partition(url, users):
    with closing(open_store(users["olga"])) as olga:
        assert isinstance(olga, PostgresStore)
        assert not olga._connection.may_delete
        [number] = say(olga, "secret", scope=Scope("olga", "olga"))
    call = "SELECT reservoir.delete_rows('olga', 'messages', '[[{}]]')"
    hostile = [
        (users["nils"], call),
        (users["nils"], "SET ROLE reservoir_member; " + call),
        (users["pia"], call),
        (users["olga"], "SELECT reservoir.delete_rows('olga', 'members', '[[{}]]')"),
        (users["olga"], "DELETE FROM reservoir.messages WHERE id = {}"),
        (users["olga"], "TRUNCATE reservoir.messages"),
        (
            users["nils"],
            "SET search_path = pg_temp; CREATE TEMP TABLE members (member text, "
            "partition text); INSERT INTO members VALUES ('nils', 'olga'); " + call,
        ),
    ]
    for location, statement in hostile:
        with psycopg.connect(location) as connection, pytest.raises(psycopg.Error):
            connection.execute(statement.format(number).encode())
    with closing(open_store(url)) as owner:
        assert sorted(contents(owner.last(EVERYWHERE, 0))) == [
            "secret",
            "the boiler is in the cellar",
        ]
    with psycopg.connect(users["olga"]) as connection:
        connection.execute(call.format(number).encode())
    with closing(open_store(url)) as owner:
        assert contents(owner.last(EVERYWHERE, 0)) == ["the boiler is in the cellar"]
