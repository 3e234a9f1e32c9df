"""A store on a server: opening it, what it refuses, who may do what, and servers that die."""

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

import numpy as np
import psycopg
import pytest
from behind import behind
from postgres_server import PostgresServer, copied, installed

from reservoir_cli.errors import StoreError, StoreLockedError, UsageError
from reservoir_cli.messages import Key, Message, Scope, StoredMessage
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.retrieval import indexing
from reservoir_cli.storage import replicate
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.factory import open_store
from reservoir_cli.storage.postgres import admin, ids, keyword_search, locks, schema, tables
from reservoir_cli.storage.postgres.connection import place_of
from reservoir_cli.storage.postgres.stemmer import Stemmer
from reservoir_cli.storage.records import Passage
from reservoir_cli.storage.sources import SourceFile, Sources
from reservoir_cli.tokens import load_counter
from reservoir_cli.transfer import forget

NOW = datetime(2026, 5, 9, 12, tzinfo=UTC)
COUNTER = load_counter("approximate")
EVERYWHERE = Scope(None)
HERE = Scope("p", "i")


def say(store: Store, *texts: str, scope: Scope = HERE) -> list[int]:
    messages = [Message("user", text, created_at=NOW, source="s") for text in texts]
    added = store.add(scope, messages, counter=COUNTER, now=NOW)
    return [each.id for each in added if each]


def contents(messages: list[StoredMessage]) -> list[str]:
    return [each.content for each in messages]


def embed(store: Store, embedder, threshold: float = 0.5) -> None:
    indexing.embed_pending(
        store, embedder, EVERYWHERE, synapse_threshold=threshold, progress=lambda *_: None
    )


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """A database with an empty store."""
    made = postgres.store_database()
    yield made
    postgres.drop(made)


@pytest.fixture
def empty(postgres: PostgresServer) -> Iterator[str]:
    """A database with nothing in it."""
    made = postgres.empty_database()
    yield made
    postgres.drop(made)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(open_store(url)) as opened:
        yield opened


# Opening


def test_reading_a_database_without_a_store_makes_nothing(empty: str) -> None:
    with closing(open_store(empty, create=False)) as store:
        assert store.last(EVERYWHERE, 0) == []
        assert store.size() is None
        assert store.location == empty
    assert behind(empty, "SELECT 1 FROM pg_namespace WHERE nspname = 'reservoir'") == []


def test_a_store_on_a_server_is_set_up_at_first_use_and_kept(empty: str) -> None:
    with closing(open_store(empty)) as store:
        say(store, "kept")
    with closing(open_store(empty.replace("postgresql", "postgres"), create=False)) as store:
        assert contents(store.last(EVERYWHERE, 0)) == ["kept"]
        assert store.engine().startswith("PostgreSQL 18.")
        assert store.size()


def test_twelve_processes_may_set_up_one_store_at_once(empty: str) -> None:
    failed: list[BaseException] = []

    def open_and_say(number: int) -> None:
        try:
            with closing(open_store(empty)) as store:
                say(store, str(number))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=open_and_say, args=[number]) for number in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failed == []
    with closing(open_store(empty)) as store:
        assert len(store.last(EVERYWHERE, 0)) == 12


def test_a_newer_store_is_refused_and_left_alone(url: str) -> None:
    behind(url, "INSERT INTO migrations (number, name) VALUES (99, 'later')")
    with pytest.raises(StoreError, match=r"newer reservoir \(schema 99") as caught:
        open_store(url)
    assert caught.value.exit_code == 3
    assert behind(url, "SELECT max(number) FROM migrations") == [(99,)]


def test_a_migration_that_fails_leaves_nothing(empty: str, monkeypatch) -> None:
    broken = (*schema.MIGRATIONS, ("broken", "CREATE TABLE half (a int); SELECT nothing_there()"))
    monkeypatch.setattr(schema, "MIGRATIONS", broken)
    with pytest.raises(StoreError):
        open_store(empty)
    assert behind(empty, "SELECT 1 FROM pg_namespace WHERE nspname = 'reservoir'") == []
    monkeypatch.undo()
    open_store(empty).close()


@pytest.mark.usefixtures("postgres")  # skipped where there is no server
def test_a_server_without_pgvector_is_one_clear_error() -> None:
    programs = installed("18")
    assert programs
    plain = copied(programs.parent)
    server = None
    try:
        for each in plain.glob("share/**/vector*.control"):
            each.unlink()
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
    ("version", "encoding", "vector", "said"),
    [
        (140_011, "UTF8", "0.8.0", "is PostgreSQL 14"),
        (160_004, "UTF8", "0.7.4", "has pgvector 0.7.4"),
        (160_004, "LATIN1", "0.8.0", "keeps text as LATIN1"),
    ],
)
def test_a_server_that_cannot_hold_a_store_is_refused(version, encoding, vector, said) -> None:
    with pytest.raises(StoreError, match=said):
        schema._refuse(version, encoding, vector)
    schema._refuse(150_000, "UTF8", "0.8.0")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://me:geheim@h:5/d", "postgresql://me@h:5/d"),
        ("postgres://me:ge%40heim@h/d?sslmode=require", "postgresql://me@h/d"),
        ("postgresql://h/d?user=me&password=geheim", "postgresql://me@h/d"),
        ("postgresql://h/d?sslkey=k&sslpassword=geheim", "postgresql://h/d"),
    ],
)
def test_the_place_of_a_store_is_told_without_its_password(url: str, place: str) -> None:
    assert place_of(url) == place


