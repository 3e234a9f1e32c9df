"""The work of a write depends on what is written, not on the size of the store."""

import shutil
from contextlib import closing
from datetime import timedelta

import numpy as np
import pytest
from builders import NOW
from sqlite_steps import steps
from stored import COUNTER

from reservoir_cli.messages import Conversation, Key, Message, Scope
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.passage import Passage

SMALL, TIMES = 1_000, 4
HERE = Scope("p", "i")


def embed(store, messages):
    vectors = np.random.default_rng(1).standard_normal((len(messages), 8)).astype(np.float32)
    store.add_passages(
        "m",
        {
            message.key: [Passage(message.id, 0, 0, 1, vector)]
            for message, vector in zip(messages, vectors, strict=True)
        },
    )


def filled(path, count):
    """Return a store of messages in and outside of conversations, all of them embedded."""
    store = open_store(str(path))
    store.activate_model("m", "model")
    messages = [
        Message(
            "user",
            f"word{number % 97} of the day {number}",
            created_at=NOW + timedelta(minutes=number),
            conversation_id=f"c{number // 20}" if number % 2 else None,
            source="s",
            source_id=str(number),
        )
        for number in range(count)
    ]
    store.add_conversations(HERE, [Conversation(f"c{number}") for number in range(count // 20)])
    embed(store, store.add(HERE, messages, counter=COUNTER, now=NOW))
    store._connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('optimize')")
    return store


def add_two_far_apart(store):
    times = [NOW - timedelta(days=400), NOW + timedelta(days=400)]
    messages = [Message("user", "a new one", created_at=moment) for moment in times]
    embed(store, store.add(HERE, messages, counter=COUNTER, now=NOW))


def replace_one(store):
    key = Key("p", 500)
    [old] = store.by_key([key])
    new = Message("user", "another text", created_at=old.created_at, source="s", source_id="499")
    store.replace({key: new}, counter=COUNTER, now=NOW)


def remove_two(store):
    with store.write():
        store._remove({"p": [300, 301]}, mark=True)


def count_again(store):
    store.update_counts({Key("p", number): 9 for number in (10, 11, 12)}, "other 1")


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Return the files of a store and of a larger one, for copying."""
    files = [tmp_path_factory.mktemp("costs") / f"{times}.db" for times in (1, TIMES)]
    for file, times in zip(files, (1, TIMES), strict=True):
        filled(file, times * SMALL).close()
    return files


@pytest.mark.parametrize("work", [add_two_far_apart, replace_one, remove_two, count_again])
def test_a_write_costs_no_more_in_a_larger_store(stores, tmp_path, work):
    costs = []
    for file in stores:
        with closing(open_store(shutil.copy(file, tmp_path))) as store:
            before = {row[0] for row in store._connection.execute("SELECT id FROM blocks")}
            took = steps(store, lambda store=store: work(store))
            after = {row[0] for row in store._connection.execute("SELECT id FROM blocks")}
            assert len(before - after) <= 1
            assert store.problems() == []
        costs.append(took)
    assert costs[1] < 1.2 * costs[0] + 20, costs
