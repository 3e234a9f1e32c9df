"""No word of a forgotten message is left in any file of the store."""

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from builders import EVERYWHERE, NOW, embed, ingestor

from reservoir_cli.messages import Conversation, Filter, Message, Scope, StoredMessage, ToolCall
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.retrieval.lookup import Lookup
from reservoir_cli.settings import config
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens.estimates import ApproximateCounter
from reservoir_cli.transfer.reading.importer import Record
from reservoir_cli.transfer.reports import ImportReport
from reservoir_cli.transfer.stages import Destination, ImportOptions
from reservoir_cli.transfer.store_records import FileImport

HERE = Scope("p", "i")
Adding = Callable[..., list[StoredMessage | None]]

SECRET = Message(
    "assistant",
    "Quokkas were embarrassingly zyxwvutting at Übersee. 機密情報だよ",
    trace_id="tracequux",
    name="namequux",
    tool_calls=(ToolCall("callquux", "toolquux", '{"path": "argumentquux"}'),),
    conversation_id="conversationquux",
    source="sourcequux",
    source_id="idquux",
)
#: Unique traces of the secret: as written, as indexed, stemmed, and in pieces.
TRACES = [
    *("Quokkas", "quokka", "embarrassingly", "embarrassingli", "embarrass", "zyxwvutting"),
    *("zyxwvut", "Übersee", "übersee", "ubersee", "ubers", "機密", "機", "密"),
    *("tracequux", "namequux", "callquux", "toolquux", "argumentquux", "quux"),
]


def files(store: Store) -> dict[str, bytes]:
    path = Path(store.location)
    paths = (path.with_name(path.name + ending) for ending in ("", "-wal", "-shm", "-journal"))
    return {file.name: file.read_bytes() for file in paths if file.exists()}


def traces(store: Store) -> set[tuple[str, str]]:
    """Return the traces of the secret in each file."""
    return {
        (name, trace)
        for name, data in files(store).items()
        for trace in TRACES
        if trace.encode() in data
    }


def small_talk(count: int, seed: int = 0) -> list[Message]:
    words = "the queue lost jobs when redis failed over and we moved to postgres then".split()
    rng = random.Random(seed)
    return [
        Message("user", " ".join(rng.choices(words, k=rng.randrange(2, 60)))) for _ in range(count)
    ]


@pytest.mark.sqlite("a server decides when it empties its files")
@pytest.mark.parametrize("before", [0, 3, 400])
@pytest.mark.parametrize("after", [0, 3, 400])
def test_no_word_is_left_in_any_file(store, add, fake_embedder, before, after):
    add(*small_talk(before))
    [secret] = add(SECRET)
    store.add_conversations(HERE, [Conversation("conversationquux", "Titlequux", "sourcequux")])
    embed(store, fake_embedder, threshold=0)
    add(*small_talk(after, seed=1))
    assert traces(store)
    assert secret
    assert store.delete([secret.key])
    assert traces(store) == set()
    assert store.problems() == []
    embed(store, fake_embedder, threshold=0)
    assert len(store.last(HERE, 0)) == before + after


@pytest.mark.sqlite("a server decides when it empties its files")
@pytest.mark.parametrize("seed", [1, 3])
def test_no_word_is_left_after_forgetting_step_by_step(store, add, fake_embedder, seed):
    """Rows next to deleted ones are moved, which leaves remains at their old position."""
    rng = random.Random(seed)
    words = [f"zyxw{rng.getrandbits(64):016x}" for _ in range(600)]
    messages = [
        Message(
            "user",
            " ".join([word] + ["filler"] * rng.choice((2, 20, 80, 300))),
            conversation_id=f"{rng.getrandbits(128):032x}",
            trace_id=f"trace{word}",
            source="test",
            source_id=f"{rng.getrandbits(64):016x}{word}",
        )
        for word in words
    ]
    stored = [
        message for start in range(0, 600, 50) for message in add(*messages[start : start + 50])
    ]
    conversations = [
        Conversation(str(message.conversation_id), message.content[:20]) for message in messages
    ]
    store.add_conversations(HERE, conversations)
    embed(store, fake_embedder, threshold=0)
    remaining = [
        (message.key, word) for message, word in zip(stored, words, strict=True) if message
    ]
    rng.shuffle(remaining)
    forgotten: list[str] = []
    while len(remaining) > 100:
        count = rng.choice((3, 20, 60))
        batch, remaining = remaining[:count], remaining[count:]
        assert store.delete([key for key, _ in batch])
        forgotten += [word for _, word in batch]
    content = b"".join(files(store).values())
    assert [word for word in forgotten if word.encode() in content] == []
    assert all(word.encode() in content for _, word in remaining)


