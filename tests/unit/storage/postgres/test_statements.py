"""SQL statements for clusters and connection pools: they name a partition and use no session."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pgbouncer
import psycopg
import pytest
from behind import behind
from builders import embed, indexer
from each import each
from on_server import EVERYWHERE, NOW, say
from pgbouncer import Pool
from postgres_server import PostgresServer

from reservoir_cli.errors import StoreError
from reservoir_cli.messages import Message, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.storage import portable_sql
from reservoir_cli.storage.copying import copy_store
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.postgres import admin, ann_index, locks, schema, tables
from reservoir_cli.storage.store import Repaired
from reservoir_cli.storage.tables.summaries import Summaries, Summary
from reservoir_cli.tokens import load_counter

#: The URL of a database of a Citus coordinator, whose schema ``reservoir`` is dropped.
CITUS = os.environ.get("RESERVOIR_TEST_CITUS")


#: Functions whose statements may read all partitions, and why.
ADMINISTRATIVE = {
    "store._next_partition": "db copy walks through the whole store, a partition at a time",
    "dump.read_metadata": "db copy reads the whole store",
    "dump.load_metadata": "db copy replaces what belongs to no message",
    "copy_store._find_shared_ids": "db copy to a file, where ids are unique in all partitions",
    "rows_of_tags_and_pins._orphans": "doctor checks the whole store",
    "list_conversations.newest_conversations": "the page lists the conversations of all partitions",
    "holdings.channels": "the list of partitions itself",
    "context_runs.read": "stats of the whole store",
    "context_runs.read_answer_counts": "doctor compares the answers of the whole store",
    "proxy_ledger.partitions": "the server deletes old entries of every partition",
    "holdings.count": "stats of the whole store",
    "embeddings.begin_model": "the owner changes the model of every partition",
    "embeddings.give_up_model": "the owner changes the model of every partition",
    "embeddings.switch_model": "the owner changes the model of every partition",
    "embeddings._clear_batch": "the owner changes the model of every partition",
    "vectors.add_missing": "the owner changes the model of every partition",
    "repair.count_unindexed": "doctor checks the whole store",
    "repair.rebuild": "doctor --repair makes all of it again",
    "repair._LACKING": "doctor checks the whole store",
    "vectors.note_dimensions": "the owner changes the model of every partition",
    "admin.facts": "db status of the whole store",
    "store._purge": "VACUUM is of tables",
}
#: Conditions by ``where_scope`` and ``in_partition``, which name the partition of a scope if it has
#: one.
CONDITIONS = r"\{(where|condition|in_partition|in_scope|embedded)\}"
_TABLE = rf"(?:\{{SCHEMA\}}\.)?({'|'.join(tables.SPREAD)}|\{{table\}}|\{{embeddings\}})(?!\w)"
_SPREAD = re.compile(rf"\b(FROM|JOIN|INTO|UPDATE|VACUUM \(SKIP_LOCKED\))\s+{_TABLE}")
_BOUND = re.compile(
    rf"\bpartition = (\?|%s)|{CONDITIONS}|c\.partition = m\.partition"
    r"|ledger\.partition = ledger_messages\.partition|m\.partition = conversations\.partition"
    r"|t\.partition = of_partition|q\.partition = t\.partition"
)
_INSERTED = re.compile(r"INSERT INTO \S+( AS \w)?\s*\(([^)]*)\bpartition\b|INTO messages \(\{")


def modules() -> list[Path]:
    """Return the modules of the store, without those of a store in a file."""
    storage = Path(schema.__file__).parents[1]
    paths = sorted(storage.rglob("*.py"))
    return [path for path in paths if "sqlite" not in path.relative_to(storage).parts]


def statements() -> Iterator[tuple[str, str]]:
    """Yield each SQL text about a distributed table in the package: (module.function, text)."""
    for path in modules():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parts = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for part in node.values
        }
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for top in ast.walk(tree):
            name = getattr(top, "name", None) or _constant(top)
            if name is None or isinstance(top, ast.ClassDef | ast.alias):
                continue
            for node in ast.walk(top):
                text = _text(node)
                if text and id(node) not in parts | docs and _SPREAD.search(text):
                    yield f"{path.stem}.{name}", text


def _constant(node: ast.AST) -> str | None:
    is_name = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    return node.targets[0].id if is_name and node.targets[0].id.isupper() else None


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
            for part in node.values
        )
    return None


def test_every_statement_on_a_distributed_table_names_its_partition():
    all_statements = list(statements())
    assert len(all_statements) > 60
    named = {table for _, text in all_statements for table in tables.SPREAD if table in text}
    assert named | {locks.TABLE} == set(tables.SPREAD)
    unbound = {
        function
        for function, text in all_statements
        if not _BOUND.search(text)
        and not _INSERTED.search(text)
        and function != "schema.MIGRATIONS"
    }
    # The inserted columns include the partition.
    inserting = {"context_runs.add", "connection.insert", "summaries._PUT", "sources.PUT"}
    assert unbound - inserting <= ADMINISTRATIVE.keys()
    assert ADMINISTRATIVE.keys() - {function for function, _ in all_statements} == set()


def test_no_statement_reads_two_partitions():
    """A cluster cannot join rows of two partitions; parts of a UNION are planned separately."""
    #: Statements that name the same partition twice, inside and outside of a subquery.
    allowed = {"prepare_rows._open_question"}
    repeated = {
        function
        for function, text in statements()
        if "UNION ALL" not in text and len(re.findall(r"\bpartition = (?:\?|%s)", text)) > 1
    }
    assert repeated == allowed


#: SQL that outlasts a transaction, or locks rows: a writer locks one, in the module ``locks``.
_OF_A_SESSION = re.compile(
    r"\bpg_(try_)?advisory_lock|\bLISTEN\b|\bUNLISTEN\b|\bPREPARE\b|\bTEMP(ORARY)? TABLE\b|"
    r"\bWITH HOLD\b|\bDISCARD\b|\bFOR (NO KEY )?(UPDATE|SHARE)\b|(?<!UPDATE )\bSET SESSION\b|"
    r"(^|; )SET (?!LOCAL\b)"
)


def test_no_statement_changes_its_session():
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = _text(node)
            if text and path.name != "locks.py":
                assert not _OF_A_SESSION.search(text), f"{path.name}: {text}"


@each(
    "statement",
    [
        "SELECT pg_advisory_lock(1)",
        "BEGIN; SET x = 1",
        "SET search_path = a",
        "SELECT 1 FOR UPDATE",
    ],
)
def test_a_statement_that_changes_its_session_would_be_found(statement):
    assert _OF_A_SESSION.search(statement)


@pytest.mark.parametrize("scope", [Scope("p"), Scope("p", "i")])
def test_the_condition_of_a_scope_names_its_partition(scope):
    condition, values = portable_sql.where_scope(scope)
    assert "partition = ?" in condition
    assert values[0] == "p"


def test_work_in_a_partition_sends_statements_about_that_partition_only(
    url, fake_embedder, monkeypatch
):
    """Check the statements that a question, a write and a deletion execute."""
    executed: list[str] = []
    execute = psycopg.Connection.execute

    def spy(self, query, *parameters, **options):
        executed.append(query.decode() if isinstance(query, bytes) else query)
        return execute(self, query, *parameters, **options)

    with closing(open_store(url)) as store:
        say(store, "first")
        embed(store, fake_embedder, Scope("p"))
        monkeypatch.setattr(psycopg.Connection, "execute", spy)
        say(store, "the queue lost jobs", "again")
        embed(store, fake_embedder, Scope("p"))
        with Reservoir.open(url, embedder=fake_embedder) as reservoir:
            reservoir.context("which queue?", partition="p", budget=500)
            reservoir.search("queue", partition="p", link=True)
            reservoir.search("queue", partition="p", mode="keyword")
        keys = store.find(Scope("p"))
        assert store.delete(keys[:1])
    distributed = [sql for sql in executed if _SPREAD.search(sql) and "VACUUM" not in sql]
    assert len(distributed) > 20
    for sql in distributed:
        assert "partition = %s" in sql or _INSERTED.search(sql), sql


def test_the_round_trips_of_a_message_are_few(store, monkeypatch):
    """Begin, the partition's lock, its newest id, the next model, the rows, commit."""
    trips: list[str] = []
    execute, pipeline = psycopg.Connection.execute, psycopg.Connection.pipeline

    def spy(self, query, *parameters, **options):
        if self.pgconn.pipeline_status == 0:
            trips.append(str(query))
        return execute(self, query, *parameters, **options)

    def spy_on_pipeline(self):
        trips.append("rows")
        return pipeline(self)

    say(store, "first")
    monkeypatch.setattr(psycopg.Connection, "execute", spy)
    monkeypatch.setattr(psycopg.Connection, "pipeline", spy_on_pipeline)
    say(store, "the queue lost jobs")
    assert len(trips) == 6, trips


