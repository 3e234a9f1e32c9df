"""``reservoir db``: commands on a server, and copying a store to a server and back."""

from collections.abc import Iterator
from contextlib import closing
from itertools import product

import psycopg
import pytest
from each import each
from postgres_server import PostgresServer

from reservoir_cli.storage.copying import copy_store
from reservoir_cli.storage.open_store import open_store


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    url = postgres.empty_database()
    yield url
    postgres.drop(url)


def test_every_command_works_on_a_server(cli, url, samples_file):
    server = {"RESERVOIR_DB": url}

    def on_server(*arguments, **options):
        return cli(*arguments, env=server, **options)

    assert on_server("view").out == ""  # the server has no store, and viewing creates none
    assert "none yet" in on_server("db", "status").out
    assert "imported" in on_server("ingest", "--no-embed", str(samples_file)).err
    number = int(on_server("ingest", "--no-embed", stdin="We dropped Redis in May.").out)
    assert on_server("view", "1").out == "user: We dropped Redis in May.\n"
    assert "We dropped Redis" in on_server("search", "redis").out
    assert "We dropped Redis" in on_server("search", "--keyword", '"dropped redis"').out
    assert "We dropped Redis" in on_server("context", "redis?", "--budget", "500").out
    assert on_server("stats", "--json").document["runs"] == 1
    assert on_server("export", "--all-partitions").out.count("\n") == 4
    assert "2 of 2" not in on_server("conversations").out
    assert len(on_server("partitions", "--json").document["partitions"]) == 1
    on_server("partitions", "rename", "default", "other", "--yes")
    on_server("forget", "--id", str(number), "-p", "other", "--yes")
    assert on_server("view", "--id", str(number), "-p", "other", code=1).out == ""
    checks = on_server("doctor", "--repair", "--json").document["checks"]
    assert {check["status"] for check in checks} <= {"ok", "note"}
    assert any(check["detail"].startswith("PostgreSQL 18") for check in checks)
    refused = on_server("backup", "copy.db", code=1)
    assert "pg_dump" in refused.err
    assert "db copy" in refused.err
    status = on_server("db", "status", "--json").document
    assert status["location"] == url
    assert status["store"]["messages"] == 3
    assert status["guarded"] is False


@pytest.fixture
def samples_file(tmp_path):
    file = tmp_path / "three.jsonl"
    file.write_text(
        "".join(
            f'{{"role": "user", "content": "note {number}", "source_id": "{number}", '
            '"source": "s", "partition": "default", "instance": "default", '
            f'"created_at": "2026-05-09T14:00:0{number}+00:00"}}\n'
            for number in range(3)
        )
    )
    return file


def test_a_store_is_copied_to_a_server_and_back(cli, url, samples_file, tmp_path):
    cli("ingest", "--no-embed", str(samples_file))
    result = cli("db", "copy", str(cli.db), url, "--json")
    assert result.document["messages"] == 3
    assert "source and target are equal" in result.err
    cli("db", "copy", url, str(tmp_path / "back.db"))
    first, *others = (
        cli("--db", place, "view", "0", "--json").out for place in (str(cli.db), url, "back.db")
    )
    assert others == [first, first]
    refused = cli("db", "copy", str(cli.db), url, code=2)
    assert "is not empty" in refused.err


def test_a_dry_run_of_a_copy_checks_both_and_writes_nothing(cli, url, samples_file, tmp_path):
    cli("ingest", "--no-embed", str(samples_file))
    for target in (url, str(tmp_path / "new.db")):
        result = cli("db", "copy", "--dry-run", str(cli.db), target, "--json")
        assert result.err == f"would copy 3 messages, 0 embedded; {target} can take them\n"
        assert (result.document["messages"], result.document["dry_run"]) == (3, True)
        assert "none yet" in cli("--db", target, "db", "status").out
        cli("db", "copy", str(cli.db), target)
        refused = cli("db", "copy", "--dry-run", str(cli.db), target, code=2)
        assert "is not empty" in refused.err
    assert "itself" in cli("db", "copy", "--dry-run", str(cli.db), str(cli.db), code=2).err
    nowhere = cli("db", "copy", "--dry-run", str(tmp_path / "no.db"), url, code=3)
    assert "there is no store at" in nowhere.err