@pytest.mark.sqlite("a server decides when it empties its files")
@pytest.mark.parametrize("edited", ["old", "new"])
def test_no_word_that_an_edit_replaced_is_left_after_a_merge(store, edited):
    for partition in ("old", "new"):
        ingestor(store).ingest(Scope(partition, "i"), [SECRET, *small_talk(50)], embed=False)
    [message] = store.last(Scope(edited), 1, Filter(trace_id=SECRET.trace_id))
    edit = replace(message.as_new(), content="Nothing of it.")
    store.edit(message.key, edit, counter=ApproximateCounter(), now=NOW)
    words = {*TRACES[: TRACES.index("tracequux")]}
    assert words & {trace for _, trace in traces(store)}
    store.move_partition("old", "new")
    assert not words & {trace for _, trace in traces(store)}


@pytest.mark.sqlite("a server decides when it empties its files")
def test_no_word_is_left_after_forgetting_many_at_once(store, add, fake_embedder):
    rng = random.Random(5)
    for round_ in range(3):
        texts = [
            Message("user", " ".join(f"zyxwvut{rng.randrange(10**6)}" for _ in range(length)))
            for length in (1, 20, 400, 3000)
            for _ in range(20)
        ]
        add(
            *(
                message
                for pair in zip(texts, small_talk(80, round_), strict=True)
                for message in pair
            )
        )
        embed(store, fake_embedder, threshold=0)
    keys = store.find(EVERYWHERE, Filter(text="ZYXWVUT"))
    assert len(keys) == 240
    assert store.delete(keys)
    # A single Chinese letter is three bytes, which may stand in a vector by chance.
    assert [trace for _, trace in traces(store) if trace.isascii()] == []
    assert store.problems() == []
    assert store.holdings()["messages"] == 240


def test_everything_derived_from_a_message_is_deleted_with_it(store, add, fake_embedder):
    pending, secret, kept = (
        message
        for message in add(Message("user", "pending"), SECRET, Message("user", "kept"))
        if message
    )
    with store.write():
        store.activate_model(fake_embedder.model_id, fake_embedder.name)
    embed(store, fake_embedder, HERE, threshold=0, most=2)
    assert store.delete([secret.key, pending.key])
    counts = store.holdings()
    assert {name: counts[name] for name in ("messages", "embedded", "pending")} == {
        "messages": 1,
        "embedded": 1,
        "pending": 0,
    }
    assert store.keyword("quokkas", HERE, 10)[0] == []
    candidates = store.candidates(HERE, None, "quokkas", fake_embedder.encode_query("quokkas"))
    assert candidates.ids.tolist() == [kept.id]
    assert add(Message("user", "next"))[0].id > pending.id  # type: ignore[union-attr]


def test_the_title_of_a_conversation_stays_while_it_has_messages(store, add):
    first, second = (
        message for message in add(SECRET, Message("user", "x", conversation_id="c")) if message
    )
    [third] = add(Message("user", "y", conversation_id="c"))
    for conversation_id, title in (("conversationquux", "Titlequux"), ("c", "Kept")):
        store.add_conversations(HERE, [Conversation(conversation_id, title)])
    assert store.delete([first.key, second.key])
    assert [summary.conversation.title for summary in store.conversations(EVERYWHERE)] == ["Kept"]
    assert third
    assert store.delete([third.key])
    assert store.known_conversations([("p", "i", "c")]) == {}


def import_messages(store: Store, *messages: Message) -> ImportReport:
    file_import = FileImport(
        ingestor(store), Destination("p", "i", "p"), ImportOptions(), "file", NOW
    )
    return file_import.load(
        [Record(message, conversation=Conversation("c", "Titlequux")) for message in messages]
    )


def test_an_import_does_not_restore_it_but_saying_it_again_does(store, add):
    other = Message("user", "other", source="s", source_id="2", conversation_id="d")
    secret = Message("user", "quokkas", source="s", source_id="1", conversation_id="c")
    import_messages(store, secret)
    assert store.delete(store.find(HERE))
    report = import_messages(store, secret, other)
    assert (report.imported, report.already, report.forgotten) == (1, 0, 1)
    assert [message.content for message in store.last(HERE, 0)] == ["other"]
    add(Message("user", "quokkas"))
    assert [message.content for message in store.last(HERE, 0)] == ["other", "quokkas"]


