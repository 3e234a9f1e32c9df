"""Switching models: new vectors are built next to the old ones, then replace them at once."""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from behind import behind
from builders import EVERYWHERE, embed, indexer
from numpy.typing import NDArray

from reservoir_cli.embedding import Embedder
from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Message, Scope, StoredMessage
from reservoir_cli.retrieval import embed_messages
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.search.quantize import round_to_codes
from reservoir_cli.storage.store import Store

HERE = Scope("p", "i")
Adding = Callable[..., list[StoredMessage | None]]


class WatchedEmbedder:
    """An embedder that calls a function before each batch, and counts embedded texts."""

    def __init__(
        self, inner: Embedder, before_batch: Callable[[int], None] = lambda _: None
    ) -> None:
        self.name, self.model_id = inner.name, inner.model_id
        self.dimensions, self.engine = inner.dimensions, inner.engine
        self.encode_query, self.passages = inner.encode_query, inner.passages
        self._inner, self._before_batch = inner, before_batch
        self.groups: list[int] = []

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self._before_batch(len(self.groups))
        self.groups.append(len(texts))
        return self._inner.encode_documents(texts)


@pytest.fixture
def old(fake_embedder: Any) -> Embedder:
    return fake_embedder  # type: ignore[no-any-return]


@pytest.fixture
def new(fake_embedder: Any) -> Embedder:
    return type(fake_embedder)("new", "new-12", 12)  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_messages, "BATCH", 10)


@pytest.fixture
def filled_store(store: Store, add: Adding, old: Embedder) -> Store:
    """Store 25 messages with vectors of the old model, and a pending one."""
    add(*(Message("user", f"message {number}") for number in range(25)))
    embed(store, old, threshold=0)
    add(Message("user", "pending"))
    return store


def rebuild(store: Store, embedder: Any) -> int:
    return indexer(store, embedder, 0).rebuild()


def count_compared(store: Store, embedder: Embedder) -> int:
    """Return how many messages are compared with a question."""
    candidates = store.candidates(HERE, None, "message", embedder.encode_query("message"))
    return int((~np.isnan(candidates.cosine)).sum())


def models(store: Store) -> set[tuple[str, int]]:
    """Return the models with the number of their vectors."""
    if "://" in store.location:
        sql = "SELECT model_id, COUNT(*) FROM embeddings GROUP BY 1"
    else:
        sql = "SELECT model_id, SUM(embedded) FROM blocks GROUP BY 1"
    counts = set(behind(store.location, sql))
    return counts


def check_switched(store: Store, embedder: Embedder, count: int) -> None:
    assert store.active_model() == (embedder.model_id, embedder.name)
    assert store.next_model() is None
    assert models(store) == {(embedder.model_id, count)}
    assert store.problems() == []
    assert count_compared(store, embedder) == count
    stored_vectors = [
        part.vector
        for passages in store.passages(store.find(EVERYWHERE)).values()
        for part in passages
    ]
    contents = [message.content for message in store.last(EVERYWHERE, 0)]
    expected = round_to_codes(embedder.encode_documents(contents))
    assert {vector.tobytes() for vector in stored_vectors} <= {
        vector.tobytes() for vector in expected
    }


def test_readers_go_on_with_the_old_vectors_until_the_new_ones_are_complete(filled_store, old, new):
    observed = []

    def read(_: int) -> None:
        with closing(open_store(filled_store.location)) as reader:
            observed.append((reader.active_model(), count_compared(reader, old)))

    assert rebuild(filled_store, WatchedEmbedder(new, read)) == 26
    assert observed == [(("fake-8", "fake"), 25)] * 3
    check_switched(filled_store, new, 26)
    assert filled_store.count_unembedded(EVERYWHERE) == 0


def test_an_interrupted_switch_is_resumed(filled_store, old, new):
    def stop(group: int) -> None:
        if group == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild(filled_store, WatchedEmbedder(new, stop))
    assert count_compared(filled_store, old) == 25
    assert filled_store.next_model() == ("new-12", "new")
    assert filled_store.count_unembedded(model=new.model_id) == 6
    resumed = WatchedEmbedder(new)
    assert rebuild(filled_store, resumed) == 6
    assert resumed.groups == [6]
    check_switched(filled_store, new, 26)


