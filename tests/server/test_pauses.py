"""Background work waits for a pause between questions, and is done in the end."""

import sqlite3
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import Popen
from threading import Event
from typing import Any

import httpx2
import proxied
import pytest
from builders import FakeEmbedder
from dialogue import assistant, chat, completion, texts, user
from proxied import Served

from reservoir_cli.context.run_statistics import Runs
from reservoir_cli.embedding import load_model
from reservoir_cli.errors import StoreError
from reservoir_cli.messages import Message, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server import limits
from reservoir_cli.server.proxy.providers.openai_chat import CHAT
from reservoir_cli.server.sync_in_pauses import SyncTimer
from reservoir_cli.storage.tables.proxy_ledger import LIFETIME, Ledger, LedgerEntry
from reservoir_cli.transfer.proxied.exchange import Exchange
from reservoir_cli.transfer.proxied.store_exchange import ExchangeLog
from reservoir_cli.util.programs import start_in_background
from reservoir_cli.util.timeouts import SYNC_IN_PAUSES

ASKING = "asking"


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let background work wait for a pause for ever, as early as when a server starts.

    Work of the start that was late would release all that a test lets wait.
    """
    monkeypatch.setattr(limits, "MAX_DELAY", 1e9)


def ask_while_another_is_answered(served: Served, client: httpx2.Client) -> None:
    served.state.traffic.begin(ASKING)
    for number in range(3):
        client.post(served.root + CHAT, json=chat(user(f"question {number}?")))


def wait_until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.usefixtures("unhurried")
def test_waiting_exchanges_are_stored_in_order_before_urgent_work(served, provider, client):
    provider.reply = completion()
    ask_while_another_is_answered(served, client)
    with Reservoir.open(served.store) as reservoir:
        assert reservoir.view(Scope("default"), 0) == []
    stored = [text for text in texts(served, 3) if text.startswith("user")]
    assert stored == [f"user: question {number}?" for number in range(3)]


@pytest.mark.usefixtures("unhurried")
def test_waiting_exchanges_are_stored_in_one_transaction(served, provider, client, monkeypatch):
    provider.reply = completion()
    ask_while_another_is_answered(served, client)
    seen, store = list[int](), ExchangeLog.store

    def counted(log: ExchangeLog, *arguments: Any) -> int:
        with Reservoir.open(served.store) as reservoir:
            seen.append(len(reservoir.view(Scope("default"), 0)))
        return store(log, *arguments)

    monkeypatch.setattr(ExchangeLog, "store", counted)
    assert len(texts(served, 3)) == 6
    assert seen == [0, 0, 0]


def test_an_exchange_is_stored_while_a_long_message_is_embedded(
    served, provider, client, monkeypatch
):
    monkeypatch.setattr(limits, "MAX_DELAY", 0.2)

    def is_stored() -> bool:
        with Reservoir.open(served.store) as reservoir:
            return bool(reservoir.view(Scope("default"), 0))

    provider.reply = completion()
    with served.state.traffic.take_turn():
        client.post(served.root + CHAT, json=chat(user("question?")))
        wait_until(is_stored)


def test_a_conversation_keeps_its_order_if_the_clock_is_set_back(store_path):
    answers, start = ["one", "two", "three"], datetime(2026, 5, 9, 12, tzinfo=UTC)
    clock = [start, start - timedelta(hours=1), start - timedelta(minutes=50)]
    history: tuple[Message, ...] = ()
    with Reservoir.open(store_path) as reservoir:
        for number, (answer, now) in enumerate(zip(answers, clock, strict=True)):
            question = Message("user", f"question {number}?", source_id=f"q{number}")
            reply = Message("assistant", answer, source_id=f"a{number}")
            history += (question,)
            exchange = Exchange(Scope("p", "i"), "c", "m", history, reply, asked_at=now)
            reservoir.exchanges.store(exchange, now)
            history += (reply,)
        rows = reservoir.view(Scope("p", "i"), 0)
    assert [row.content for row in rows] == [message.content for message in history]
    assert rows[-1].created_at - start < timedelta(seconds=1)


@pytest.mark.usefixtures("unhurried")
def test_an_exchange_that_cannot_be_stored_does_not_block_others(
    served, provider, client, monkeypatch
):
    provider.reply = completion()
    ask_while_another_is_answered(served, client)
    store = ExchangeLog.store

    def refuse_one(log: ExchangeLog, exchange: Exchange, now: datetime | None = None) -> int:
        added = store(log, exchange, now)
        if "question 1?" in exchange.messages[-1].content:
            raise ValueError("question 1?")
        return added

    monkeypatch.setattr(ExchangeLog, "store", refuse_one)
    stored = [text for text in texts(served, 3) if text.startswith("user") and "1" not in text]
    assert stored == ["user: question 0?", "user: question 2?"]
    lines = [line for line in served.lines if "could not be stored" in line]
    assert lines == ["an exchange could not be stored: ValueError"]


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("reopened", [False, True])
def test_waiting_records_of_recalls_are_stored_in_one_transaction(
    served, provider, client, monkeypatch, reopened
):
    provider.reply = completion()
    with Reservoir.open(served.store) as reservoir:
        reservoir.ingest([Message("user", "the queue was Redis")], embed=False)
    if reopened:
        with pytest.raises(StoreError):
            served.state.reader.submit(lose_connection).result(60)
    added, add = list[int](), Runs.add

    def counted(runs: Runs, records: Sequence[Mapping[str, Any]], **options: Any) -> None:
        added.append(len(records))
        add(runs, records, **options)

    monkeypatch.setattr(Runs, "add", counted)
    served.state.traffic.begin(ASKING)
    for number in range(3):
        client.post(served.root + CHAT, json=chat(user(f"was the queue Redis, {number}?")))
    served.settle(3)
    assert [number for number in added if number] == [3]
    recalls = served.state.reader.submit(lambda store: store.stats()["recalls"]).result(60)
    assert recalls["runs"] == 3


def lose_connection(_: Reservoir) -> None:
    raise StoreError("the connection is lost")


def ask_three_times(served: Served, client: httpx2.Client) -> None:
    """Ask one question in three conversations while another request is being answered."""
    with Reservoir.open(served.store) as reservoir:
        reservoir.ingest([Message("user", "the queue was Redis")], embed=False)
    served.state.traffic.begin(ASKING)
    for number in range(3):
        answer = client.post(served.root + CHAT, json=chat(user(f"was the queue Redis, {number}?")))
        assert answer.headers["x-reservoir"].startswith("added;")


def ledger_rows(served: Served) -> int:
    with closing(sqlite3.connect(served.store)) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM ledger").fetchone()[0])


def wait_for_ledger(served: Served, count: int) -> None:
    wait_until(lambda: ledger_rows(served) == count)


def set_redact(home: Path, mode: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "reservoir.toml").write_text(f'redact = "{mode}"', encoding="utf-8")


def test_blocks_with_secrets_of_all_partitions_are_deleted_once_secrets_must_be_masked(
    served, provider, client, home
):
    provider.reply = completion()
    set_redact(home, "off")
    with Reservoir.open(served.store) as reservoir:
        reservoir.ingest([Message("user", "the queue was Redis")], embed=False)
    client.post(served.root + CHAT, json=chat(user("was the queue Redis?")))
    wait_for_ledger(served, 1)
    set_redact(home, "mask")
    client.post(f"{served.root}/other/desk{CHAT}", json=chat(user("ok")))
    wait_for_ledger(served, 0)


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("is_asked_again", [False, True])
def test_a_block_with_secrets_that_waits_is_not_used_once_secrets_must_be_masked(
    store_path, provider, client, home, *, is_asked_again
):
    provider.reply = completion()
    set_redact(home, "off")
    with proxied.serving(store_path, {"openai": provider.url}) as served:
        ask_three_times(served, client)
        set_redact(home, "mask")
        if is_asked_again:
            answer = client.post(served.root + CHAT, json=chat(user("was the queue Redis, 0?")))
            assert answer.headers["x-reservoir"].startswith("added;")
    assert ledger_rows(served) == is_asked_again


@pytest.mark.usefixtures("unhurried")
def test_a_block_is_added_again_after_a_retry_whose_answer_was_stored_first(
    served, provider, client
):
    with Reservoir.open(served.store) as reservoir:
        reservoir.ingest([Message("user", "the queue was Redis")], embed=False)
    served.state.traffic.begin(ASKING)
    question = user("was the queue Redis?")
    for text in ("Yes.", "Yes, it was."):
        provider.reply = completion(text)
        client.post(served.root + CHAT, json=chat(question))
        served.state.writer.submit(lambda _: None).result(60)  # it stores the exchange before
    answer = client.post(served.root + CHAT, json=chat(question, assistant(text), user("ok")))
    assert answer.headers["x-reservoir"].endswith("replayed=1")


@pytest.mark.usefixtures("unhurried")
def test_entries_of_the_ledger_that_wait_are_written_in_one_transaction(
    served, provider, client, monkeypatch
):
    provider.reply = completion()
    ask_three_times(served, client)
    rows, put = list[int](), Ledger.put

    def count_and_put(ledger: Ledger, *arguments: Any, **options: Any) -> bool:
        rows.append(ledger_rows(served))
        return put(ledger, *arguments, **options)

    monkeypatch.setattr(Ledger, "put", count_and_put)
    served.state.traffic.end(ASKING)
    wait_for_ledger(served, 3)
    assert rows == [0, 0, 0]


@pytest.mark.usefixtures("unhurried")
def test_entries_of_the_ledger_are_written_one_by_one_if_one_fails(
    served, provider, client, monkeypatch
):
    provider.reply = completion()
    ask_three_times(served, client)
    calls, put = list[int](), Ledger.put

    def fail_once(ledger: Ledger, *arguments: Any, **options: Any) -> bool:
        calls.append(1)
        if len(calls) == 2:
            raise sqlite3.OperationalError("deadlock")
        return put(ledger, *arguments, **options)

    monkeypatch.setattr(Ledger, "put", fail_once)
    served.state.traffic.end(ASKING)
    wait_for_ledger(served, 3)
    assert len(calls) == 5
    assert "ledger entries are written one by one: StoreCorruptError" in served.lines


def test_old_entries_of_the_ledger_are_deleted_when_the_server_starts(store_path):
    with Reservoir.open(store_path) as reservoir:
        ledger, entry = reservoir.exchanges.ledger, LedgerEntry(0, "hash", "a block", 2)
        for partition, age in (("idle", LIFETIME * 2), ("work", LIFETIME / 2)):
            ledger.put(partition, "c", entry, [], version=0, now=datetime.now(UTC) - age)
    with proxied.serving(store_path) as server:
        wait_for_ledger(server, 1)
    with Reservoir.open(store_path) as reservoir:
        assert reservoir.exchanges.ledger.partitions() == ["work"]


@pytest.mark.usefixtures("unhurried")
def test_waiting_exchanges_are_stored_when_the_server_ends(store_path, provider, client):
    provider.reply = completion()
    with proxied.serving(store_path, {"openai": provider.url}) as server:
        server.state.traffic.begin(ASKING)
        client.post(server.root + CHAT, json=chat(user("will you keep this?")))
    with Reservoir.open(store_path) as reservoir:
        assert [message.role for message in reservoir.view(Scope("default"), 0)] == [
            "user",
            "assistant",
        ]


def test_the_last_question_is_rehearsed_in_a_pause_and_never_during_another(
    served, provider, client
):
    reader, rehearsed = served.state.reader, list[object]()
    served.state.traffic.begin(ASKING)
    reader.submit_if_idle(lambda _: rehearsed.append("beside another"))
    reader.submit(lambda _: None).result(60)
    assert rehearsed == []
    served.state.traffic.end(ASKING)
    wait_until(lambda: rehearsed or reader.submit_if_idle(lambda _: rehearsed.append("in a pause")))
    assert rehearsed[0] == "in a pause"


def test_a_rehearsed_question_is_not_counted(served, provider, client, monkeypatch):
    monkeypatch.setattr(limits, "PAUSE", 0.0)
    provider.reply = completion()
    client.post(served.root + CHAT, json=chat(user("what was it?")))
    texts(served, 1)
    served.state.embedder.submit(lambda _: None).result(60)
    served.settle()
    recalls = served.state.reader.submit(lambda store: store.stats()["recalls"]).result(60)
    assert recalls["runs"] == 1


def test_exchanges_are_embedded_by_the_model_loaded_for_questions(served, provider, client):
    # The model of the settings is loaded first.
    served.state.reader.submit(lambda _: None).result(60)
    served.state.reader.model = FakeEmbedder()
    provider.reply = completion()
    client.post(served.root + CHAT, json=chat(user("what was it?")))
    assert len(texts(served, 1)) == 2
    served.state.embedder.submit(lambda _: None).result(60)
    with Reservoir.open(served.store) as reservoir:
        assert (reservoir.indexer.state().active, reservoir.indexer.pending()) == ("fake", 0)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[FakeEmbedder]:
    """Return the models that are loaded from now on."""
    models: list[FakeEmbedder] = []

    def load(*_: Any, **__: Any) -> FakeEmbedder:
        models.append(FakeEmbedder())
        return models[-1]

    monkeypatch.setattr(load_model, "load_embedder", load)
    return models


@pytest.mark.parametrize("reason", ["lost", "replaced"])
def test_a_reader_that_reopened_its_store_still_shares_its_model(
    loaded, served, provider, client, reason
):
    served.state.reader.submit(lambda _: None).result(60)
    if reason == "lost":
        with pytest.raises(StoreError):
            served.state.reader.submit(lose_connection).result(60)
    else:
        copy = Path(f"{served.store}.copy")
        Reservoir.open(copy).close()
        copy.replace(served.store)
    provider.reply = completion()
    client.post(served.root + CHAT, json=chat(user("what was it?")))
    assert len(texts(served, 1)) == 2
    served.state.embedder.submit(lambda _: None).result(60)
    with Reservoir.open(served.store) as reservoir:
        assert reservoir.indexer.pending() == 0
    assert len(loaded) == 1


@pytest.mark.usefixtures("unhurried")
def test_two_threads_do_not_work_at_the_same_time(served):
    order = list[str]()

    def work(_: Reservoir) -> None:
        order.append("begin")
        time.sleep(0.05)
        order.append("end")

    served.state.traffic.begin(ASKING)
    threads = (served.state.writer, served.state.embedder)
    waiting = [thread.submit_in_pause(work) for thread in threads]
    served.state.traffic.end(ASKING)
    for future in waiting:
        future.result(60)
    assert order == ["begin", "end"] * 2


@pytest.mark.usefixtures("unhurried")
def test_background_work_that_waits_is_not_queued_again(served):
    collected, taken = list[int](), list[list[int]]()

    def take(_: Reservoir) -> None:
        taken.append(list(collected))
        collected.clear()

    served.state.traffic.begin(ASKING)
    futures = set[Future[None]]()
    for number in range(100):
        collected.append(number)
        futures.add(served.state.writer.submit_batch_in_pause(take))
    served.state.traffic.end(ASKING)
    for future in futures:
        future.result(60)
    # The first call waited for a pause, and the second one for the first.
    assert len(taken) <= 2
    assert taken[0] == list(range(100))
    collected.append(100)
    served.state.writer.submit_batch_in_pause(take).result(60)
    assert taken[-1] == [100]


@pytest.mark.parametrize("count", [1, 3])
def test_exchanges_that_the_store_cannot_take_are_stored_later(
    served, provider, client, monkeypatch, count
):
    monkeypatch.setattr(limits, "RETRY_DELAY", 0.05)
    provider.reply = completion()
    served.state.writer._patience = 0.01
    served.state.writer.submit(lambda _: served.state.writer._store.release()).result(60)
    with Reservoir.open(served.store) as blocking, blocking.store.write():
        for number in range(count):
            client.post(served.root + CHAT, json=chat(user(f"question {number}?")))
        wait_until(lambda: any("that wait for the store" in line for line in served.lines))
    wait_until(lambda: len(texts(served, count)) >= 2 * count)
    assert [text for text in texts(served, count) if text.startswith("user")] == [
        f"user: question {number}?" for number in range(count)
    ]


@pytest.mark.usefixtures("unhurried")
def test_only_the_newest_exchanges_wait_for_a_store(served, provider, client, monkeypatch):
    monkeypatch.setattr(limits, "MAX_WAITING", 1)
    monkeypatch.setattr(limits, "RETRY_DELAY", 0.05)
    provider.reply = completion()
    store, failing = ExchangeLog.store, [True]

    def fail(log: ExchangeLog, *arguments: Any) -> int:
        if failing:
            raise StoreError("the disk is full")
        return store(log, *arguments)

    monkeypatch.setattr(ExchangeLog, "store", fail)
    ask_while_another_is_answered(served, client)
    served.settle(3)
    problem = "exchanges that wait for the store: 1, lost: 2; the disk is full"
    wait_until(lambda: problem in served.lines)
    served.state.traffic.end(ASKING)
    failing.clear()
    wait_until(lambda: texts(served, 3))
    assert texts(served, 3)[0] == "user: question 2?"


def test_sources_are_synced_in_pauses_until_the_server_stops(served, home):
    syncs: list[Popen[bytes]] = []

    def start() -> Popen[bytes]:
        syncs.append(start_in_background([sys.executable, "-c", ""]))
        return syncs[-1]

    timer = SyncTimer(served.state, start)
    assert timer.run() == SYNC_IN_PAUSES
    assert not syncs  # there is no source
    home.mkdir(exist_ok=True)
    settings = '[sources.codex]\npath = "/nowhere"\n'
    (home / "reservoir.toml").write_text(settings, encoding="utf-8")
    wait_until(lambda: served.state.config.sources)
    served.state.traffic.begin(ASKING)
    assert timer.run() == limits.PAUSE
    assert not syncs
    served.state.traffic.end(ASKING)
    wait_until(served.state.traffic.is_idle)
    assert timer.run() == SYNC_IN_PAUSES
    assert [sync.returncode for sync in syncs] == [0]  # no zombie is left
    timer.start()
    wait_until(lambda: len(syncs) == 2)
    timer.stop()


def test_a_sync_that_cannot_be_started_is_logged(served, home):
    home.mkdir(exist_ok=True)
    (home / "reservoir.toml").write_text('[sources.codex]\npath = "/nowhere"\n', encoding="utf-8")
    wait_until(lambda: served.state.config.sources)

    def fail() -> Popen[bytes]:
        raise OSError(12, "Cannot allocate memory")

    wait_until(served.state.traffic.is_idle)
    assert SyncTimer(served.state, fail).run() == SYNC_IN_PAUSES
    assert served.lines[-1] == "sync cannot be started: Cannot allocate memory"


def test_a_server_listens_once_it_has_its_model_unless_that_takes_long(store_path, monkeypatch):
    monkeypatch.setattr(limits, "WARMING", 60.0)
    starting = Event()

    def load(*_: Any, **__: Any) -> FakeEmbedder:
        starting.wait(0.2)  # longer than the start of the server
        return FakeEmbedder()

    monkeypatch.setattr(load_model, "load_embedder", load)
    with proxied.serving(store_path) as served:
        assert served.state.reader.model
    monkeypatch.setattr(limits, "WARMING", 0.0)
    with proxied.serving(store_path) as served:
        starting.set()
        wait_until(lambda: served.state.reader.model)
