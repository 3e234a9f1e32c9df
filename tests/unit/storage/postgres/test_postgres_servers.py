"""Killed servers, lost connections, and several servers."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from zlib import crc32

import numpy as np
import pytest
from behind import behind
from on_server import EVERYWHERE, contents, embed, say
from postgres_server import PostgresServer

from reservoir_cli.errors import StoreError
from reservoir_cli.messages import Scope
from reservoir_cli.storage.copying import copy_store
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.postgres import schema, tables


@pytest.fixture
def own_server(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """Start a server that a test may kill."""
    server = PostgresServer("18")
    yield server
    with suppress(Exception):
        server.remove()


#: Lets an import wait in its second batch, so that it cannot end before the server is killed.
WAIT = (
    "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "IF (SELECT COUNT(*) FROM messages) > 1000 THEN PERFORM pg_sleep(600); END IF; RETURN NULL; "
    "END $$",
    "CREATE TRIGGER wait AFTER INSERT ON messages FOR EACH STATEMENT EXECUTE FUNCTION wait()",
)


def test_a_server_killed_during_an_import_keeps_whole_batches(own_server, tmp_path):
    url = own_server.empty_database()
    count = 3_000  # three batches
    rows = [f'{{"role": "user", "content": "m {number}"}}\n' for number in range(count)]
    (tmp_path / "talk.jsonl").write_text("".join(rows))
    command = [sys.executable, "-m", "reservoir_cli", "--db", url, "ingest", "--no-embed"]
    with closing(open_store(url)) as watcher:
        for statement in WAIT:
            behind(url, statement)
        process = subprocess.Popen(
            [*command, str(tmp_path / "talk.jsonl")], stderr=subprocess.PIPE, text=True
        )
        while watcher.holdings()["messages"] < 1_000 and process.poll() is None:
            time.sleep(0.01)
        own_server.kill()
    stderr = process.communicate(timeout=300)[1]
    assert process.returncode == 3, stderr
    assert "error: " in stderr
    assert "Traceback" not in stderr
    own_server.start()
    behind(url, "DROP FUNCTION wait() CASCADE")
    with closing(open_store(url)) as store:
        assert store.holdings()["messages"] == 1_000
        assert store.problems() == []
    assert subprocess.run([*command, str(tmp_path / "talk.jsonl")], check=False).returncode == 0
    with closing(open_store(url)) as store:
        assert store.holdings()["messages"] == count
        assert store.problems() == []


def test_a_server_killed_in_a_copy_or_a_migration_stays_consistent(
    own_server, tmp_path, monkeypatch
):
    url = own_server.empty_database()

    def kill_server(connection) -> None:
        own_server.kill()

    monkeypatch.setattr(schema, "_finish", kill_server)
    with pytest.raises(StoreError, match=r"lost the connection|was stopped"):
        open_store(url)
    monkeypatch.undo()
    own_server.start()
    assert behind(url, "SELECT 1 FROM pg_namespace WHERE nspname = 'reservoir'") == []

    with closing(open_store(str(tmp_path / "file.db"))) as file:
        say(file, *map(str, range(1_700)))

        def kill(_: str, done: int, __: int) -> None:
            if done >= 1_000:
                own_server.kill()

        with closing(open_store(url)) as target:
            with pytest.raises(StoreError) as caught:
                copy_store.copy(file, target, kill)
            assert caught.value.exit_code == 3
        own_server.start()
        with closing(open_store(url)) as target:
            assert target.holdings()["messages"] == 1_000
            copy_store.copy(file, target, lambda *_: None)
            assert target.holdings()["messages"] == 1_700
            assert target.problems() == []


def test_a_lost_connection_is_reopened_for_the_next_read(url, store):
    say(store, "kept")
    behind(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    assert contents(store.last(EVERYWHERE, 0)) == ["kept"]
    say(store, "more")


def test_a_connection_that_is_stuck_in_a_pipeline_is_replaced(store):
    """A pool that loses its server while statements are on their way leaves one like this."""
    store._connection.server.pgconn.enter_pipeline_mode()
    say(store, "kept")
    assert contents(store.last(EVERYWHERE, 0)) == ["kept"]


# Many servers


def test_three_servers_with_partitions_routed_by_hash_answer_as_one(postgres, url, fake_embedder):
    servers = [PostgresServer("18"), PostgresServer("16"), postgres]
    try:
        stores = [open_store(server.empty_database()) for server in servers]
        rng = np.random.default_rng(2)
        vocabulary = "redis queue jobs Kyoto hotel bread".split()
        partitions = [f"user-{number}" for number in range(9)]
        with closing(open_store(url)) as single:
            for partition in partitions:
                texts = [" ".join(rng.choice(vocabulary, 5)) for _ in range(20)]
                shard = stores[crc32(partition.encode()) % 3]
                for store in (single, shard):
                    say(store, *texts, scope=Scope(partition, "i"))
            for store in (single, *stores):
                embed(store, fake_embedder)
            question = "why did the redis queue lose jobs?"
            vector = fake_embedder.encode_query(question)
            for partition in partitions:
                shard = stores[crc32(partition.encode()) % 3]
                scope = Scope(partition)
                results = [
                    store.candidates(scope, "i", question, vector) for store in (single, shard)
                ]
                np.testing.assert_allclose(results[0].cosine, results[1].cosine, atol=1e-6)
                for name in ("created_at", "thread", "tokens", "terms"):
                    values = [getattr(candidates, name).tolist() for candidates in results]
                    assert values[0] == values[1]
                counts = [
                    [posting.counts.tolist() for posting in candidates.postings]
                    for candidates in results
                ]
                assert counts[0] == counts[1]
                assert contents(single.last(scope, 0)) == contents(shard.last(scope, 0))
            assert len({crc32(partition.encode()) % 3 for partition in partitions}) == 3
            all_holdings = [store.holdings() for store in stores]
            totals = {
                name: sum(holdings[name] for holdings in all_holdings) for name in all_holdings[0]
            }
            assert totals == single.holdings()
        for store in stores:
            store.close()
    finally:
        for server in servers[:2]:
            server.remove()


def test_the_statements_for_a_cluster_name_every_table_once():
    statements = "\n".join(tables.sharding_statements())
    for table in tables.SPREAD:
        assert statements.count(f"create_distributed_table('reservoir.{table}', 'partition'") == 1
    for table in tables.REPLICATED:
        assert statements.count(f"create_reference_table('reservoir.{table}')") == 1


def test_keys_begin_with_the_partition_and_no_sequence_is_used(url):
    keys = behind(
        url,
        """
        SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
        WHERE i.indisunique AND c.relnamespace = 'reservoir'::regnamespace
        """,
    )
    assert {table for table, _ in keys} == {*tables.SPREAD, *tables.REPLICATED}
    assert {first for table, first in keys if table in tables.SPREAD} == {"partition"}
    assert (
        behind(
            url,
            "SELECT 1 FROM pg_class WHERE relkind = 'S' AND relnamespace = "
            "'reservoir'::regnamespace",
        )
        == []
    )


#: What Citus says if the machine of a partition is away: at a statement, and at the commit.
_AWAY = "connection to the remote node me@10.0.0.7:5433 failed with the following error: refused"


@pytest.mark.parametrize("at_commit", [False, True])
def test_a_worker_that_is_away_is_named(url, at_commit):
    behind(
        url,
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"RAISE EXCEPTION '{_AWAY}' USING ERRCODE = '08006'; END $$",
    )
    deferred = "DEFERRABLE INITIALLY DEFERRED" if at_commit else ""
    behind(
        url,
        f"CREATE CONSTRAINT TRIGGER failing AFTER INSERT ON messages {deferred} "
        "FOR EACH ROW EXECUTE FUNCTION fail()",
    )
    with closing(open_store(url)) as store:
        with pytest.raises(StoreError, match=r"a worker of the cluster at 10\.0\.0\.7:5433") as e:
            say(store, "the queue lost jobs")
        assert e.value.exit_code == 3
        assert ("may or may not be stored" in str(e.value)) == at_commit
        behind(url, "DROP TRIGGER failing ON messages")
        say(store, "stored")
        assert len(store.last(EVERYWHERE, 0)) == 1


def test_an_unknown_error_has_the_words_of_the_server_without_what_it_quotes(url):
    behind(
        url,
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        """RAISE EXCEPTION 'out of order near "%%" of it', NEW.content; END $$""",
    )
    behind(
        url, "CREATE TRIGGER failing BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION fail()"
    )
    with closing(open_store(url)) as store, pytest.raises(StoreError) as caught:
        say(store, 'a "secret" word')
    assert "out of order near … of it" in str(caught.value)
    assert "secret" not in str(caught.value)