def test_the_title_of_what_was_forgotten_is_not_imported_again(store):
    secret = Message("user", "quokkas", source="s", source_id="1", conversation_id="c")
    import_messages(store, secret)
    assert store.delete(store.find(HERE))
    import_messages(store, secret)
    assert store.known_conversations([("p", "i", "c")]) == {}
    assert traces(store) == set()


def test_a_tombstone_reveals_nothing_without_the_stores_key(store, tmp_path):
    tombstones = set()
    for name in ("one", "two"):
        with closing(open_store(str(tmp_path / name))) as opened:
            import_messages(opened, Message("user", "x", source="s", source_id="1"))
            assert opened.delete(opened.find(EVERYWHERE))
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            [row] = connection.execute("SELECT mark FROM tombstones").fetchall()
            assert len(row[0]) == 32
            tombstones.add(row[0])
    assert len(tombstones) == 2


@pytest.mark.sqlite("a server has no path")
def test_no_word_is_left_in_a_file_whose_path_is_not_utf8(tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9 %23?#"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("the file system has only valid names")
    with Reservoir.open(folder / "store.db") as reservoir:
        reservoir.ingest([SECRET], partition="p", embed=False)
        reservoir.forget(reservoir.find(Scope("p")))
        assert traces(reservoir.store) == set()


@pytest.mark.sqlite("the log of a server is not emptied by us")
def test_a_long_reader_is_reported_and_the_next_command_finishes(store, add, monkeypatch):
    monkeypatch.setattr("reservoir_cli.storage.sqlite.store.CHECKPOINT", 0.05)
    add(*small_talk(20))
    [secret] = add(SECRET)
    assert secret
    reader = sqlite3.connect(store.location, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT COUNT(*) FROM messages").fetchone()
    assert not store.delete([secret.key])
    assert store.by_id([secret.id], EVERYWHERE) == []
    assert traces(store)
    with closing(open_store(store.location)):
        pass  # the reader is still active: no command waits or fails
    assert traces(store)
    reader.close()
    with closing(open_store(store.location)):
        pass
    assert traces(store) == set()


DAYS = [
    ({}, {}, []),
    ({"retention_days": 30}, {}, ["old in p", "old in q"]),
    ({"retention_days": 300}, {}, []),
    ({}, {"p": {"retention_days": 30}}, ["old in p"]),
    ({"retention_days": 30}, {"p": {"retention_days": 300}}, ["old in q"]),
]


@pytest.mark.parametrize(("top", "tables", "expected"), DAYS)
def test_each_partition_has_its_own_expiry(store, add, tmp_path, top, tables, expected):
    lines = [f"{key} = {value}" for key, value in top.items()]
    for name, table in tables.items():
        lines += [f"[partitions.{name}]", *(f"{key} = {value}" for key, value in table.items())]
    (tmp_path / "reservoir.toml").write_text("\n".join(lines))
    for partition in ("p", "q"):
        add(
            Message("user", f"old in {partition}", NOW - timedelta(days=40)),
            Message("user", f"new in {partition}", NOW - timedelta(days=20)),
            partition=partition,
        )
    loaded = config.load(tmp_path / "reservoir.toml")
    expired = store.by_key(Lookup(store).expired(loaded, EVERYWHERE, NOW) or [])
    assert [message.content for message in expired] == expected
    in_p = Lookup(store).expired(loaded, Scope("p"), NOW) or []
    inside = {message.partition for message in store.by_key(in_p)}
    assert inside == {"p"} & {text.removeprefix("old in ") for text in expected}


def test_expired_messages_are_found_by_the_time_of_storing(store, add, tmp_path):
    (tmp_path / "reservoir.toml").write_text("retention_days = 30")
    loaded, day = config.load(tmp_path / "reservoir.toml"), timedelta(days=1)
    far_future = datetime.fromisoformat("2099-01-01T00:00Z")
    for past, name in ((40, "old"), (20, "new")):
        add(Message("user", name, NOW - past * day), now=NOW - past * day)
        add(Message("user", f"{name}, far ahead", far_future), now=NOW - past * day)
        add(Message("user", f"{name}, without a time"), now=NOW - past * day)
    add(Message("user", "alone", far_future), instance="j")
    for now, expected in ((NOW, ["old"]), (NOW + 30 * day, ["new", "old"])):
        expired = store.by_key(Lookup(store).expired(loaded, EVERYWHERE, now))
        assert sorted(message.content for message in expired) == sorted(
            f"{name}{suffix}"
            for name in expected
            for suffix in ("", ", far ahead", ", without a time")
        )
