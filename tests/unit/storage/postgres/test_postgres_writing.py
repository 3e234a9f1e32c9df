"""Reading and writing on a server: ids, concurrent writers, full text, and dumps."""

import subprocess
import sys
import threading
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from behind import behind
from on_server import EVERYWHERE, HERE, contents, embed, say
from postgres_server import installed

from reservoir_cli.errors import ReservoirError, StoreLockedError, UsageError
from reservoir_cli.messages import Key, Message, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.storage.copying import copy_store
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.postgres import admin, ann_index, ids, keyword_search, locks
from reservoir_cli.storage.search.stemmer import split_stems


def test_ids_are_ordered_by_time_and_fit_a_double(store):
    message_ids = say(store, *map(str, range(5_000)))
    assert message_ids == sorted(set(message_ids))
    assert message_ids[-1] < 2**53
    created = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(milliseconds=message_ids[0] // 4096)
    assert abs(created - datetime.now(UTC)) < timedelta(minutes=5)
    assert say(store, "next")[0] > message_ids[-1]


def test_ids_of_a_writer_increase_even_if_its_clock_is_set_back(store, monkeypatch):
    message_ids = say(store, "a")
    for seconds in (1_600_000_000, 9_300_000_000, 0, 1_700_000_000):
        monkeypatch.setattr(time, "time_ns", lambda now=seconds: now * 1_000_000_000)
        message_ids += say(store, "b", scope=Scope("q", "q"))
        store.delete([Key("q", message_ids[-1])])
        message_ids += say(store, "c", "d")
    assert message_ids == sorted(set(message_ids))
    assert message_ids[-1] < 2**53


def test_another_writer_of_a_partition_continues_after_its_last_id(url, store, monkeypatch):
    [first] = say(store, "question")
    first_ms = first // 4096 + 1_577_836_800_000
    for behind_by, is_later in ((5, True), (40 * 86_400_000, False)):  # an id far ahead is ignored
        monkeypatch.setattr(time, "time_ns", lambda offset=behind_by: (first_ms - offset) * 10**6)
        with closing(open_store(url)) as other:
            assert (say(other, "reply")[0] > first) == is_later


def test_an_id_that_is_taken_meanwhile_is_replaced(url, store, monkeypatch):
    """Two coordinators without a common lock can do this."""
    monkeypatch.setattr(time, "time_ns", lambda: 1_900_000_000_000_000_000)
    monkeypatch.setattr(ids, "randbelow", lambda _: 0)
    newest, inserted_id = ids._newest, 0

    def read_before_another_insert(*arguments) -> int:
        nonlocal inserted_id
        newest_id = newest(*arguments)
        if not inserted_id:
            inserted_id = (1_900_000_000_000 - 1_577_836_800_000) * 4096
            behind(
                url,
                "INSERT INTO messages SELECT 'p', ?, 't', NULL, 'i', 'user', 'first', NULL, NULL, "
                "NULL, 1, 's', 'x', 1, 'c', NULL, 1, 0, NULL, 1",
                [inserted_id],
            )
        return newest_id

    monkeypatch.setattr(ids, "_newest", read_before_another_insert)
    say(store, "second")
    assert contents(store.last(HERE, 0)) == ["first", "second"]
    assert store.last(HERE, 1)[0].id == inserted_id + 1


def test_two_partitions_may_use_the_same_id_for_different_messages(
    url, store, tmp_path, monkeypatch, fake_embedder
):
    monkeypatch.setattr(time, "time_ns", lambda: 1_900_000_000_000_000_000)
    monkeypatch.setattr(ids, "randbelow", lambda _: 0)
    numbers = []
    for partition in "ab":
        with closing(open_store(url)) as writer:
            texts = [f"zeta one {partition}", f"zeta two {partition}"]
            numbers.append(say(writer, *texts, scope=Scope(partition, "i")))
            embed(writer, fake_embedder, 0)
    assert numbers[0] == numbers[1]
    first_id, second_id = numbers[0]
    with closing(open_store(str(tmp_path / "copy.db"))) as file:
        copy_store.copy(store, file, lambda *_: None)
        assert sorted(contents(file.last(EVERYWHERE, 0))) == sorted(
            contents(store.last(EVERYWHERE, 0))
        )
        assert file.holdings() == store.holdings()
        assert file.problems() == []
    with Reservoir.open(url, embedder=fake_embedder) as reservoir:
        with pytest.raises(UsageError, match=f"message {first_id} is in a and b"):
            reservoir.forget([first_id])
        for mode in ("keyword", "hybrid", "semantic"):
            hits = reservoir.search("zeta two b", mode=mode, scope=EVERYWHERE)
            assert len({hit.message.key for hit in hits}) == len(hits)
            assert {hit.message.content for hit in hits[:2]} == {"zeta two a", "zeta two b"}, mode
            assert hits[0].cosine is None or hits[0].cosine == pytest.approx(1, abs=1e-4)
            linked = reservoir.search("zeta two b", mode=mode, scope=EVERYWHERE, link=True)
            for hit in linked:
                assert {message.partition for message in hit.linked} <= {hit.message.partition}
    keys = store.find(EVERYWHERE)
    assert len(store.passages(keys)) == len(set(keys)) == 4
    store.mark_secrets({Key("a", first_id): ["password"]})
    store.update_counts({Key("b", first_id): 77}, "new")
    assert store.delete([Key("b", second_id)])
    remaining = {message.key: message for message in store.last(EVERYWHERE, 0)}
    assert set(remaining) == {("a", first_id), ("a", second_id), ("b", first_id)}
    assert remaining["a", first_id].secrets == ("password",)
    assert remaining["b", first_id].tokens == 77
    assert store.move_partition("b", "a") == (1, 0)  # where it gets a new id
    assert sorted(contents(store.last(Scope("a"), 0))) == ["zeta one a", "zeta one b", "zeta two a"]
    assert len(store.find(Scope("a"))) == len(set(store.find(EVERYWHERE))) == 3
    assert store.problems() == []


def test_messages_are_in_the_same_order_as_in_a_file(store, tmp_path, monkeypatch):
    """This holds even if many have the same time or the clock is set back between writes."""
    rng = np.random.default_rng(4)
    started = time.time_ns()
    with closing(open_store(str(tmp_path / "file.db"))) as file:
        for number in range(60):
            ticks = started + int(rng.integers(-2, 3)) * 10**9
            monkeypatch.setattr(time, "time_ns", lambda now=ticks: now)
            scope = Scope("pq"[number % 2], "i")
            texts = [f"{number}.{index}" for index in range(int(rng.integers(1, 4)))]
            for target in (store, file):
                say(target, *texts, scope=scope)
        for partition in "pq":
            assert contents(store.last(Scope(partition), 0)) == contents(
                file.last(Scope(partition), 0)
            )


WRITE = """
import sys
from datetime import UTC, datetime
from reservoir_cli.messages import Message, Scope
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.tokens import load_counter
url, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store, counter = open_store(url), load_counter("approximate")
for number in range(count):
    scope = Scope("shared" if number % 2 else f"own-{name}", "i")
    store.add(scope, [Message("user", f"{name}-{number}") for _ in range(3)],
              counter=counter, now=datetime.now(UTC))
"""


def test_eight_writers_and_four_readers_lose_nothing(url):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE, url, str(number), "12"])
        for number in range(8)
    ]
    failed: list[BaseException] = []

    def read() -> None:
        try:
            with closing(open_store(url)) as store:
                before = 0
                while any(process.poll() is None for process in writers):
                    candidates = store.candidates(Scope("shared"), "i", "hello 3-7", None)
                    with store.snapshot():
                        assert len(store.last(EVERYWHERE, 0)) == store.holdings()["messages"]
                    assert len(candidates.ids) >= before
                    before = len(candidates.ids)
        except BaseException as error:
            failed.append(error)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    assert [process.wait(300) for process in writers] == [0] * 8
    for reader in readers:
        reader.join()
    assert failed == []
    with closing(open_store(url)) as store:
        messages = store.last(EVERYWHERE, 0)
        assert len({message.key for message in messages}) == len(messages) == 8 * 12 * 3
        assert len({message.content for message in messages}) == 8 * 12
        assert store.count_unembedded(EVERYWHERE) == 8 * 12 * 3
        assert store.problems() == []


