"""A store on a Citus cluster: members on every machine, and work that stays on one machine."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import citus
import psycopg
import pytest
from behind import behind
from builders import embed
from on_server import EVERYWHERE, HOSTILE, contents, say

from reservoir_cli.errors import StoreError
from reservoir_cli.messages import Filter, Message, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.postgres import tables

pytestmark = pytest.mark.skipif(
    citus.COORDINATOR is None, reason="RESERVOIR_TEST_CITUS names no coordinator"
)
USERS = {"nils": "reservoir_member", "olga": "reservoir_member", "pia": "reservoir_reader"}


@pytest.fixture
def url() -> Iterator[str]:
    """Return the URL of a store with two members of a partition, and a reader of it."""
    location = citus.new_store()
    for name, role in USERS.items():
        if not behind(location, "SELECT 1 FROM pg_roles WHERE rolname = ?", [name]):
            behind(location, f"CREATE ROLE {name} LOGIN")
        behind(location, f"GRANT {role} TO {name}")
        behind(location, "INSERT INTO members VALUES (?, 'team'), (?, ?)", [name, name, name])
    yield location
    behind(location, "DROP SCHEMA reservoir CASCADE")


def test_members_work_by_way_of_every_machine(url, fake_embedder, tmp_path):
    file = tmp_path / "talk.jsonl"
    for number, (nils, olga, pia) in enumerate(zip(*map(citus.urls_of, USERS), strict=True)):
        rows = [{"role": "user", "content": f"row {n}", "conversation_id": "c"} for n in range(3)]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        with ExitStack() as stack:
            first, second, reader, owner = (
                stack.enter_context(Reservoir.open(location, embedder=fake_embedder))
                for location in (nils, olga, pia, url)
            )
            for _ in range(2):
                first.import_files(file, form="reservoir", partition="nils")
            first.ingest([Message("user", f"our queue {number}")], partition="team")
            second.ingest([Message("assistant", "lost jobs")], partition="team")
            second.ingest([Message("user", "mine")], partition="olga", embed=False)
            assert second.embed() == 1
            [kept, lost] = first.view(Scope("team"), 0)
            first.tag(lost.key, "old")
            first.untag(lost.key, "old")
            assert {m.partition for m in first.view(EVERYWHERE, 0)} == {"nils", "team"}
            assert len(first.view(Scope("nils"), 0)) == 3
            found = {hit.message.content for hit in reader.search("queue", partition="team")}
            assert found == {kept.content, lost.content}
            assert {m.partition for m in reader.view(EVERYWHERE, 0)} == {"team"}
            with pytest.raises(StoreError):
                reader.ingest([Message("user", "no")], partition="team")
            with pytest.raises(StoreError, match="may not do this"):
                first.ingest([Message("user", "no")], partition="olga")
            assert second.store.delete([kept.key])
            assert first.store.move_partition("team", "nils") == (1, 0)
            assert contents(owner.view(Scope("olga"), 0)) == ["mine"]
            assert owner.store.problems() == []
            assert first.store.delete(first.store.find(EVERYWHERE))
            assert second.store.delete(second.store.find(EVERYWHERE))
            assert owner.store.holdings()["messages"] == 0
            behind(url, "DELETE FROM tombstones")


def test_no_member_writes_to_a_foreign_partition_by_way_of_any_machine(url):
    with closing(open_store(url)) as store:
        [number] = say(store, "hers", scope=Scope("olga", "olga"))
    rows = f"SELECT 'olga', {number}"
    statements = [f"INSERT INTO reservoir.{table} {rows}" for table in ("pending", "rebuilding")]
    statements.append(f"INSERT INTO reservoir.tags {rows}, 'x' FROM generate_series(1, 1)")
    for location in citus.urls_of("nils"):
        for statement in (*statements, *(f"{each} RETURNING 1" for each in statements)):
            with psycopg.connect(location) as connection, pytest.raises(psycopg.Error):
                connection.execute(statement.encode())
        with psycopg.connect(location) as connection, pytest.raises(psycopg.Error):
            with connection.cursor().copy("COPY reservoir.pins FROM STDIN") as copy:
                copy.write(f"olga\t{number}\t1\n")
    for table in ("rebuilding", "tags", "pins"):
        assert behind(url, f"SELECT * FROM {table}") == []


@pytest.mark.parametrize("user", ["nils", "pia"])
def test_no_user_can_lock_a_table_on_any_machine(url, user):
    allowed = []
    shards = behind(url, "SELECT array_agg(shardid) FROM pg_dist_shard")[0][0]
    for location in citus.urls_of(user):
        locks = [
            f"LOCK TABLE reservoir.{table} IN SHARE ROW EXCLUSIVE MODE" for table in tables.SPREAD
        ]
        locks += [f"SELECT lock_shard_resources(7, ARRAY[{shard}])" for shard in shards[::7]]
        for statement in locks:
            with psycopg.connect(location) as connection:
                try:
                    connection.execute(statement.encode())
                    allowed.append(statement)
                except psycopg.errors.InsufficientPrivilege:
                    pass
    assert allowed == []


def test_open_transactions_by_way_of_a_machine_stop_nobody(url, fake_embedder):
    scope = Scope("olga", "olga")
    for name, statements in HOSTILE.items():
        for at, statement in enumerate(statements):
            machines = citus.urls_of(name)
            with psycopg.connect(machines[at % len(machines)]) as hostile:
                hostile.execute(statement.encode())
                for location in (citus.urls_of("olga")[0], url):
                    with closing(open_store(location, patience=3)) as store:
                        say(store, "the queue lost jobs", scope=scope)
                        embed(store, fake_embedder, scope, threshold=0)
                        store.delete(store.find(scope))
                        assert not store.find(scope), statement
                hostile.rollback()


def test_everyday_work_in_a_partition_asks_its_shard_alone(url, fake_embedder, monkeypatch):
    groups = dict(behind(url, "SELECT shardid, shardminvalue FROM pg_dist_shard"))
    asked: set[str] = set()

    def note(diagnostic) -> None:
        for number in re.findall(r"reservoir\.\w+_(\d+)", diagnostic.message_primary or ""):
            if groups.get(int(number)):  # tables on every machine have none
                asked.add(groups[int(number)])

    connect = psycopg.connect

    def connect_and_listen(*arguments, **options):
        connection = connect(*arguments, **options)
        for setting in ("citus.log_remote_commands", "citus.log_local_commands"):
            connection.execute(f"SET {setting} = on".encode())
        connection.execute("SET client_min_messages = log")
        connection.add_notice_handler(note)
        return connection

    with closing(open_store(url)) as store:
        say(store, "elsewhere", scope=Scope("other", "other"))
        embed(store, fake_embedder, EVERYWHERE, threshold=0)
    monkeypatch.setattr(psycopg, "connect", connect_and_listen)
    for location in (*citus.urls_of("nils"), url):
        with Reservoir.open(location, embedder=fake_embedder) as reservoir:
            work: dict[str, Callable[[], object]] = {
                "ingest": lambda: reservoir.ingest(
                    [Message("user", "the queue lost jobs", conversation_id="c")], partition="team"
                ),
                "search": lambda: reservoir.search("queue", partition="team", link=True),
                "keyword": lambda: reservoir.search("queue", partition="team", mode="keyword"),
                "context": lambda: reservoir.runs.record(
                    reservoir.context("which queue?", partition="team", budget=500)
                ),
                "view": lambda: reservoir.view(Scope("team"), 1),
                "conversations": lambda: reservoir.conversations(Scope("team")),
                "stats": lambda: reservoir.stats(None, "team"),
                "export": lambda: reservoir.export(lambda _: None, Scope("team")),
                "forget": lambda: reservoir.store.delete(
                    reservoir.find(Scope("team"), Filter(text="queue"))
                ),
                "search of an empty partition": lambda: reservoir.search("x", partition="team"),
                "view of an empty partition": lambda: reservoir.view(Scope("team"), 1),
            }
            for name, do in work.items():
                asked.clear()
                do()
                assert len(asked) == 1, (name, location)


def test_distribution_leaves_no_row_on_the_coordinator(url):
    behind(url, "DROP SCHEMA reservoir CASCADE")
    with closing(open_store(url)) as store:
        say(store, "to be distributed")
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in tables.sharding_statements():
            connection.execute(statement.encode())
    with closing(open_store(url)) as store:
        assert contents(store.last(EVERYWHERE, 0)) == ["to be distributed"]
    sizes = behind(url, "SELECT pg_relation_size('messages'), pg_relation_size('words')")
    assert sizes == [(0, 0)]