def test_no_policy_has_a_sub_select():
    statements = admin.guard_statements("public", is_cluster=True)
    policies = [policy for policy in statements if "CREATE POLICY" in policy]
    assert len(policies) == len(tables.SPREAD) + 2
    assert not [policy for policy in policies if re.search(r"\bSELECT\b(?! TO)", policy)]


# Sessions


def test_settings_of_a_database_and_of_the_environment_change_nothing(
    postgres, url, monkeypatch, fake_embedder
):
    database = url.rsplit("/", 1)[1]
    behind(url, f"ALTER DATABASE {database} SET array_nulls = off")
    behind(url, f"ALTER DATABASE {database} SET client_encoding = 'LATIN1'")
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII")
    for parameters in ("", "?client_encoding=LATIN1"):
        with closing(open_store(url + parameters)) as store:
            [number] = say(store, "京都 naïve", scope=Scope("Zürich", "i"))
            [message] = store.by_id([number], Scope("Zürich"))
            assert (message.content, message.name, message.tool_call_id) == (
                "京都 naïve",
                None,
                None,
            )
            assert message.conversation_id is None
            embed(store, fake_embedder)
            assert store.problems() == []


def test_a_database_without_an_encoding_is_refused_in_a_line(postgres):
    postgres.sql("CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
    try:
        with pytest.raises(StoreError, match="encoding of the database is SQL_ASCII") as caught:
            open_store(postgres.url("ascii"))
        assert caught.value.exit_code == 3
        assert "--encoding UTF8" in str(caught.value.hint)
    finally:
        postgres.sql("DROP DATABASE ascii")


@pytest.fixture
def pool(postgres: PostgresServer) -> Iterator[Pool]:
    """Run a pgbouncer in transaction mode in front of the server."""
    if pgbouncer.program() is None:
        pytest.skip("pgbouncer is not installed: apt-get install pgbouncer")
    running = Pool(postgres.port)
    yield running
    running.stop()


def test_a_store_works_through_a_pool_in_transaction_mode(postgres, pool, fake_embedder):
    direct = postgres.empty_database()
    url = pool.url(direct)
    with closing(open_store(url)) as first, closing(open_store(url)) as second:
        with first.write():  # so that the other store gets an unused connection
            say(first, "of one", scope=Scope("a", "i"))
            say(second, "of two", scope=Scope("b", "i"))
            assert [message.content for message in second.last(EVERYWHERE, 0)] == ["of two"]
            with closing(open_store(url)) as third, second.snapshot():
                assert len(third.find(EVERYWHERE)) == 1
        embed(second, fake_embedder)
        ann_index.build(first, "a", lambda *_: None)
        with first.write():
            assert ann_index.drop(second, "a")
        with Reservoir.open(url, embedder=fake_embedder) as reservoir:
            assert reservoir.search("of two", scope=EVERYWHERE)[0].message.content == "of two"
        assert first.delete(first.find(Scope("a")))
        assert second.move_partition("b", "c") == (1, 0)
        assert second.repair() == Repaired()
        assert first.problems() == []
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE, url, str(number)]) for number in range(6)
    ]
    assert [process.wait(300) for process in writers] == [0] * 6
    with closing(open_store(direct)) as store:
        assert store.holdings()["messages"] == 1 + 6 * 20
        assert store.problems() == []
    postgres.drop(direct)