def test_writers_of_other_partitions_do_not_wait(url, store):
    with closing(open_store(url, patience=0.05)) as other, store.write():
        say(store, "here")
        say(other, "there", scope=Scope("q", "q"))
        with pytest.raises(StoreLockedError) as caught:
            say(other, "here too")
        assert caught.value.exit_code == 4
    assert sorted(contents(store.last(EVERYWHERE, 0))) == ["here", "there"]


def test_embedding_holds_the_lock_of_one_partition_at_a_time(url, store, fake_embedder):
    for partition in "abc":
        say(store, f"of {partition}", scope=Scope(partition, "i"))
    with store.write():
        say(store, "someone writes here", scope=Scope("b", "i"))
        with closing(open_store(url, patience=0.05)) as other, pytest.raises(StoreLockedError):
            embed(other, fake_embedder)
    pending = {name: store.count_unembedded(Scope(name)) for name in "abc"}
    assert pending == {"a": 0, "b": 2, "c": 1}


def test_two_deadlocked_writers_both_succeed(url, store):
    """The server aborts one of the two transactions, and the store retries it."""
    both_hold = threading.Barrier(2, timeout=120)
    failed: list[BaseException] = []

    def write(first: str, second: str) -> None:
        attempts = 0
        with closing(open_store(url)) as writer:

            def work() -> None:
                nonlocal attempts
                attempts += 1
                locks.lock_partitions(writer._connection, [first])
                if attempts == 1:
                    both_hold.wait()
                say(writer, f"{first}{second}", scope=Scope(second, "i"))

            try:
                writer._run_write(work)
            except BaseException as error:
                failed.append(error)

    behind(url, "SELECT 1")
    threads = [threading.Thread(target=write, args=order) for order in ("ab", "ba")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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
def test_word_counts_of_any_text_equal_those_in_a_file(store, tmp_path, monkeypatch, apart):
    if apart:
        monkeypatch.setattr(keyword_search, "_FEW", 0)
    with closing(open_store(str(tmp_path / "file.db"))) as file:
        for target in (store, file):
            say(target, *LONG)
        for question in ("redis", "京都 redis", "word39999 redis", "quote don't", "x" * 5_000):
            on_server, in_file = (
                target.candidates(HERE, "i", question, None) for target in (store, file)
            )
            assert [posting.counts.tolist() for posting in on_server.postings] == [
                posting.counts.tolist() for posting in in_file.postings
            ]
        for query in (
            "redis",
            '"word39999 redis redis"',
            "word3999*",
            '"京都 京都"',
            '"quote redis"',
        ):
            hits = [target.keyword(query, HERE, 9)[0] for target in (store, file)]
            assert [score for _, score in hits[0]] == pytest.approx([score for _, score in hits[1]])
            assert hits[0]


def test_stems_equal_those_of_the_tokenizer_of_a_file():
    assert split_stems(["Running queues, naïve!", ""]) == [["run", "queue", "naiv"], []]


def test_forgotten_words_are_in_no_row(store, fake_embedder):
    ids = say(store, "kept", "zyxwvuts secret", "also kept")
    embed(store, fake_embedder)
    assert store.delete([Key("p", ids[1])])
    for (table,) in behind(
        store.location,
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = "
        "'reservoir'::regnamespace",
    ):
        rows = behind(store.location, f"SELECT t::text FROM {table} t")
        assert not [row for row in rows if "zyxw" in row[0]]
    assert store.forgotten([Message("user", "x", source="s", source_id="y")]) == [False]
    assert store.problems() == []


def test_a_large_partition_may_have_an_index_that_reports_its_recall(store):
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((1_500, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = say(store, *map(str, range(1_500)))
    store.activate_model("m", "model")
    passages = {
        Key("p", number): [Passage(number, 0, 0, 1, vector)]
        for number, vector in zip(ids, vectors, strict=True)
    }
    passages[Key("p", ids[7])].append(Passage(ids[7], 1, 0, 1, vectors[7]))
    store.add_passages("m", passages)
    say(store, "pending")
    exact = store.candidates(Scope("p"), "i", "", vectors[7])
    assert (~np.isnan(exact.cosine)).sum() == 1_500
    index = ann_index.build(store, "p", lambda *_: None)
    assert index.recall > 0.9
    assert admin.facts(store)["indexes"] == [{"partition": "p", "recall": index.recall}]
    approximate = store.candidates(Scope("p"), "i", "", vectors[7])
    assert np.isnan(approximate.cosine).tolist() == np.isnan(exact.cosine).tolist()
    best = np.argsort(-np.nan_to_num(exact.cosine, nan=-1))[:50]
    shared = np.isclose(approximate.cosine[best], exact.cosine[best], atol=1e-5)
    assert shared.mean() > 0.9
    assert (np.nan_to_num(approximate.cosine - exact.cosine) > -1e-5).all()
    assert approximate.passages.tolist() == exact.passages.tolist()
    assert approximate.passages[approximate.ids == ids[7]].tolist() == [2]
    assert len(np.unique(np.nan_to_num(approximate.cosine))) < 1_100  # the rest was not compared
    assert ann_index.drop(store, "p")
    without_index = store.candidates(Scope("p"), "i", "", vectors[7])
    np.testing.assert_allclose(without_index.cosine, exact.cosine, atol=1e-6)


# Dumps


def test_a_dump_of_a_database_is_restored_into_an_empty_one(postgres, store, fake_embedder):
    admin.guard(store)
    say(store, "one", "two")
    embed(store, fake_embedder)
    programs, target = installed("18"), postgres.empty_database()
    assert programs
    dump = subprocess.run([programs / "pg_dump", store.location], check=True, capture_output=True)
    restore = [programs / "psql", "-v", "ON_ERROR_STOP=1", "-f", "-", target]
    subprocess.run(restore, check=True, capture_output=True, input=dump.stdout)
    with closing(open_store(target)) as restored:
        assert copy_store._digest(restored) == copy_store._digest(store)
        assert restored.problems() == []
        assert admin.facts(restored)["guarded"]
    postgres.drop(target)


def test_messages_that_were_moved_meanwhile_are_not_reported_as_forgotten(store):
    first, second = say(store, "one", "two")
    store.move_partition("p", "renamed")
    with pytest.raises(ReservoirError, match=f"message {first} is no longer in p"):
        store.delete([Key("p", first), Key("p", second)])
    assert len(store.last(Scope("renamed"), 9)) == 2
