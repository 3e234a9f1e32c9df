"""Opening a store on a server, and its errors."""

import shutil
import subprocess
import sys
import threading
from contextlib import closing

import psycopg
import pytest
from behind import behind
from each import each
from on_server import EVERYWHERE, contents, say
from postgres_server import PostgresServer, copied, installed

from reservoir_cli.errors import StoreError
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.postgres import connection, inspect_server, schema
from reservoir_cli.storage.postgres.connection import location_of


def test_reading_a_database_without_a_store_creates_nothing(empty):
    with closing(open_store(empty, create=False)) as store:
        assert store.last(EVERYWHERE, 0) == []
        assert store.size() is None
        assert store.location == empty
        with pytest.raises(StoreError, match="there is no store at"):
            say(store, "lost")
    assert behind(empty, "SELECT 1 FROM pg_namespace WHERE nspname = 'reservoir'") == []


def test_a_store_on_a_server_is_set_up_at_first_use_and_kept(empty):
    with closing(open_store(empty)) as store:
        say(store, "kept")
    with closing(open_store(empty.replace("postgresql", "postgres"), create=False)) as store:
        assert contents(store.last(EVERYWHERE, 0)) == ["kept"]
        assert store.engine().startswith("PostgreSQL 18.")
        assert store.size()


def test_twelve_processes_can_set_up_one_store_at_once(empty):
    failed: list[BaseException] = []

    def open_and_say(number: int) -> None:
        try:
            with closing(open_store(empty)) as store:
                say(store, str(number))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=open_and_say, args=[number]) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with closing(open_store(empty)) as store:
        assert len(store.last(EVERYWHERE, 0)) == 12


def test_a_newer_store_is_refused_and_not_changed(url):
    behind(url, "INSERT INTO migrations (number, name) VALUES (99, 'later')")
    with pytest.raises(StoreError, match=r"newer reservoir \(schema 99") as caught:
        open_store(url)
    assert caught.value.exit_code == 3
    assert behind(url, "SELECT max(number) FROM migrations") == [(99,)]


def test_a_failed_migration_leaves_nothing(empty, monkeypatch):
    broken = (*schema.MIGRATIONS, ("broken", "CREATE TABLE half (a int); SELECT nothing_there()"))
    monkeypatch.setattr(schema, "MIGRATIONS", broken)
    with pytest.raises(StoreError):
        open_store(empty)
    assert behind(empty, "SELECT 1 FROM pg_namespace WHERE nspname = 'reservoir'") == []
    monkeypatch.undo()
    open_store(empty).close()


@pytest.mark.usefixtures("postgres")  # skipped where there is no server
def test_a_server_without_pgvector_is_one_clear_error():
    programs = installed("18")
    assert programs
    plain = copied(programs.parent)
    server = None
    try:
        for control_file in plain.glob("share/**/vector*.control"):
            control_file.unlink()
        server = PostgresServer("18", plain / "bin")
        with pytest.raises(StoreError, match="the server has no pgvector") as caught:
            open_store(server.url())
        assert caught.value.exit_code == 3
        assert caught.value.hint
    finally:
        if server:
            server.remove()
        shutil.rmtree(plain.parents[1])


@pytest.mark.parametrize(
    ("version", "encoding", "vector", "reason"),
    [
        (140_011, "UTF8", "0.8.0", "is PostgreSQL 14"),
        (160_004, "UTF8", "0.7.4", "has pgvector 0.7.4"),
        (160_004, "LATIN1", "0.8.0", "encoding of the database is LATIN1"),
    ],
)
def test_a_server_that_cannot_hold_a_store_is_refused(version, encoding, vector, reason):
    with pytest.raises(StoreError, match=reason):
        inspect_server._refuse(version, encoding, vector)
    inspect_server._refuse(150_000, "UTF8", "0.8.0")


