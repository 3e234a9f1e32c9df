"""The class ``Reservoir``, beyond the modules that it calls."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reservoir_cli import Message, Reservoir, Scope
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import Key
from reservoir_cli.settings import paths
from reservoir_cli.tokens import load_counter
from reservoir_cli.util.private_files import exclusive_lock


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def reservoir(
    tmp_path: Path, fake_embedder: Any, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> Reservoir:
    with Reservoir.open(tmp_path / "r.db", embedder=fake_embedder, notify=notes.append) as opened:
        yield opened


def test_one_message_does_not_wait_for_a_backlog(reservoir, notes):
    reservoir.ingest([Message("user", f"old {n}") for n in range(200)], embed=False)
    [stored] = reservoir.ingest([Message("user", "new")])
    pending = {message.id for message in reservoir.store.unembedded(999, Scope(None))}
    assert len(pending) == 136
    assert stored.id not in pending
    assert notes == ["136 messages not embedded yet: reservoir embed"]


def test_one_message_does_not_wait_for_long_messages(reservoir, notes):
    [old] = reservoir.ingest([Message("user", "old " * 40_000)], embed=False)
    reservoir.ingest([Message("user", "new")])
    pending = [message.id for message in reservoir.store.unembedded(9, Scope(None))]
    assert pending == [old.id]
    assert notes == ["1 message not embedded yet: reservoir embed"]


def test_a_small_backlog_is_embedded_with_a_new_message(reservoir, notes):
    reservoir.ingest([Message("user", f"old {n}") for n in range(20)], embed=False)
    reservoir.ingest([Message("user", "new")])
    assert reservoir.store.count_unembedded(Scope(None)) == 0
    assert notes == []


def test_a_long_list_is_embedded_completely(reservoir):
    reservoir.ingest([Message("user", f"message {n}") for n in range(300)])
    assert reservoir.store.count_unembedded(Scope(None)) == 0


def test_a_saved_question_keeps_the_trace_of_its_window(reservoir):
    window = reservoir.context("what now?", save=True, budget=100)
    [stored] = reservoir.view(reservoir.scope(), 1)
    assert (stored.content, stored.trace_id) == ("what now?", window.request.trace_id)
    assert window.selection.history == ()


def test_forgetting_and_backing_up_are_verbs_of_the_object(tmp_path):
    with Reservoir.open(tmp_path / "store.db") as reservoir:
        [stored] = reservoir.ingest([Message("user", "quokkas")], embed=False)
        reservoir.backup(tmp_path / "copy.db")
        reservoir.forget([stored.id])
        assert reservoir.view(Scope(None), 0) == []
    with Reservoir.open(tmp_path / "copy.db") as copied:
        assert [message.content for message in copied.view(Scope(None), 0)] == ["quokkas"]


# Several at once


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_messages_that_another_process_embeds_are_left_to_it(tmp_path, fake_embedder):
    path = tmp_path / "store.db"
    with Reservoir.open(path, embedder=fake_embedder) as reservoir:
        with exclusive_lock(paths.embedding_lock(str(path))):
            reservoir.ingest([Message("user", "one")])
            assert reservoir.store.count_unembedded(Scope(None)) == 1
            assert reservoir.context("one?").kept  # nor does a question wait
            assert reservoir.store.count_unembedded(Scope(None)) == 1
        reservoir.ingest([Message("user", "two")])
        assert reservoir.store.count_unembedded(Scope(None)) == 0


def test_embedding_ends_while_others_store_more_messages(tmp_path, fake_embedder, monkeypatch):
    with Reservoir.open(tmp_path / "store.db", embedder=fake_embedder) as reservoir:
        encode, new_messages = fake_embedder.encode_documents, [Message("user", "said meanwhile")]
        scope = Scope("default", "default")

        def encode_while_others_talk(texts: Sequence[str]) -> object:
            counter = load_counter("approximate")
            reservoir.store.add(scope, new_messages, counter=counter, now=datetime.now(UTC))
            return encode(texts)

        monkeypatch.setattr(fake_embedder, "encode_documents", encode_while_others_talk)
        reservoir.ingest([Message("user", "one")])
        assert reservoir.store.count_unembedded(Scope(None)) == 1


def test_a_recall_is_recorded_immediately_unless_records_are_deferred(reservoir, tmp_path):
    def recalls() -> int:
        return reservoir.stats()["recalls"]["runs"]

    reservoir.ingest([Message("user", "the ferry leaves at nine")])
    reservoir.recall("when does the ferry leave?")
    assert recalls() == 1
    reservoir.runs.put_off_recalls()
    reservoir.recall("when does the ferry leave?")
    assert recalls() == 1
    reservoir.runs.write_recalls()
    assert recalls() == 2
    reservoir.recall("when does the ferry leave?")
    reservoir.close()
    with Reservoir.open(tmp_path / "r.db") as reservoir:
        assert recalls() == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda reservoir, number: reservoir.edit(number, "new text"),
        lambda reservoir, number: reservoir.tag(number, "travel"),
        lambda reservoir, number: reservoir.untag(number, "travel"),
        lambda reservoir, number: reservoir.pin(number),
        lambda reservoir, number: reservoir.unpin(number),
    ],
    ids=["edit", "tag", "untag", "pin", "unpin"],
)
def test_a_message_that_moves_while_it_is_changed_is_an_error(reservoir, monkeypatch, change):
    [message] = reservoir.ingest([Message("user", "the text")], partition="work")
    find_key = reservoir._key

    def find_and_move(number: int, scope: Scope) -> Key:
        key = find_key(number, scope)
        reservoir.move_partition("work", "acme")
        return key

    monkeypatch.setattr(reservoir, "_key", find_and_move)
    with pytest.raises(ReservoirError, match=f"message {message.id} is no longer in work"):
        change(reservoir, message.id)
    assert [stored.content for stored in reservoir.view(Scope("acme"))] == ["the text"]


def test_a_partition_that_is_moved_to_itself_keeps_its_messages(reservoir):
    reservoir.ingest([Message("user", "the text")], partition="work")
    with pytest.raises(UsageError, match="work cannot be moved to itself"):
        reservoir.move_partition("work", "work")
    assert [stored.content for stored in reservoir.view(Scope("work"))] == ["the text"]
