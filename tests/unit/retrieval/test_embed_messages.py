from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from builders import EVERYWHERE, NOW, embed, indexer
from numpy.typing import NDArray

from reservoir_cli.errors import ReservoirError, StoreLockedError
from reservoir_cli.messages import Message, Scope, StoredMessage, ToolCall
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.tokens import load_counter

pytestmark = pytest.mark.both_stores

HOUR, MS = timedelta(hours=1), timedelta(milliseconds=1)
HERE = Scope("p", "i")

Adding = Callable[..., list[StoredMessage | None]]


def test_all_pending_messages_are_embedded(store, add, fake_embedder):
    add(*(Message("user", f"message {number}") for number in range(600)))
    steps: list[tuple[str, int, int]] = []
    count = embed(store, fake_embedder, progress=lambda *step: steps.append(step))
    assert count == 600
    assert steps == [("embedding", 0, 600), ("embedding", 512, 600), ("embedding", 600, 600)]
    assert store.count_unembedded(EVERYWHERE) == 0
    assert store.active_model() == ("fake-8", "fake")
    candidates = store.candidates(HERE, "i", "", fake_embedder.encode_query("message 77"))
    assert int(np.nanargmax(candidates.cosine)) == 77
    assert candidates.cosine[77] == pytest.approx(1, abs=1e-4)
    assert embed(store, fake_embedder) == 0


def test_tool_calls_are_embedded_and_empty_messages_are_not(store, add, fake_embedder):
    add(Message("assistant", "", tool_calls=(ToolCall("c", "f", "{}"),)), Message("tool", " "))
    assert embed(store, fake_embedder) == 2
    assert store.count_unembedded(EVERYWHERE) == 0
    candidates = store.candidates(HERE, "i", "", fake_embedder.encode_query("[call f {}]"))
    assert candidates.cosine[0] == pytest.approx(1, abs=1e-4)
    assert np.isnan(candidates.cosine[1])


LIMITS = [
    # pending, limit, embedded
    (5, {"newest": 2}, ["3", "4"]),
    (5, {"most": 2}, ["3", "4"]),
    (5, {"most": 9}, ["0", "1", "2", "3", "4"]),
    (5, {"newest": 9}, ["0", "1", "2", "3", "4"]),
    (5, {"newest": 0}, []),
    (100, {"newest": 70}, [str(number) for number in range(30, 100)]),
]


@pytest.mark.parametrize(("count", "limit", "embedded"), LIMITS)
def test_a_limit_bounds_how_many_are_embedded(store, add, fake_embedder, count, limit, embedded):
    add(*(Message("user", str(number), NOW + number * MS) for number in range(count)))
    assert embed(store, fake_embedder, **limit) == len(embedded)
    pending = {message.content for message in store.unembedded(count, EVERYWHERE)}
    assert pending == {str(number) for number in range(count)} - set(embedded)


def test_a_question_waits_for_at_most_64_passages_and_skips_long_messages(
    store, add, fake_embedder
):
    encoded: list[str] = []

    class Dividing(type(fake_embedder)):  # type: ignore[misc]
        def passages(self, text: str) -> list[tuple[int, int]]:
            assert len(text) < 1_000
            return [(start, start + 10) for start in range(0, len(text), 10)]

        def encode_documents(self, texts: Any) -> Any:
            encoded.extend(texts)
            return super().encode_documents(texts)

    lengths = (30, 20, 600, 650, 150_000, 0, 20)
    add(*(Message("user", "x" * length, NOW + n * MS) for n, length in enumerate(lengths)))
    indexer(store, Dividing()).embedder_for_question(EVERYWHERE)
    pending = [len(message.content) for message in store.unembedded(9, EVERYWHERE)]
    assert sorted(pending) == [30, 650, 150_000]
    assert len(encoded) == 2 + 60 + 2
    indexer(store, Dividing()).embedder_for_question(EVERYWHERE)
    pending = [len(message.content) for message in store.unembedded(9, EVERYWHERE)]
    assert sorted(pending) == [650, 150_000]


def test_the_newest_by_time_are_embedded_first_in_any_order_of_import(store, add, fake_embedder):
    # As in an export with the newest conversation first: ids increase while times decrease.
    add(*(Message("user", str(number), NOW - number * MS) for number in range(700)))
    assert embed(store, fake_embedder, most=3) == 3
    pending = {message.content for message in store.unembedded(700, EVERYWHERE)}
    assert {str(number) for number in range(700)} - pending == {"0", "1", "2"}
    batches: list[list[str]] = []

    class Watched(type(fake_embedder)):  # type: ignore[misc]
        def encode_documents(self, texts: Any) -> Any:
            batches.append(list(texts))
            return super().encode_documents(texts)

    assert embed(store, Watched()) == 697
    assert [text for batch in batches for text in batch] == [
        str(number) for number in range(3, 700)
    ]