@pytest.mark.parametrize("embedded", [False, True], ids=["pending", "embedded by the old model"])
def test_messages_stored_meanwhile_get_vectors_of_the_new_model(
    filled_store, add, old, new, embedded
):
    def say(group: int) -> None:
        add(Message("user", f"said meanwhile {group}"))
        if embedded:
            embed(filled_store, old, threshold=0)
            assert count_compared(filled_store, old) == 27 + group

    rebuild(filled_store, WatchedEmbedder(new, lambda group: say(group) if group < 3 else None))
    check_switched(filled_store, new, 29)


def test_messages_without_new_vectors_at_the_switch_are_pending(filled_store, add, new):
    model_id = filled_store.begin_model(new.model_id, new.name)
    filled_store.switch_model(model_id)
    assert filled_store.count_unembedded(EVERYWHERE) == 26
    assert indexer(filled_store, new, 0).update() == 26
    check_switched(filled_store, new, 26)


def test_the_vectors_of_a_model_can_be_rebuilt(filled_store, old):
    is_file = "://" not in filled_store.location
    zeros = (
        "blocks SET codes = zeroblob(8 * n)"
        if is_file
        else "embeddings SET vector = '[0,0,0,0,0,0,0,0]'"
    )
    behind(filled_store.location, f"UPDATE {zeros}")
    assert rebuild(filled_store, WatchedEmbedder(old)) == 26
    check_switched(filled_store, old, 26)


def test_an_interrupted_rebuild_is_resumed(filled_store, old):
    def stop(group: int) -> None:
        if group == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild(filled_store, WatchedEmbedder(old, stop))
    assert count_compared(filled_store, old) == 25
    assert embed(filled_store, old, threshold=0) == 1
    assert rebuild(filled_store, old) == 16
    check_switched(filled_store, old, 26)


def test_starting_another_switch_discards_the_first(filled_store, old, new):
    third = type(old)("third", "third-4", 4)  # type: ignore[call-arg]
    filled_store.begin_model(new.model_id, new.name)
    first = filled_store.unembedded(1, model=new.model_id)
    filled_store.add_passages(new.model_id, embed_messages.embed_messages(first, new))
    assert models(filled_store) == {("fake-8", 25), ("new-12", 1)}
    rebuild(filled_store, third)
    check_switched(filled_store, third, 26)


def test_giving_up_a_switch_keeps_the_old_model(filled_store, old, new):
    filled_store.begin_model(new.model_id, new.name)
    first = filled_store.unembedded(1, model=new.model_id)
    filled_store.add_passages(new.model_id, embed_messages.embed_messages(first, new))
    filled_store.give_up_model()
    embed(filled_store, old, threshold=0)
    check_switched(filled_store, old, 26)


def test_switching_back_before_cleanup_is_possible(filled_store, old, new):
    model_id = filled_store.begin_model(new.model_id, new.name)
    filled_store.switch_model(model_id)  # killed here
    rebuild(filled_store, old)
    check_switched(filled_store, old, 26)


def test_a_process_with_the_old_model_cannot_store_its_vectors(filled_store, add, old, new):
    [late_message] = add(Message("user", "late"))
    assert late_message
    passages = embed_messages.embed_messages([late_message], old)
    rebuild(filled_store, new)
    with pytest.raises(ReservoirError, match="changed meanwhile"):
        filled_store.add_passages(old.model_id, passages)
    check_switched(filled_store, new, 27)


def test_a_store_without_vectors_switches_immediately(store, add, new):
    add(Message("user", "hello"))
    assert rebuild(store, new) == 1
    check_switched(store, new, 1)


def test_forgetting_and_moving_affect_vectors_that_are_being_built(filled_store, old, new):
    ids = filled_store.find(EVERYWHERE)

    def delete_and_move(group: int) -> None:
        if group == 1:
            assert filled_store.delete([ids[1], ids[2], ids[23]])
        if group == 2:
            filled_store.move_partition("p", "q")

    rebuild(filled_store, WatchedEmbedder(new, delete_and_move))
    assert models(filled_store) == {("new-12", 23)}
    assert filled_store.problems() == []
    assert filled_store.channels() == [("q", "i", 23)]


def test_a_message_without_text_does_not_block_the_switch(filled_store, add, new):
    add(Message("tool", "", tool_call_id="c"))
    assert rebuild(filled_store, new) == 27
    assert filled_store.count_unembedded(EVERYWHERE) == 0
    assert filled_store.problems() == []