@pytest.mark.parametrize("kind", ["file", "server"])
def test_an_interrupted_copy_is_reported(cli, url, samples_file, tmp_path, kind):
    target = url if kind == "server" else str(tmp_path / "copy.db")
    cli("ingest", "--no-embed", str(samples_file))
    with closing(open_store(str(cli.db))) as old, closing(open_store(target)) as new:
        with pytest.raises(OSError, match="killed"):
            copy_store.copy(old, new, interrupt)
    command = f"reservoir db copy {cli.db} {target} resumes it"
    for arguments in (["view"], ["context", "note", "--budget", "400"], ["db", "status"]):
        read = cli("--db", target, *arguments)
        assert read.err.count("a copy that is not finished") == read.err.count(command) == 1
        assert "not recorded" not in read.err
        assert read.out
    for arguments in (
        ["ingest", "--no-embed"],
        ["embed"],
        ["summarize"],
        ["context", "x", "--save"],
    ):
        refused = cli("--db", target, *arguments, stdin="too early", code=3)
        assert refused.err.splitlines() == [
            f"error: the store {target} is a copy that is not finished",
            f"hint: {command}",
        ]
    refused = cli("--db", target, "forget", "--scope", "--yes", code=3)
    assert "error: " in refused.err
    assert "a copy that is not finished" in cli("--db", target, "doctor", code=1).out
    cli("db", "copy", str(cli.db), target)
    assert "not finished" not in cli("--db", target, "ingest", "--no-embed", stdin="now").err


def test_the_status_names_tables_partitions_and_indexes_with_their_sizes(cli, url):
    for text, partition in (("one", "a"), ("two", "a"), ("three", "b")):
        cli("--db", url, "ingest", "--no-embed", "-p", partition, stdin=text)
    status = cli("--db", url, "db", "status", "--json").document
    assert status["partitions"] == [
        {"partition": "a", "messages": 2},
        {"partition": "b", "messages": 1},
    ]
    assert status["machines"] == []
    sizes = {table["table"]: (table["bytes"], table["index_bytes"]) for table in status["tables"]}
    assert {"messages", "words", "embeddings", "properties"} <= sizes.keys()
    assert min(sizes["messages"]) > 0
    assert sum(map(sum, sizes.values())) == status["bytes"]
    shown = cli("--db", url, "db", "status").out
    assert "partition a\t2 messages\n" in shown
    assert "table messages\t" in shown


def test_the_status_of_a_cluster_names_shards_by_table_and_by_machine(cli, url):
    """Use a view with the columns of Citus's own, since Citus is not installed."""
    cli("--db", url, "ingest", "--no-embed", stdin="one")
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("SET allow_system_table_mods = on")
        server.execute(
            """
            CREATE VIEW pg_catalog.citus_shards AS SELECT 'reservoir.messages'::regclass AS
            table_name, shardid, shardid % 2 AS nodeport, 'worker' AS nodename,
            100::bigint AS shard_size FROM generate_series(1, 5) shardid
            """
        )
    status = cli("--db", url, "db", "status", "--json").document
    assert status["tables"] == [{"table": "messages", "shards": 5, "bytes": 500}]
    assert status["machines"] == [
        {"machine": "worker:1", "shards": 3, "bytes": 300},
        {"machine": "worker:0", "shards": 2, "bytes": 200},
    ]
    assert "machine worker:1\t3 shards, 300 bytes\n" in cli("--db", url, "db", "status").out


def interrupt(*_: object) -> None:
    """Leave an unfinished copy, as a program that is killed does."""
    raise OSError("killed")


def test_row_security_is_set_up_when_asked_for(cli, url):
    migrated = cli("--db", url, "db", "migrate", "--rls", "--json")
    assert migrated.document["guarded"] is True
    assert cli("--db", url, "db", "status", "--json").document["guarded"] is True


def test_the_setting_names_the_store_and_its_password_is_not_shown(cli, url):
    secret = url.replace("postgres@", "postgres:geheimnis@")
    cli("config", "--set", f"database={secret}")
    cli.say("on the server")
    assert cli("view").out == "user: on the server\n"
    assert not cli.db.exists()
    for arguments in (
        ["config"],
        ["config", "--json"],
        ["config", "--get", "database"],
        ["config", "--get", "database", "--json"],
        ["db", "status"],
        ["doctor"],
    ):
        result = cli(*arguments)
        assert "postgresql://postgres" in result.out
        assert "geheimnis" not in result.out + result.err
    missing = cli("--db", secret + "x", "view", code=3)
    assert "there is no database" in missing.err
    assert "geheimnis" not in missing.err