@pytest.mark.parametrize("url", ["postgresql://me:geheim@h:port/d", "postgresql://h/d?geheim=1"])
def test_a_url_that_is_none_is_not_quoted(url: str) -> None:
    with pytest.raises(StoreError, match=r"not valid|no such host") as caught:
        open_store(url)
    assert "geheim" not in f"{caught.value.message} {caught.value.hint}"


def test_errors_of_a_server_are_ours_and_quote_no_text(store: Store) -> None:
    say(store, "quokkas")
    behind(store.location, "ALTER TABLE messages ADD CHECK (content <> 'secretquux')")
    with pytest.raises(StoreError) as caught:
        say(store, "secretquux")
    assert "quux" not in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.__cause__ is None
    assert contents(store.last(EVERYWHERE, 0)) == ["quokkas"]


def test_a_server_that_is_not_there_is_said_to_be(unused_port: int) -> None:
    with pytest.raises(StoreError, match="nothing listens there") as caught:
        open_store(f"postgresql://me:geheim@127.0.0.1:{unused_port}/d?connect_timeout=1")
    assert caught.value.exit_code == 3
    assert "geheim" not in caught.value.message


@pytest.fixture
def unused_port(monkeypatch) -> int:
    monkeypatch.setattr("reservoir_cli.storage.postgres.connection._PAUSE", 0.001)
    return 1


def test_parameters_for_tls_reach_the_library(url: str) -> None:
    with pytest.raises(StoreError, match="TLS failed"):
        open_store(f"{url}?sslmode=require")