def test_messages_stored_during_a_run_are_embedded_by_it(store, add, fake_embedder):
    add(Message("user", "before"))

    def progress(_what: str, done: int, _total: int) -> None:
        if done == 1:
            add(Message("user", "meanwhile"))

    assert embed(store, fake_embedder, progress=progress) == 2
    assert store.count_unembedded(EVERYWHERE) == 0


def test_only_the_scope_is_embedded(store, add, fake_embedder):
    add(Message("user", "a"))
    add(Message("user", "b"), partition="q")
    assert embed(store, fake_embedder, HERE) == 1
    assert [message.content for message in store.unembedded(9, EVERYWHERE)] == ["b"]


def test_vectors_of_different_models_are_never_mixed(store, add, fake_embedder):
    add(Message("user", "a"))
    embed(store, fake_embedder)
    add(Message("user", "b"))
    other = type(fake_embedder)("other", "other-4", 4)
    with pytest.raises(ReservoirError, match="from a model other than other") as caught:
        embed(store, other)
    assert "embedding_model=fake" in str(caught.value.hint)
    assert store.count_unembedded(EVERYWHERE) == 1
    assert store.active_model() == ("fake-8", "fake")


def test_a_model_that_has_changed_is_embedded_again(store, add, fake_embedder):
    add(Message("user", "a"))
    embed(store, fake_embedder)
    add(Message("user", "b"))
    with pytest.raises(ReservoirError, match="from another version of fake") as caught:
        embed(store, type(fake_embedder)("fake", "fake-4", 4))
    assert caught.value.hint == "reservoir embed --rebuild"


def test_a_locked_store_stops_embedding_immediately_without_losses(store, add, fake_embedder):
    add(Message("user", "a"))
    with closing(open_store(store.location)) as other, other.write():
        other.add(HERE, [Message("user", "b")], counter=load_counter("approximate"), now=NOW)
        with closing(open_store(store.location, patience=0)) as impatient:
            with pytest.raises(StoreLockedError):
                embed(impatient, fake_embedder)
    assert store.count_unembedded(EVERYWHERE) == 2
    assert embed(store, fake_embedder) == 2


def test_batches_before_a_failure_of_the_model_are_kept(store, add, fake_embedder):
    class Failing(type(fake_embedder)):  # type: ignore[misc]
        def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if "50" in texts:  # an old message: the newest come first
                raise RuntimeError("out of memory")
            return super().encode_documents(texts)  # type: ignore[no-any-return]

    add(*(Message("user", str(number), NOW + number * MS) for number in range(600)))
    with pytest.raises(RuntimeError):
        embed(store, Failing())
    assert store.count_unembedded(EVERYWHERE) == 600 - 512
    assert embed(store, fake_embedder) == 600 - 512


LENGTHS = [
    # lengths of messages, how many are embedded after each batch
    ([90_000, 90_000, 90_000, 90_000, 90_000], [2, 4, 5]),
    ([500_000, 5, 5], [1, 3]),
    ([5, 500_000, 5], [1, 2, 3]),
]


@pytest.mark.parametrize(("lengths", "totals"), LENGTHS)
def test_a_batch_of_long_messages_is_small(store, add, fake_embedder, lengths, totals):
    add(*(Message("user", "x" * length, NOW - index * MS) for index, length in enumerate(lengths)))
    reported: list[int] = []
    embed(store, fake_embedder, progress=lambda _, done, __: reported.append(done))
    assert reported == [0, *totals]


def test_a_message_is_found_by_each_of_its_passages(store, add, fake_embedder):
    class Halving(type(fake_embedder)):  # type: ignore[misc]
        def passages(self, text: str) -> list[tuple[int, int]]:
            middle = len(text) // 2
            return [(0, middle), (middle, len(text))] if middle > 3 else [(0, len(text))]

    add(Message("user", "short"), Message("user", "fore" + "hind"))
    assert embed(store, Halving()) == 2
    for part in ("fore", "hind"):
        candidates = store.candidates(HERE, "i", "", fake_embedder.encode_query(part))
        assert candidates.cosine[1] == pytest.approx(1, abs=1e-4)