@each(
    ("url", "expected"),
    [
        ("postgresql://me:geheim@h:5/d", "postgresql://me@h:5/d"),
        ("postgres://me:ge%40heim@h/d?sslmode=require", "postgresql://me@h/d"),
        ("postgresql://h/d?user=me&password=geheim", "postgresql://me@h/d"),
        ("postgresql://h/d?sslkey=k&sslpassword=geheim", "postgresql://h/d"),
    ],
)
def test_the_location_of_a_store_is_shown_without_its_password(url, expected):
    assert location_of(url) == expected


def test_a_password_with_an_at_sign_is_refused_and_not_shown():
    with pytest.raises(StoreError) as caught:
        location_of("postgresql://app:hun@ter22@db.example.org/x")
    assert "ter22" not in f"{caught.value} {caught.value.hint}"
    assert location_of("postgresql://app:hun%40ter22@db/x") == "postgresql://app@db/x"


@pytest.mark.parametrize("url", ["postgresql://app:12/ter22@db/x", "postgresql://app:hun/ter22@db"])
def test_a_password_with_a_slash_is_refused_and_not_shown(url):
    with pytest.raises(StoreError, match="has a / before the @") as caught:
        location_of(url)
    assert "ter22" not in f"{caught.value} {caught.value.hint}"
    assert location_of("postgresql://app:hun%2Fter22@db/x%40y") == "postgresql://app@db/x%40y"


def test_an_escape_that_is_not_utf_8_is_refused_and_not_shown():
    with pytest.raises(StoreError, match="is not UTF-8") as caught:
        location_of("postgresql://app:gehe%FCm@db.example.org/x")
    assert "gehe" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("url", ["postgresql://me:geheim@h:port/d", "postgresql://h/d?geheim=1"])
def test_an_invalid_url_is_not_quoted(url):
    with pytest.raises(StoreError, match=r"not valid|no such host|cannot reach") as caught:
        open_store(url)
    assert "geheim" not in f"{caught.value.message} {caught.value.hint}"


def test_errors_of_a_server_become_ours_and_quote_no_text(store):
    say(store, "quokkas")
    behind(store.location, "ALTER TABLE messages ADD CHECK (content <> 'secretquux')")
    with pytest.raises(StoreError) as caught:
        say(store, "secretquux")
    assert "quux" not in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.__cause__ is None
    assert contents(store.last(EVERYWHERE, 0)) == ["quokkas"]


def test_a_missing_server_is_reported(unused_port):
    with pytest.raises(StoreError, match="nothing listens there") as caught:
        open_store(f"postgresql://me:geheim@127.0.0.1:{unused_port}/d?connect_timeout=1")
    assert caught.value.exit_code == 3
    assert "geheim" not in caught.value.message


@pytest.mark.parametrize(("patience", "attempts"), [(0.0, 1), (0.15, 3), (30.0, 5)])
def test_an_absent_server_is_tried_again_only_within_the_patience(monkeypatch, patience, attempts):
    now, attempted = 0.0, []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def attempt(*_: object, **__: object) -> None:
        attempted.append(now)
        raise psycopg.OperationalError("connection refused")

    monkeypatch.setattr(connection.time, "monotonic", lambda: now)
    monkeypatch.setattr(connection.time, "sleep", sleep)
    monkeypatch.setattr(psycopg, "connect", attempt)
    with pytest.raises(StoreError):
        connection.connect("postgresql://h/d", "postgresql://h/d", patience=patience)
    assert len(attempted) == attempts
    assert now <= patience


@pytest.fixture
def unused_port(monkeypatch) -> int:
    monkeypatch.setattr("reservoir_cli.util.timeouts.RESTART", 0.001)
    return 1


def test_parameters_for_tls_reach_the_library(url):
    with pytest.raises(StoreError, match="TLS failed"):
        open_store(f"{url}?sslmode=require")


def test_without_psycopg_the_error_names_the_extra():
    script = (
        "import sys; sys.modules['psycopg'] = None\n"
        "sys.argv[1:] = ['--db', 'postgresql://h/d', 'view']\n"
        "from reservoir_cli.cli.app import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert result.returncode == 3
    assert 'pip install "reservoir-cli[postgres]"' in result.stderr