def test_without_psycopg_the_error_names_the_extra() -> None:
    script = (
        "import sys; sys.modules['psycopg'] = None\n"
        "sys.argv[1:] = ['--db', 'postgresql://h/d', 'view']\n"
        "from reservoir_cli.cli.app import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "pip install 'psycopg[binary]'" in done.stderr


# Reading and writing


def test_ids_are_ordered_by_time_and_fit_a_double(store: Store) -> None:
    given = say(store, *map(str, range(5_000)))
    assert given == sorted(set(given))
    assert given[-1] < 2**53
    made = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(milliseconds=given[0] // 4096)
    assert abs(made - datetime.now(UTC)) < timedelta(minutes=5)
    assert say(store, "next")[0] > given[-1]


def test_ids_of_one_writer_rise_whatever_its_clock_does(store: Store, monkeypatch) -> None:
    given = say(store, "a")
    for seconds in (1_600_000_000, 9_300_000_000, 0, 1_700_000_000):
        monkeypatch.setattr(time, "time_ns", lambda now=seconds: now * 1_000_000_000)
        given += say(store, "b", scope=Scope("q", "q"))
        store.delete([Key("q", given[-1])])
        given += say(store, "c", "d")
    assert given == sorted(set(given))
    assert given[-1] < 2**53


def test_another_writer_of_the_partition_goes_on_behind_what_is_there(
    url: str, store: Store, monkeypatch
) -> None:
    [first] = say(store, "question")
    at = first // 4096 + 1_577_836_800_000
    for behind_by, is_later in ((5, True), (40 * 86_400_000, False)):  # one far ahead is left alone
        monkeypatch.setattr(time, "time_ns", lambda late=behind_by: (at - late) * 10**6)
        with closing(open_store(url)) as other:
            assert (say(other, "reply")[0] > first) == is_later


def test_an_id_that_is_taken_meanwhile_is_replaced_by_another(
    url: str, store: Store, monkeypatch
) -> None:
    """As where no lock holds, behind two coordinators."""
    monkeypatch.setattr(time, "time_ns", lambda: 1_900_000_000_000_000_000)
    monkeypatch.setattr(ids, "randbelow", lambda _: 0)
    newest, meddled = ids._newest, 0

    def look_a_little_early(*place) -> int:
        nonlocal meddled
        found = newest(*place)
        if not meddled:
            meddled = (1_900_000_000_000 - 1_577_836_800_000) * 4096
            behind(
                url,
                "INSERT INTO messages SELECT 'p', ?, 't', NULL, 'i', 'user', 'first', NULL, NULL, "
                "NULL, 1, 's', 'x', 1, 'c', NULL, 1, 0, 1",
                [meddled],
            )
        return found

    monkeypatch.setattr(ids, "_newest", look_a_little_early)
    say(store, "second")
    assert contents(store.last(HERE, 0)) == ["first", "second"]
    assert store.last(HERE, 1)[0].id == meddled + 1


def test_two_partitions_may_have_the_same_id_and_each_is_itself(
    url: str, store: Store, tmp_path: Path, monkeypatch, fake_embedder
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_900_000_000_000_000_000)
    monkeypatch.setattr(ids, "randbelow", lambda _: 0)
    numbers = []
    for partition in "ab":
        with closing(open_store(url)) as writer:
            texts = [f"zeta one {partition}", f"zeta two {partition}"]
            numbers.append(say(writer, *texts, scope=Scope(partition, "i")))
            embed(writer, fake_embedder, 0)
    assert numbers[0] == numbers[1]
    one, two = numbers[0]
    with closing(open_store(str(tmp_path / "copy.db"))) as file:
        replicate.copy(store, file, lambda *_: None)
        assert sorted(contents(file.last(EVERYWHERE, 0))) == sorted(
            contents(store.last(EVERYWHERE, 0))
        )
        assert file.holdings() == store.holdings()
        assert file.problems() == []
    with Reservoir.open(url, embedder=fake_embedder) as reservoir:
        with pytest.raises(UsageError, match=f"message {one} is in a and b"):
            reservoir.forget([one])
        for mode in ("keyword", "hybrid", "semantic"):
            hits = reservoir.search("zeta two b", mode=mode, scope=EVERYWHERE)
            assert len({hit.message.key for hit in hits}) == len(hits)
            assert {hit.message.content for hit in hits[:2]} == {"zeta two a", "zeta two b"}, mode
            assert hits[0].cosine is None or hits[0].cosine == pytest.approx(1)
            linked = reservoir.search("zeta two b", mode=mode, scope=EVERYWHERE, link=True)
            for hit in linked:
                assert {each.partition for each in hit.linked} <= {hit.message.partition}
    keys = store.find(EVERYWHERE)
    assert len(store.passages(keys)) == len(set(keys)) == 4
    store.mark_secrets({Key("a", one): ["password"]})
    store.update_counts({Key("b", one): 77}, "new")
    forget.forget(store, [Key("b", two)])
    kept = {each.key: each for each in store.last(EVERYWHERE, 0)}
    assert set(kept) == {("a", one), ("a", two), ("b", one)}
    assert kept["a", one].secrets == ("password",)
    assert kept["b", one].tokens == 77
    assert store.move_partition("b", "a") == (1, 0)  # where it gets a new id
    assert sorted(contents(store.last(Scope("a"), 0))) == ["zeta one a", "zeta one b", "zeta two a"]
    assert len(store.find(Scope("a"))) == len(set(store.find(EVERYWHERE))) == 3
    assert store.problems() == []


def test_messages_are_in_the_order_of_a_file(store: Store, tmp_path: Path, monkeypatch) -> None:
    """Also where many have one time, and where the clock is set back between two writes."""
    pick = np.random.default_rng(4)
    real = time.time_ns()
    with closing(open_store(str(tmp_path / "file.db"))) as file:
        for number in range(60):
            ticks = real + int(pick.integers(-2, 3)) * 10**9
            monkeypatch.setattr(time, "time_ns", lambda now=ticks: now)
            scope = Scope("pq"[number % 2], "i")
            texts = [f"{number}.{at}" for at in range(int(pick.integers(1, 4)))]
            for each in (store, file):
                say(each, *texts, scope=scope)
        for partition in "pq":
            assert contents(store.last(Scope(partition), 0)) == contents(
                file.last(Scope(partition), 0)
            )


WRITE = """
import sys
from datetime import UTC, datetime
from reservoir_cli.messages import Message, Scope
from reservoir_cli.storage.factory import open_store
from reservoir_cli.tokens import load_counter
url, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store, counter = open_store(url), load_counter("approximate")
for number in range(count):
    scope = Scope("shared" if number % 2 else f"own-{name}", "i")
    store.add(scope, [Message("user", f"{name}-{number}") for _ in range(3)],
              counter=counter, now=datetime.now(UTC))
"""


def test_eight_writers_and_four_readers_lose_nothing(url: str) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE, url, str(number), "12"])
        for number in range(8)
    ]
    failed: list[BaseException] = []

    def read() -> None:
        try:
            with closing(open_store(url)) as store:
                before = 0
                while any(each.poll() is None for each in writers):
                    found = store.candidates(Scope("shared"), "i", "hello 3-7", None)
                    with store.snapshot():
                        assert len(store.last(EVERYWHERE, 0)) == store.holdings()["messages"]
                    assert len(found.ids) >= before
                    before = len(found.ids)
        except BaseException as error:
            failed.append(error)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for each in readers:
        each.start()
    assert [each.wait(300) for each in writers] == [0] * 8
    for each in readers:
        each.join()
    assert failed == []
    with closing(open_store(url)) as store:
        found = store.last(EVERYWHERE, 0)
        assert len({each.key for each in found}) == len(found) == 8 * 12 * 3
        assert len({each.content for each in found}) == 8 * 12
        assert store.count_unembedded(EVERYWHERE) == 8 * 12 * 3
        assert store.problems() == []