def test_messages_may_be_forgotten_while_they_are_embedded(store, add, fake_embedder):
    class Forgetting(type(fake_embedder)):  # type: ignore[misc]
        def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            store.delete([gone.key])
            return super().encode_documents(texts)  # type: ignore[no-any-return]

    gone, _ = add(Message("user", "gone"), Message("user", "kept"))
    assert gone is not None
    embed(store, Forgetting())
    assert store.count_unembedded(EVERYWHERE) == 0
    candidates = store.candidates(HERE, "i", "", fake_embedder.encode_query("kept"))
    assert candidates.cosine.tolist() == pytest.approx([1], abs=1e-4)


@pytest.mark.parametrize("again", [False, True], ids=["pending", "rebuild"])
def test_a_message_edited_while_it_is_embedded_is_embedded_again(store, add, fake_embedder, again):
    class Editing(type(fake_embedder)):  # type: ignore[misc]
        def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if "old" in texts:
                counter = load_counter("approximate")
                store.edit(edited.key, Message("user", "new"), counter=counter, now=NOW)
            return super().encode_documents(texts)  # type: ignore[no-any-return]

    edited, _ = add(Message("user", "old"), Message("user", "other"))
    assert edited is not None
    if again:
        embed(store, fake_embedder)
        indexer(store, Editing()).rebuild()
    embed(store, Editing())
    assert store.count_unembedded(EVERYWHERE) == 0
    [passage] = store.passages([edited.key])[edited.key]
    assert passage.vector.tolist() == pytest.approx(
        fake_embedder.encode_query("new").tolist(), abs=0.005
    )


@pytest.mark.sqlite("what the model finds does not depend on the store")
def test_a_fact_at_the_end_of_a_long_reply_is_found_first(store, add, embedder):
    topics = ["the garden", "a new bicycle", "the tax return", "train tickets", "a wedding cake"]
    add(*(Message("user", f"Tell me about {topics[n % 5]}, number {n}.") for n in range(300)))
    filler = "Caching pays where reads are many and writes are few, so measure before you decide. "
    fact = "By the way, the spare key to the boat house hangs behind the blue fuse box."
    (reply,) = add(Message("assistant", filler * 200 + "\n\n" + fact))
    assert reply is not None
    assert len(reply.content.split()) > 3_000
    assert embed(store, embedder) == 301
    candidates = store.candidates(
        HERE, "i", "", embedder.encode_query("Where is the boat house key?")
    )
    assert int(candidates.ids[int(np.nanargmax(candidates.cosine))]) == reply.id


@pytest.mark.sqlite("what the model finds does not depend on the store")
def test_the_real_model_finds_paraphrases(store, add, embedder):
    add(
        Message("user", "The cat sleeps on the sofa"),
        Message("user", "We moved the database to Postgres"),
    )
    assert embed(store, embedder) == 2
    question = embedder.encode_query("Where does the kitten nap?")
    assert question.shape == (embedder.dimensions,)
    candidates = store.candidates(HERE, "i", "", question)
    assert candidates.cosine[0] > candidates.cosine[1] + 0.2
    assert np.linalg.norm(question) == pytest.approx(1, abs=1e-5)


def test_a_message_of_many_passages_is_left_to_embed(store, add, fake_embedder):
    words = "the harbour was quiet, and {}{} asked nobody about the {}{} ship\n"
    letters = "abcdefghijklmnopqrstuvwxyz"
    log = "".join(words.format(a, b, b, c) for a in letters for b in letters for c in letters[:3])
    add(*(Message("user", text, NOW + n * MS) for n, text in enumerate((log, "one", log, "two"))))
    for arguments in ({"newest": 4}, {"newest": 2}, {"most": 4}, {}):
        notes: list[str] = []
        indexer(store, fake_embedder, notify=notes.append).embed_if_possible(
            EVERYWHERE, **arguments
        )
        assert store.count_unembedded(EVERYWHERE) == 2
        assert notes == ["2 messages not embedded yet: reservoir embed"] * ("most" not in arguments)
    assert embed(store, fake_embedder) == 2
    assert store.count_unembedded(EVERYWHERE) == 0


def test_text_without_words_is_no_longer_pending_and_has_no_passages(store, add, fake_embedder):
    encoded: list[str] = []

    class Watched(type(fake_embedder)):  # type: ignore[misc]
        def encode_documents(self, texts: Any) -> Any:
            encoded.extend(texts)
            return super().encode_documents(texts)

        def passages(self, text: str) -> list[tuple[int, int]]:
            raise AssertionError("divided into passages")

    add(Message("user", "QUJDREVGR0g=" * 90_000), Message("user", "f3a9c1" * 90_000))
    indexer(store, Watched()).embed_if_possible(EVERYWHERE, newest=2)
    assert store.count_unembedded(EVERYWHERE) == 0
    assert encoded == []
