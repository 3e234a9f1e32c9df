"""A store that is copied to another database and back is unchanged."""

import os
import random
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from behind import behind
from builders import embed
from fingerprint import fingerprint

from reservoir_cli.errors import ReservoirError, StoreError, UsageError
from reservoir_cli.messages import Conversation, Key, Message, Scope, ToolCall
from reservoir_cli.storage.copying import copy_store, dump
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import load_counter

NOW = datetime(2026, 5, 9, 12, tzinfo=UTC)
EVERYWHERE = Scope(None)
COUNTER = load_counter("approximate")
WORDS = (
    "the queue lost jobs when redis failed over and we moved to postgres 京都 naïve don't".split()
)


def quiet(*_: object) -> None:
    """Ignore progress."""


@pytest.fixture
def filled_store(store: Store, fake_embedder) -> Store:
    """Fill a store with every kind of data."""
    rng = random.Random(3)
    for partition, instance in (("p", "p"), ("p", "chatgpt"), ("Zürich", "i")):
        messages = [
            Message(
                ("user", "assistant", "tool")[number % 3],
                " ".join(rng.choices(WORDS, k=rng.randrange(0, 40))),
                created_at=NOW + timedelta(minutes=rng.randrange(10_000)),
                name="mara" if number % 5 == 0 else None,
                conversation_id=f"c{number % 2}" if number % 4 else None,
                tool_calls=(ToolCall("c", "f", '{"a": "é"}'),) if number % 3 == 1 else (),
                tool_call_id="c" if number % 3 == 2 else None,
                secrets=("password",) if number == 7 else (),
                tags=("decision", "京都") if number % 9 == 0 else (),
                pinned_at=NOW + timedelta(minutes=number) if number % 11 == 0 else None,
            )
            for number in range(60)
        ]
        scope = Scope(partition, instance)
        conversation = Conversation("c0", "Redis", "chatgpt", "gpt-4", "taskboard", "main")
        store.add_conversations(scope, [conversation])
        store.add(scope, messages, counter=COUNTER, now=NOW)
    embed(store, fake_embedder, threshold=0.5, most=150)
    assert store.delete(store.find(EVERYWHERE)[:3])
    names = "context_window reserve reserve_used available input_tokens kept dropped truncations"
    for index in range(3):
        store.add_run(
            {
                "at": index - 1,  # one is before 1970
                "partition": "p",
                **dict.fromkeys(("instance", "format", "counter", "sections"), "x"),
                **dict.fromkeys(names.split(), index),
                "utilisation": 0.1,
                "ms": 1.7,
            }
        )
    assert len(store.runs(None)) == 3
    return store


def assert_same_answers(first: Store, second: Store, embedder) -> None:
    """Check that two stores give the same answers and scores."""
    (first_answers, cosines), (second_answers, other_cosines) = (
        answers(store, embedder) for store in (first, second)
    )
    assert first_answers == second_answers
    np.testing.assert_allclose(cosines, other_cosines, atol=1e-6)


def answers(store: Store, embedder) -> tuple[list[object], list[float]]:
    results: list[object] = []
    cosines: list[float] = []
    for scope in (Scope("p"), Scope("p", "chatgpt"), EVERYWHERE):
        question = "why did redis lose jobs in 京都?"
        candidates = store.candidates(scope, "p", question, embedder.encode_query(question))
        results += [candidates.ids.tolist(), candidates.thread.tolist(), candidates.tokens.tolist()]
        results.append([posting.counts.tolist() for posting in candidates.postings])
        cosines += candidates.cosine.tolist()
        hits, _ = store.keyword("queue 京都 post*", scope, 50)
        results.append([(message_id, round(score, 9)) for message_id, score in hits])
    results += [
        store.holdings(),
        [run["at"] for run in store.runs(None)],
        store.conversations(EVERYWHERE),
    ]
    return results, cosines


def test_copying_to_a_server_and_back_changes_nothing(
    filled_store, new_location, tmp_path, fake_embedder
):
    before = copy_store._digest(filled_store)
    with closing(open_store(str(tmp_path / "file.db"))) as file:
        copy_store.copy(filled_store, file, quiet)
        assert copy_store._digest(file) == before
        assert file.problems() == []
        assert_same_answers(file, filled_store, fake_embedder)
        with closing(open_store(new_location())) as returned:
            counts = copy_store.copy(file, returned, quiet)
            assert copy_store._digest(returned) == before
            assert returned.problems() == []
            assert_same_answers(returned, filled_store, fake_embedder)
            assert counts["messages"] == 177
            [is_forgotten] = returned.forgotten(
                [Message("user", "", source="python", source_id="x")]
            )
            assert not is_forgotten
            # Messages that are stored later come after the copied ones.
            [new] = returned.add(
                Scope("p", "p"), [Message("user", "new")], counter=COUNTER, now=NOW
            )
            assert new
            assert new.id > max(filled_store.find(EVERYWHERE).ids)


@pytest.mark.sqlite("it begins and ends with a file")
def test_a_file_copied_from_a_server_equals_the_original(filled_store, postgres, tmp_path):
    url = postgres.borrow()
    path = str(tmp_path / "back.db")
    with closing(open_store(url)) as server, closing(open_store(path)) as file:
        copy_store.copy(filled_store, server, quiet)
        copy_store.copy(server, file, quiet)
    postgres.give_back(url)
    assert fingerprint(path) == fingerprint(filled_store.location)