@pytest.mark.parametrize(
    "parameters",
    [
        "host=127.0.0.1 dbname=x password=geheim",
        "password = 'ge heim' host=h",
        "dbname=postgresql://me:geheim@h/d",
    ],
)
def test_connection_parameters_are_not_a_path_and_not_shown(cli, parameters, tmp_path):
    results = [
        cli("--db", parameters, "ingest", "--no-embed", stdin="hello", code=2),
        cli("--db", parameters, "view", code=2),
        cli("--db", parameters, "doctor", code=2),
        cli("db", "copy", parameters, "x.db", code=2),
        cli("view", env={"RESERVOIR_DB": parameters}, code=2),
        cli("config", "--set", f"database={parameters}", code=2),
        cli("config"),
    ]
    for result in results:
        assert "heim" not in result.out + result.err
    assert "hint: give the URL of the server, postgresql://USER@HOST" in results[0].err
    assert not [path for path in tmp_path.iterdir() if "=" in path.name]


#: Forms of a URL with a password, and commands that print what was typed.
WITH_PASSWORD = (
    "postgresql://u:geheim@127.0.0.1:1/d",
    "postgresql://u:12/geheim@127.0.0.1:1/d",
    "postgresql://u:a?geheim@127.0.0.1:1/d",
    "postgresql:/u:geheim@127.0.0.1:1/d",
    "postgresql://127.0.0.1:1/d?user=u&password=geheim",
    "mysql://u:geheim@127.0.0.1/d",
)
TYPED = (
    *("ingest", "doctor --db", "vieww --db", "", "backup", "export -o", "db copy"),
    *("init --yes --db", "forget 1 --db", "view -n x --db"),
)


@each(
    ("typed", "store"),
    [*product(TYPED[:3], WITH_PASSWORD), *((typed, WITH_PASSWORD[0]) for typed in TYPED[3:])],
)
def test_no_error_or_hint_shows_the_password_of_a_typed_url(cli, typed, store):
    result = cli(*typed.split(), store, code=None)
    assert result.code
    assert "geheim" not in result.out + result.err


def test_a_path_with_a_folder_may_look_like_connection_parameters(cli):
    assert cli("--db", "./host=h.db", "ingest", "--no-embed", stdin="hello").out == "1\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["db", "migrate", "--rls"], 2, "reservoir.db is a file: this needs a store on a server"),
        (["db", "index", "-p", "p"], 2, "needs a store on a server"),
        (["db", "copy", "nowhere.db", "x.db"], 3, "there is no store"),
        (["--db", "mysql://h/d", "view"], 2, "not supported"),
        (["--db", ":memory:", "ingest"], 2, "would be lost when the command ends"),
    ],
)
def test_commands_for_another_kind_of_store_are_refused(cli, arguments, code, message):
    assert message in cli(*arguments, code=code).err


def test_a_file_has_a_status_too_and_a_cluster_its_statements(cli):
    cli.say("hello")
    status = cli("db", "status", "--json").document
    assert status["engine"].startswith("SQLite")
    assert status["store"]["messages"] == 1
    assert "none yet" not in cli("db", "status").out
    assert (
        "create_distributed_table('reservoir.messages', 'partition')" in cli("db", "shard-sql").out
    )


def test_commands_without_a_server_need_no_driver(cli, tmp_path):
    (tmp_path / "psycopg.py").write_text("raise ImportError")
    env = {"PYTHONPATH": str(tmp_path)}
    assert "create_reference_table" in cli("db", "shard-sql", env=env).out
    refused = cli("db", "index", "-p", "p", env=env, code=2).err
    assert "is a file: this needs a store on a server" in refused
    away = cli("--db", "postgresql://h/d", "view", env=env, code=3).err
    assert "needs the extra postgres" in away


def test_without_a_command_a_group_prints_its_help(cli):
    assert cli("db").out == cli("db", "--help").out
    assert cli("db").out.startswith("Usage: reservoir db")


def test_a_question_gets_the_same_scores_from_a_file_and_a_server(
    cli_with_model, url, samples_file
):
    cli, on_server = cli_with_model, {"RESERVOIR_DB": url}
    for env in ({}, on_server):
        cli("ingest", str(samples_file), env=env)
    for words in (
        ("context", "where do jobs wait?", "--budget", "400", "--format", "json"),
        ("search", "where do jobs wait?", "--json"),
    ):
        local, remote = (cli(*words, env=env).document for env in ({}, on_server))
        assert _scores(local) == _scores(remote)
        assert any(score > 0 for score in _scores(local))


def _scores(document):
    """Round scores to the digits that do not depend on the order of summing."""
    if isinstance(document, dict):
        scores = [document[key] for key in ("cosine", "similarity") if document.get(key)]
        inner = document.values()
    else:
        scores, inner = [], document if isinstance(document, list) else []
    return [round(score, 4) for score in scores] + [
        score for part in inner for score in _scores(part)
    ]