WRITE = """
import sys
from datetime import UTC, datetime
from reservoir_cli.messages import Message, Scope
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.tokens import load_counter
url, name = sys.argv[1:]
store, counter = open_store(url), load_counter("approximate")
for number in range(20):
    scope = Scope("shared" if number % 2 else f"own-{name}", "i")
    store.add(scope, [Message("user", f"{name}-{number}")], counter=counter, now=datetime.now(UTC))
"""


# All commands, on a cluster if there is one


@pytest.fixture(params=["server", "cluster"])
def round_url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "cluster":
        if CITUS is None:
            pytest.skip("RESERVOIR_TEST_CITUS names no coordinator")
        behind(CITUS, "DROP SCHEMA IF EXISTS reservoir CASCADE")
        open_store(CITUS).close()
        for statement in tables.sharding_statements():
            behind(CITUS, statement)
        yield CITUS
        return
    server = request.getfixturevalue("postgres")
    url = server.store_database()
    yield url
    server.drop(url)


def test_all_commands_on_a_server_or_cluster(round_url, tmp_path, fake_embedder):
    other = type(fake_embedder)("other", "other-8")
    with Reservoir.open(round_url, embedder=fake_embedder) as reservoir:
        store = reservoir.store
        for partition in "abcd":
            first_messages = [
                Message("user", f"{partition} {number}: the queue") for number in range(20)
            ]
            reservoir.ingest(first_messages, partition=partition)
            summary = Summary(partition, partition, "talk", partition, "jobs", "extract", 1)
            Summaries(store).put(summary)
            answer = [Message("assistant", f"{partition}: lost", source="s", tags=("kept",))]
            reply_scope = Scope(partition, f"{partition}-replies")
            question = [Message("user", f"{partition}: which?", source="s")]
            for messages in (question, answer):
                store.add(
                    reply_scope, messages, counter=load_counter("approximate"), now=NOW, pair=True
                )
            question_row, answer_row = store.last(reply_scope, 0)
            assert question_row.trace_id == answer_row.trace_id
            assert answer_row.tags == ("kept",)
            assert store.delete(store.find(reply_scope))
        assert reservoir.embed() == 0
        reservoir.runs.record(reservoir.context("which queue?", partition="a", budget=500))
        assert len(reservoir.search("queue", scope=EVERYWHERE, limit=99)) == 80
        assert len(reservoir.search("queue", mode="keyword", scope=EVERYWHERE, limit=99)) == 80
        exported: list[str] = []
        reservoir.export(exported.append, EVERYWHERE)
        assert "".join(exported).count("the queue") == 80
        assert store.delete(store.find(Scope("a"))[:5])
        assert store.move_partition("a", "e") == (15, 0)
        assert store.move_partition("b", "e") == (20, 0)
        assert [summary.digest for summary in Summaries(store).read(Scope("e"))] == ["a"]
        assert store.delete(store.find(Scope("c")))
        assert store.channels() == [("e", "e", 35), ("d", "d", 20)]
        assert len(list(store.ids_by_conversation(EVERYWHERE))) == 2
        with closing(open_store(str(tmp_path / "copy.db"))) as file:
            copy_store.copy(store, file, lambda *_: None)
            indexer(store, other).rebuild()
            assert store.active_model() == (other.model_id, other.name)
            ann_index.build(store, "e", lambda *_: None)
            assert ann_index.drop(store, "e")
            admin.guard(store)
            assert admin.facts(store)["guarded"]
            store.repair()
            assert store.problems() == []
            assert store.delete(store.find(EVERYWHERE))
            assert store.holdings()["messages"] == 0
            assert len(file.find(EVERYWHERE)) == 55
    with suppress(StoreError):
        behind(round_url, "DROP SCHEMA reservoir CASCADE")
    with closing(open_store(str(tmp_path / "copy.db"))) as file:
        with closing(open_store(round_url)) as target:
            copy_store.copy(file, target, lambda *_: None)
            assert copy_store._digest(target) == copy_store._digest(file)