def test_writers_of_other_partitions_do_not_wait(url: str, store: Store) -> None:
    with closing(open_store(url, patience=0.05)) as other, store.write():
        say(store, "here")
        say(other, "there", scope=Scope("q", "q"))
        with pytest.raises(StoreLockedError) as caught:
            say(other, "here too")
        assert caught.value.exit_code == 4
    assert sorted(contents(store.last(EVERYWHERE, 0))) == ["here", "there"]


def test_embedding_holds_the_lock_of_one_partition_at_a_time(
    url: str, store: Store, fake_embedder
) -> None:
    for partition in "abc":
        say(store, f"of {partition}", scope=Scope(partition, "i"))
    with store.write():
        say(store, "someone writes here", scope=Scope("b", "i"))
        with closing(open_store(url, patience=0.05)) as other, pytest.raises(StoreLockedError):
            embed(other, fake_embedder)
    waiting = {name: store.count_unembedded(Scope(name)) for name in "abc"}
    assert waiting == {"a": 0, "b": 2, "c": 1}


def test_what_two_deadlocked_writers_wanted_is_done_at_last(url: str, store: Store) -> None:
    """One of them is ended by the server, and begins again by itself."""
    both_hold = threading.Barrier(2, timeout=120)
    failed: list[BaseException] = []

    def write(first: str, second: str) -> None:
        tried = 0
        with closing(open_store(url)) as own:

            def work() -> None:
                nonlocal tried
                tried += 1
                locks.partitions(own._connection, [first])
                if tried == 1:
                    both_hold.wait()
                say(own, f"{first}{second}", scope=Scope(second, "i"))

            try:
                own._written(work)
            except BaseException as error:
                failed.append(error)

    behind(url, "SELECT 1")
    threads = [threading.Thread(target=write, args=each) for each in ("ab", "ba")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failed == []
    assert sorted(contents(store.last(EVERYWHERE, 0))) == ["ab", "ba"]


LONG = [
    "redis " * 300,
    "京都" * 9_000 + " redis",
    "x" * 5_000 + " redis",
    " ".join(f"word{number}" for number in range(40_000)) + " redis redis",
    "don't \\ 'quote' \\' redis:*|&!()",
]


@pytest.mark.parametrize("apart", [False, True], ids=["by rank", "taken apart"])
def test_counts_of_any_text_are_those_of_a_file(store: Store, tmp_path, monkeypatch, apart) -> None:
    if apart:
        monkeypatch.setattr(keyword_search, "_FEW", 0)
    with closing(open_store(str(tmp_path / "file.db"))) as file:
        for each in (store, file):
            say(each, *LONG)
        for question in ("redis", "京都 redis", "word39999 redis", "quote don't", "x" * 5_000):
            one, two = (each.candidates(HERE, "i", question, None) for each in (store, file))
            assert [each.counts.tolist() for each in one.postings] == [
                each.counts.tolist() for each in two.postings
            ]
        for typed in (
            "redis",
            '"word39999 redis redis"',
            "word3999*",
            '"京都 京都"',
            '"quote redis"',
        ):
            hits = [each.keyword(typed, HERE, 9)[0] for each in (store, file)]
            assert [score for _, score in hits[0]] == pytest.approx([score for _, score in hits[1]])
            assert hits[0]


def test_a_stem_is_what_the_tokenizer_of_a_file_makes_of_a_word() -> None:
    with closing(Stemmer()) as stemmer:
        assert stemmer.stems(["Running queues, naïve!", ""]) == [["run", "queue", "naiv"], []]


def test_forgotten_words_are_in_no_row(store: Store, fake_embedder) -> None:
    ids = say(store, "kept", "zyxwvuts secret", "also kept")
    embed(store, fake_embedder)
    forget.forget(store, [Key("p", ids[1])])
    for (table,) in behind(
        store.location,
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = "
        "'reservoir'::regnamespace",
    ):
        rows = behind(store.location, f"SELECT t::text FROM {table} t")
        assert not [row for row in rows if "zyxw" in row[0]]
    assert store.forgotten([Message("user", "x", source="s", source_id="y")]) == [False]
    assert store.problems() == []


def test_a_large_partition_may_have_an_index_that_says_how_good_it_is(store: Store) -> None:
    pick = np.random.default_rng(1)
    vectors = pick.standard_normal((1_500, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = say(store, *map(str, range(1_500)))
    store.activate_model("m", "model")
    passages = {
        Key("p", number): [Passage(number, 0, 0, 1, vector)]
        for number, vector in zip(ids, vectors, strict=True)
    }
    passages[Key("p", ids[7])].append(Passage(ids[7], 1, 0, 1, vectors[7]))
    store.add_passages("m", passages, 1.1)
    say(store, "pending")
    exact = store.candidates(Scope("p"), "i", "", vectors[7])
    assert (~np.isnan(exact.cosine)).sum() == 1_500
    made = admin.index(store, "p", lambda *_: None)
    assert made.recall > 0.9
    assert admin.facts(store)["indexes"] == [{"partition": "p", "recall": made.recall}]
    near = store.candidates(Scope("p"), "i", "", vectors[7])
    assert np.isnan(near.cosine).tolist() == np.isnan(exact.cosine).tolist()
    best = np.argsort(-np.nan_to_num(exact.cosine, nan=-1))[:50]
    shared = np.isclose(near.cosine[best], exact.cosine[best], atol=1e-5)
    assert shared.mean() > 0.9
    assert (np.nan_to_num(near.cosine - exact.cosine) > -1e-5).all()
    assert near.passages.tolist() == exact.passages.tolist()
    assert near.passages[near.ids == ids[7]].tolist() == [2]
    assert len(np.unique(np.nan_to_num(near.cosine))) < 1_100  # the rest was not compared
    assert admin.drop_index(store, "p")
    again = store.candidates(Scope("p"), "i", "", vectors[7])
    np.testing.assert_allclose(again.cosine, exact.cosine, atol=1e-6)


# Users of the server


@pytest.fixture
def users(postgres: PostgresServer, url: str) -> Iterator[dict[str, str]]:
    """Two users with a partition each and a shared one, a reader, and a stranger."""
    with closing(open_store(url)) as store:
        admin.guard(store)
        admin.guard(store)  # again does no harm
    for name in ("anna", "ben", "reader", "stranger"):
        behind(url, f"CREATE ROLE {name} LOGIN")
    for name, partitions in (("anna", ["a", "all"]), ("ben", ["b", "all"])):
        behind(url, f"GRANT reservoir_member TO {name}")
        for each in partitions:
            behind(url, "INSERT INTO members VALUES (?, ?)", [name, each])
    behind(url, "GRANT USAGE ON SCHEMA reservoir TO reader")
    behind(url, "GRANT SELECT ON ALL TABLES IN SCHEMA reservoir TO reader")
    database = url.rsplit("/", 1)[1]
    yield {name: postgres.url(database, name) for name in ("anna", "ben", "reader", "stranger")}
    for name in ("anna", "ben", "reader", "stranger"):
        behind(url, f"DROP OWNED BY {name}")
        behind(url, f"DROP ROLE {name}")


def test_a_user_sees_and_writes_their_partitions_only(url: str, users, fake_embedder) -> None:
    with closing(open_store(url)) as owner:
        say(owner, "of b", scope=Scope("b", "b"))
        embed(owner, fake_embedder)
    with closing(open_store(users["anna"])) as anna, closing(open_store(users["ben"])) as ben:
        say(anna, "of a", scope=Scope("a", "a"))
        [shared] = say(anna, "for all", scope=Scope("all", "all"))
        embed(anna, fake_embedder)
        assert contents(anna.last(EVERYWHERE, 0)) == ["of a", "for all"]
        assert contents(ben.last(EVERYWHERE, 0)) == ["of b", "for all"]
        assert anna.keyword("of b", EVERYWHERE, 9)[0] == anna.keyword("of", EVERYWHERE, 9)[0]
        found = anna.candidates(EVERYWHERE, None, "of b", fake_embedder.encode_query("of b"))
        assert len(found.ids) == 2
        with pytest.raises(StoreError) as caught:
            say(anna, "intruding", scope=Scope("b", "b"))
        assert caught.value.exit_code == 3
        ben.delete([Key("all", shared)])
        assert list(anna.find(EVERYWHERE)) == [anna.last(EVERYWHERE, 0)[0].key]
        assert anna.move_partition("b", "a") == (0, 0)
    with closing(open_store(url)) as owner:
        assert sorted(contents(owner.last(EVERYWHERE, 0))) == ["of a", "of b"]
        assert owner.problems() == []


def test_a_user_without_a_right_to_write_reads(url: str, users) -> None:
    behind(url, "ALTER TABLE messages DISABLE ROW LEVEL SECURITY")
    with closing(open_store(url)) as owner:
        say(owner, "kept")
    with closing(open_store(users["reader"])) as reader:
        assert reader.read_only
        assert contents(reader.last(EVERYWHERE, 0)) == ["kept"]
        with pytest.raises(StoreError, match="cannot be written to"):
            say(reader, "more")


def test_a_member_cannot_change_the_model_and_the_owner_can(url: str, users, fake_embedder) -> None:
    other = type(fake_embedder)("other", "other-8")
    with closing(open_store(users["anna"])) as anna:
        say(anna, "of a", scope=Scope("a", "a"))
        embed(anna, fake_embedder)  # the first model is whose who comes first
        assert anna.active_model() == (fake_embedder.model_id, fake_embedder.name)
        for embedder in (fake_embedder, other):
            with pytest.raises(StoreError, match="not for a member to change") as caught:
                rebuild(anna, embedder)
            assert "its owner does" in str(caught.value.hint)
        with closing(open_store(url)) as owner:
            kept_as = owner.begin_model(other.model_id, other.name)
            with pytest.raises(StoreError, match="not for a member to change"):
                anna.give_up_model()
            say(anna, "meanwhile", scope=Scope("a", "a"))
            embed(anna, fake_embedder)
            rebuild(owner, other)
            assert owner.next_model() is None
            assert kept_as == owner.active_model()[0] == other.model_id
        assert not anna.clear_former_model()
        assert anna.count_unembedded(EVERYWHERE) == 0
        anna.give_up_model()  # there is none


def rebuild(store: Store, embedder) -> int:
    return indexing.rebuild(store, embedder, synapse_threshold=0.5, progress=lambda *_: None)


@pytest.mark.parametrize("begun", [False, True], ids=["switched", "begun"])
def test_the_owner_brings_all_to_one_model_whatever_was_left(
    store: Store, fake_embedder, begun: bool
) -> None:
    """As when a member changed the model, who sees some of the messages only."""
    other = type(fake_embedder)("other", "other-8")
    for partition in "ab":
        say(store, *"12345", scope=Scope(partition, partition))
    embed(store, fake_embedder)
    behind(
        store.location, "INSERT INTO rebuilding SELECT 'b', id FROM messages WHERE partition = 'b'"
    )
    if begun:
        behind(store.location, "DELETE FROM rebuilding WHERE mod(message_id, 2) = 0")
        for key, value in (("id", other.model_id), ("name", other.name)):
            behind(
                store.location, "INSERT INTO properties VALUES (?, ?)", [f"next_model_{key}", value]
            )
    else:
        behind(
            store.location,
            "INSERT INTO embeddings SELECT partition, message_id, ?, passage, instance, start, "
            "\"end\", vector FROM embeddings WHERE partition = 'b'",
            [other.model_id],
        )
    for embedder in (other, fake_embedder, fake_embedder):
        assert rebuild(store, embedder) == 10
        assert behind(
            store.location, "SELECT model_id, count(*)::int FROM embeddings GROUP BY 1"
        ) == [(embedder.model_id, 10)]
        assert store.count_unembedded(EVERYWHERE) == 0
        assert store.problems() == []


#: What a member might try on what all share.
TRIED = (
    "UPDATE properties SET value = 'x' WHERE key = 'forgotten_key'",
    "DELETE FROM properties WHERE key = 'forgotten_key'",
    "INSERT INTO properties VALUES ('forgotten_key', 'x') "
    "ON CONFLICT (key) DO UPDATE SET value = 'x'",
    "UPDATE properties SET value = 'x' WHERE key = 'embedding_model_id'",
    "UPDATE properties SET value = '3' WHERE key = 'embedding_dimensions'",
    "INSERT INTO properties VALUES ('unfinished_copy', '{}')",
    "INSERT INTO properties VALUES ('last_forgotten_id:a', '9999999999999999')",
    "INSERT INTO properties VALUES ('index:a', '{}')",
    "TRUNCATE properties",
    "DELETE FROM forgotten",
    "UPDATE members SET partition = 'b' WHERE partition = 'a'",
)


def test_a_member_changes_nothing_of_what_all_share(url: str, users, fake_embedder) -> None:
    with closing(open_store(url)) as owner:
        # What an earlier version granted is taken back.
        behind(url, "GRANT SELECT, INSERT, UPDATE, DELETE ON properties TO reservoir_member")
        behind(url, "CREATE POLICY own ON properties FOR UPDATE TO reservoir_member USING (true)")
        admin.guard(owner)
    for name, partition in (("anna", "a"), ("ben", "b")):
        with closing(open_store(users[name])) as member:
            [gone, _] = say(member, "gone", "kept", scope=Scope(partition, partition))
            embed(member, fake_embedder)
            member.delete([Key(partition, gone)])
    look = (
        "SELECT t.* FROM properties t ORDER BY 1",
        "SELECT * FROM forgotten, members ORDER BY 1, 2, 3",
    )
    before = [behind(url, each) for each in look]
    assert {"forgotten_key", "embedding_dimensions"} < dict(before[0]).keys()
    for statement in TRIED:
        with suppress(psycopg.errors.InsufficientPrivilege):
            behind(users["anna"], statement)
        assert [behind(url, each) for each in look] == before, statement
    behind(url, "INSERT INTO properties VALUES ('index:b', '{}')")
    assert "index:b" not in dict(behind(users["anna"], look[0]))


def test_a_member_sees_and_writes_the_sources_of_their_partitions_only(url: str, users) -> None:
    def file(partition: str, size: int = 1) -> SourceFile:
        return SourceFile(partition, "desk", "/s.jsonl", "codex", 1, size, 1, state="{}")

    with closing(open_store(url)) as owner:
        Sources(owner).put(file("b"))
    with closing(open_store(users["anna"])) as anna:
        mine = Sources(anna)
        mine.put(file("a"))
        assert mine.get("a", "desk", "/s.jsonl") == file("a")
        assert mine.get("b", "desk", "/s.jsonl") is None
        assert mine.seen("b", "desk", "codex") == {}
        mine.drop("b", "desk", ["/s.jsonl"])
        with pytest.raises(StoreError):
            mine.put(file("b", 2))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        behind(users["anna"], "UPDATE sources SET partition = 'b'")
    look = "SELECT partition, size FROM sources ORDER BY 1"
    assert behind(users["anna"], look) == [("a", 1)]
    assert behind(users["ben"], look) == [("b", 1)]
    assert behind(url, look) == [("a", 1), ("b", 1)]


def test_a_reader_of_a_guarded_store_reads_their_partitions(url: str, users, fake_embedder) -> None:
    behind(url, "GRANT reservoir_reader TO reader")
    behind(url, "INSERT INTO members VALUES ('reader', 'b')")
    with closing(open_store(url)) as owner:
        for partition in "ab":
            say(owner, f"of {partition}", scope=Scope(partition, partition))
        embed(owner, fake_embedder)
    with closing(open_store(users["reader"])) as reader:
        assert reader.read_only
        assert contents(reader.last(EVERYWHERE, 0)) == ["of b"]
        found = reader.candidates(EVERYWHERE, None, "of", fake_embedder.encode_query("of b"))
        assert found.cosine.tolist() == pytest.approx([1])
        with pytest.raises(StoreError, match="cannot be written to"):
            say(reader, "more", scope=Scope("b", "b"))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        behind(users["reader"], "DELETE FROM messages")


def test_a_user_without_any_right_is_told_so(users) -> None:
    with pytest.raises(StoreError, match="may not do this") as caught:
        open_store(users["stranger"])
    assert caught.value.exit_code == 3


def test_a_run_that_a_user_may_not_record_says_why(users) -> None:
    told: list[str] = []
    with Reservoir.open(users["anna"], create=False, notify=told.append) as anna:
        anna.runs.record(anna.context("hello", partition="b", budget=400))
        assert told == [
            f"this run is not recorded: the user may not do this in the store {users['anna']}"
        ]


def test_a_user_who_may_not_add_pgvector_is_told_who_may(
    postgres: PostgresServer, empty: str, store: Store
) -> None:
    admin.guard(store)  # makes the roles, which such a user may not
    database = empty.rsplit("/", 1)[1]
    behind(empty, "CREATE ROLE carl LOGIN")
    behind(empty, f"GRANT CREATE ON DATABASE {database} TO carl")
    try:
        with pytest.raises(StoreError, match="no pgvector yet") as caught:
            open_store(postgres.url(database, "carl"))
        assert caught.value.hint == "let a superuser run CREATE EXTENSION vector in it"
        behind(empty, "CREATE EXTENSION vector SCHEMA public")
        with closing(open_store(postgres.url(database, "carl"))) as mine:
            say(mine, "mine")
            admin.guard(mine)
            assert admin.facts(mine)["guarded"]
    finally:
        behind(empty, "DROP OWNED BY carl")
        behind(empty, "DROP ROLE carl")


# Dumps


def test_a_dump_of_a_database_is_restored_into_an_empty_one(
    postgres: PostgresServer, store: Store, fake_embedder
) -> None:
    admin.guard(store)
    say(store, "one", "two")
    embed(store, fake_embedder)
    programs, target = installed("18"), postgres.empty_database()
    assert programs
    dump = subprocess.run([programs / "pg_dump", store.location], check=True, capture_output=True)
    restore = [programs / "psql", "-v", "ON_ERROR_STOP=1", "-f", "-", target]
    subprocess.run(restore, check=True, capture_output=True, input=dump.stdout)
    with closing(open_store(target)) as restored:
        assert replicate._digest(restored) == replicate._digest(store)
        assert restored.problems() == []
        assert admin.facts(restored)["guarded"]
    postgres.drop(target)


# Servers that die


@pytest.fixture
def mortal(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """A server of its own, to be killed."""
    server = PostgresServer("18")
    yield server
    with suppress(Exception):
        server.remove()


def test_a_server_killed_while_messages_come_in_keeps_whole_batches(
    mortal: PostgresServer, tmp_path: Path, fake_embedder
) -> None:
    url = mortal.empty_database()
    rows = [f'{{"role": "user", "content": "m {number}"}}\n' for number in range(20_000)]
    (tmp_path / "talk.jsonl").write_text("".join(rows))
    command = [sys.executable, "-m", "reservoir_cli", "--db", url, "ingest", "--no-embed"]
    process = subprocess.Popen(
        [*command, str(tmp_path / "talk.jsonl")], stderr=subprocess.PIPE, text=True
    )
    with closing(_opened(url)) as watcher:
        while watcher.holdings()["messages"] < 1_000:
            time.sleep(0.01)
        mortal.kill()
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 3, said
    assert "error: " in said
    assert "Traceback" not in said
    mortal.start()
    with closing(open_store(url)) as store:
        kept = store.holdings()["messages"]
        assert 0 < kept < 20_000
        assert kept % 1_000 == 0
        assert store.problems() == []
    assert subprocess.run([*command, str(tmp_path / "talk.jsonl")], check=False).returncode == 0
    with closing(open_store(url)) as store:
        assert store.holdings()["messages"] == 20_000
        assert store.problems() == []


def _opened(url: str) -> Store:
    """A store that another process makes just now."""
    while True:
        opened = open_store(url, create=False)
        if opened.size() is not None:
            return opened
        opened.close()
        time.sleep(0.02)


def test_a_server_killed_in_a_copy_and_in_a_migration_is_found_whole(
    mortal: PostgresServer, tmp_path: Path, monkeypatch
) -> None:
    url = mortal.empty_database()

    def killed(connection) -> None:
        mortal.kill()

    monkeypatch.setattr(schema, "_finish", killed)
    with pytest.raises(StoreError, match=r"lost the connection|was stopped"):
        open_store(url)
    monkeypatch.undo()
    mortal.start()
    assert behind(url, "SELECT 1 FROM pg_namespace WHERE nspname = 'reservoir'") == []

    with closing(open_store(str(tmp_path / "file.db"))) as file:
        say(file, *map(str, range(1_700)))

        def kill(_: str, done: int, __: int) -> None:
            if done >= 1_000:
                mortal.kill()

        with closing(open_store(url)) as target:
            with pytest.raises(StoreError) as caught:
                replicate.copy(file, target, kill)
            assert caught.value.exit_code == 3
        mortal.start()
        with closing(open_store(url)) as target:
            assert target.holdings()["messages"] == 1_000
            replicate.copy(file, target, lambda *_: None)
            assert target.holdings()["messages"] == 1_700
            assert target.problems() == []


def test_a_connection_that_was_lost_between_two_questions_is_made_anew(
    url: str, store: Store
) -> None:
    say(store, "kept")
    behind(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    assert contents(store.last(EVERYWHERE, 0)) == ["kept"]
    say(store, "more")


# Many servers


def test_three_servers_with_partitions_routed_by_hash_answer_as_one(
    postgres: PostgresServer, url: str, fake_embedder
) -> None:
    servers = [PostgresServer("18"), PostgresServer("16"), postgres]
    try:
        stores = [open_store(each.empty_database()) for each in servers]
        pick = np.random.default_rng(2)
        vocabulary = "redis queue jobs Kyoto hotel bread".split()
        partitions = [f"user-{number}" for number in range(9)]
        with closing(open_store(url)) as one:
            for partition in partitions:
                texts = [" ".join(pick.choice(vocabulary, 5)) for _ in range(20)]
                mine = stores[crc32(partition.encode()) % 3]
                for each in (one, mine):
                    say(each, *texts, scope=Scope(partition, "i"))
            for each in (one, *stores):
                embed(each, fake_embedder)
            question = "why did the redis queue lose jobs?"
            vector = fake_embedder.encode_query(question)
            for partition in partitions:
                mine = stores[crc32(partition.encode()) % 3]
                scope = Scope(partition)
                found = [each.candidates(scope, "i", question, vector) for each in (one, mine)]
                np.testing.assert_allclose(found[0].cosine, found[1].cosine, atol=1e-6)
                for name in ("created_at", "thread", "tokens", "terms"):
                    values = [getattr(each, name).tolist() for each in found]
                    assert values[0] == values[1]
                counts = [[each.counts.tolist() for each in some.postings] for some in found]
                assert counts[0] == counts[1]
                assert contents(one.last(scope, 0)) == contents(mine.last(scope, 0))
            assert len({crc32(each.encode()) % 3 for each in partitions}) == 3
            held = [each.holdings() for each in stores]
            together = {name: sum(each[name] for each in held) for name in held[0]}
            assert together == one.holdings()
        for each in stores:
            each.close()
    finally:
        for server in servers[:2]:
            server.remove()


def test_the_statements_for_a_cluster_name_every_table_once() -> None:
    statements = "\n".join(tables.sharding())
    for table in tables.SPREAD:
        assert statements.count(f"create_distributed_table('reservoir.{table}', 'partition'") == 1
    for table in tables.EVERYWHERE:
        assert statements.count(f"create_reference_table('reservoir.{table}')") == 1


def test_keys_begin_with_the_partition_and_nothing_counts_up_on_the_server(url: str) -> None:
    keys = behind(
        url,
        """
        SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
        WHERE i.indisunique AND c.relnamespace = 'reservoir'::regnamespace
        """,
    )
    assert {table for table, _ in keys} == {*tables.SPREAD, *tables.EVERYWHERE}
    assert {first for table, first in keys if table in tables.SPREAD} == {"partition"}
    assert (
        behind(
            url,
            "SELECT 1 FROM pg_class WHERE relkind = 'S' AND relnamespace = "
            "'reservoir'::regnamespace",
        )
        == []
    )