@pytest.mark.parametrize("function", ["load", "load_metadata"])
def test_an_interrupted_copy_is_resumed(filled_store, new_location, monkeypatch, function):
    monkeypatch.setattr(copy_store, "_AT_ONCE", 50)
    target = new_location()
    calls = 0
    with closing(open_store(target)) as new:
        original = getattr(dump, function)

        def break_off(store: Store, data: object) -> None:
            nonlocal calls
            original(store, data)
            calls += 1
            if calls == 2:
                raise OSError("in between")

        monkeypatch.setattr(dump, function, break_off)
        with pytest.raises(OSError, match="in between"):
            copy_store.copy(filled_store, new, quiet)
    with closing(open_store(target)) as new:
        assert new.get_property(copy_store.UNFINISHED_COPY)
        copied_keys: list[Key] = []
        load = dump.load
        monkeypatch.setattr(
            dump, "load", lambda store, batch: (copied_keys.extend(batch.keys), load(store, batch))
        )
        copy_store.copy(filled_store, new, quiet)
        assert len(copied_keys) == (127 if function == "load" else 0)
        assert copy_store._digest(new) == copy_store._digest(filled_store)
        assert new.get_property(copy_store.UNFINISHED_COPY) is None


def test_a_source_that_changed_in_between_is_noticed(filled_store, new_location, monkeypatch):
    monkeypatch.setattr(copy_store, "_AT_ONCE", 50)
    with closing(open_store(new_location())) as new:

        def stop(step: str, *_: int) -> None:
            if step == "comparing":
                raise OSError("in between")

        with pytest.raises(OSError, match="in between"):
            copy_store.copy(filled_store, new, stop)
        behind(filled_store.location, "UPDATE messages SET content = 'other' WHERE instance = 'p'")
        with pytest.raises(ReservoirError, match="was changed in between") as caught:
            copy_store.copy(filled_store, new, quiet)
        command = (
            f"remove {new.location}" if new.files() else f"psql {new.location} -c 'DROP SCHEMA"
        )
        assert str(caught.value.hint).startswith(command)


def test_a_target_that_is_not_empty_is_refused_and_not_changed(filled_store, new_location):
    with closing(open_store(new_location())) as new:
        new.add(Scope("p", "p"), [Message("user", "mine")], counter=COUNTER, now=NOW)
        with pytest.raises(UsageError, match="is not empty"):
            copy_store.copy(filled_store, new, quiet)
        assert [message.content for message in new.last(EVERYWHERE, 0)] == ["mine"]
    with pytest.raises(UsageError, match="into itself"):
        copy_store.copy(filled_store, filled_store, quiet)


def test_an_unfinished_copy_of_another_store_is_refused(filled_store, new_location, tmp_path):
    with (
        closing(open_store(new_location())) as new,
        closing(open_store(str(tmp_path / "x"))) as other,
    ):
        new.set_property(copy_store.UNFINISHED_COPY, '{"source": "elsewhere", "after": null}')
        with pytest.raises(UsageError, match="unfinished copy of elsewhere"):
            copy_store.copy(other, new, quiet)


def test_the_description_of_an_index_is_not_copied(filled_store, new_location):
    filled_store.set_property("index:p", "{}")
    with closing(open_store(new_location())) as new:
        copy_store.copy(filled_store, new, quiet)
        assert new.get_property("index:p") is None


def test_an_unfinished_copy_can_be_read_but_not_written(filled_store, new_location):
    def stop(*_: object) -> None:
        raise OSError("in between")

    message = [Message("user", "too early")]
    with closing(open_store(new_location())) as new, closing(open_store(new_location())) as third:
        with pytest.raises(OSError, match="in between"):
            copy_store.copy(filled_store, new, stop)
        assert new.last(EVERYWHERE, 0)
        for read_only in (False, True):
            new.read_only = read_only
            with pytest.raises(StoreError, match="a copy that is not finished") as caught:
                new.add(Scope("p", "p"), message, counter=COUNTER, now=NOW)
            assert new.location in str(caught.value.hint)
            assert filled_store.location in str(caught.value.hint)
        new.read_only = False
        with pytest.raises(StoreError, match="a copy that is not finished"):
            copy_store.copy(new, third, quiet)
        copy_store.copy(filled_store, new, quiet)
        new.add(Scope("p", "p"), message, counter=COUNTER, now=NOW)


@pytest.mark.sqlite("only a file is found from a folder")
def test_a_copy_is_resumed_from_another_working_directory(filled_store, tmp_path, monkeypatch):
    def stop(*_: object) -> None:
        raise OSError("in between")

    new = str(tmp_path / "new.db")
    for folder, progress in ((tmp_path, stop), (tmp_path.parent, quiet)):
        monkeypatch.chdir(folder)
        source = os.path.relpath(filled_store.location)
        with closing(open_store(source)) as old, closing(open_store(new)) as target:
            with suppress(OSError):
                copy_store.copy(old, target, progress)
    with closing(open_store(new)) as target:
        assert copy_store._digest(target) == copy_store._digest(filled_store)
        assert target.get_property(copy_store.UNFINISHED_COPY) is None
