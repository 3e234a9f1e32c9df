"""A store that caches vectors between questions answers like one that was just opened."""

import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from threading import Event, current_thread

import numpy as np
import pytest
from builders import NOW, FakeEmbedder, embed, indexer

from reservoir_cli.messages import Conversation, Filter, Message, Scope
from reservoir_cli.retrieval.ranking import Scored, score, score_words
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.search import match_titles
from reservoir_cli.storage.search.candidates import Candidates, QuestionVector, Talk
from reservoir_cli.storage.sqlite import vector_scan
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import load_counter

pytestmark = pytest.mark.sqlite("a server keeps vectors in its own memory")
MODEL = FakeEmbedder()
SCOPES = (Scope("p"), Scope("p", "i"), Scope("q"), Scope(None))
QUESTION = "which of the notes was it?"


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store to copy, with five blocks of vectors."""
    path = tmp_path_factory.mktemp("embedded") / "store.db"
    with closing(open_store(str(path), create=True)) as store:
        store.activate_model(MODEL.model_id, MODEL.name)
        say(store, 600, Scope("p", "i"))
        say(store, 30, Scope("p", "j"))
        say(store, 20, Scope("q", "i"))
        embed(store, MODEL)
    return path


@pytest.fixture
def path(embedded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(embedded, tmp_path))


@pytest.fixture
def other(path: Path) -> Iterator[Store]:
    """Open the same store as another program would."""
    with closing(open_store(str(path), create=False)) as store:
        yield store


@pytest.fixture
def warm_store(path: Path, other: Store) -> Iterator[Store]:
    with closing(open_store(str(path), create=False)) as store:
        store.keep_warm()
        yield store


def say(store: Store, count: int, scope: Scope) -> None:
    messages = [
        Message("user", f"note {number} of {scope}?", created_at=NOW + timedelta(minutes=number))
        for number in range(count)
    ]
    store.add(scope, messages, counter=load_counter("approximate"), now=NOW)


def answers(store: Store) -> list[tuple[Candidates, Scored]]:
    vector = MODEL.encode_query(QUESTION)
    results = [store.candidates(scope, "i", QUESTION, vector) for scope in SCOPES]
    dates = [np.zeros(len(candidates.ids)) for candidates in results]
    return [
        (candidates, score(candidates, Settings(), 0, date_scores))
        for candidates, date_scores in zip(results, dates, strict=True)
    ]


def assert_answers_like_new(warm: Store) -> None:
    with closing(open_store(warm.location, create=False)) as reopened:
        expected = answers(reopened)
    for _ in range(2):
        for (candidates, scored), (expected_candidates, expected_scores) in zip(
            answers(warm), expected, strict=True
        ):
            for name in Candidates._fields:
                if isinstance(getattr(expected_candidates, name), np.ndarray):
                    np.testing.assert_array_equal(
                        getattr(candidates, name), getattr(expected_candidates, name)
                    )
            np.testing.assert_array_equal(scored.priority, expected_scores.priority)


def forget(store: Store, *positions: int) -> None:
    keys = store.find(Scope("p"), Filter())
    store.delete([keys[position] for position in positions])


def add_and_embed(store: Store) -> None:
    say(store, 7, Scope("p", "k"))
    embed(store, MODEL)


def replace_one(store: Store) -> None:
    forget(store, 5)
    say(store, 1, Scope("p", "late"))
    embed(store, MODEL)


class Opposite(FakeEmbedder):
    """An embedder that gives the opposite vectors."""

    def encode_query(self, text: str) -> np.ndarray:
        return -super().encode_query(text)


def rebuild_vectors(store: Store) -> None:
    indexer(store, Opposite()).rebuild()


CHANGES = {
    "nothing": lambda store: None,
    "a property set by another program": lambda store: store.set_property("note", "written"),
    "a message without a vector": lambda store: say(store, 1, Scope("p", "k")),
    "messages with vectors": add_and_embed,
    "some deleted": lambda store: forget(store, 0, 299, 300, 629),
    "one replaced by another": replace_one,
    "a partition moved": lambda store: store.move_partition("q", "p"),
    "another model": lambda store: store.activate_model("none-8", "none"),
    "rebuilt vectors": rebuild_vectors,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("by", ["another program", "itself"])
def test_changes_by_any_process_are_seen(warm_store, other, change, by):
    assert_answers_like_new(warm_store)
    change(warm_store if by == "itself" else other)
    assert_answers_like_new(warm_store)


def test_only_blocks_that_changed_are_read_again(warm_store, other, monkeypatch):
    read: list[int] = []
    read_blocks = vector_scan._read_blocks

    def record_reads(connection, numbers):
        read.extend(numbers)
        return read_blocks(connection, numbers)

    monkeypatch.setattr(vector_scan, "_read_blocks", record_reads)
    vector = MODEL.encode_query(QUESTION)
    warm_store.candidates(Scope("p"), None, QUESTION, vector)
    assert len(read) == 4  # three blocks of i, one of j
    read.clear()
    warm_store.candidates(Scope("p"), None, "and now?", vector)
    assert read == []
    say(other, 1, Scope("p", "j"))
    embed(other, MODEL)
    warm_store.candidates(Scope("p"), None, QUESTION, vector)
    assert len(read) == 1


def test_messages_without_vectors_are_prepared_once(warm_store, other):
    vector = MODEL.encode_query(QUESTION)
    say(other, 2, Scope("p", "k"))
    prepared = warm_store.candidates(Scope("p"), None, QUESTION, vector).cache
    assert warm_store.candidates(Scope("p"), None, "and now?", vector).cache is prepared
    say(other, 1, Scope("p", "k"))
    assert warm_store.candidates(Scope("p"), None, "and now?", vector).cache is not prepared
    assert_answers_like_new(warm_store)


@pytest.mark.parametrize("limit", [0, 700, 5_000, 6_000])
def test_vectors_too_large_for_the_cache_are_read_each_time(warm_store, other, monkeypatch, limit):
    monkeypatch.setattr(vector_scan, "MOST_KEPT", limit)
    assert_answers_like_new(warm_store)
    add_and_embed(other)
    assert_answers_like_new(warm_store)
    cached = [codes for _, codes in warm_store._cache.blocks._cache.values()]
    assert sum(code.nbytes for of_scope in cached for code in of_scope.values()) <= limit


def test_words_are_looked_up_and_scored_while_the_question_is_embedded(warm_store, other):
    may_embed, threads = Event(), []

    def embed_question() -> np.ndarray:
        threads.append(current_thread())
        assert may_embed.wait(60)
        return MODEL.encode_query(QUESTION)

    late = QuestionVector(MODEL.dimensions, warm_store.start(embed_question))
    gathered = warm_store.gather(Scope("p"), None, QUESTION, late)
    words = score_words(gathered.candidates, Settings())
    assert np.isnan(gathered.candidates.cosine).all()
    may_embed.set()
    candidates = warm_store.compare(gathered)
    with closing(open_store(warm_store.location, create=False)) as fresh:
        expected = fresh.candidates(Scope("p"), None, QUESTION, MODEL.encode_query(QUESTION))
    np.testing.assert_array_equal(candidates.cosine, expected.cosine)
    assert positions_of(candidates) == positions_of(expected) != []
    np.testing.assert_array_equal(words.question, score_words(expected, Settings()).question)
    assert threads != [current_thread()]


@pytest.mark.parametrize("warm", [False, True])
def test_a_follow_up_is_compared_where_no_message_has_a_vector(warm_store, other, warm):
    say(other, 2, Scope("new", "i"))
    talk = Talk(((0.5, "note"),), ())
    store = warm_store if warm else other
    candidates = store.candidates(
        Scope("new"), None, QUESTION, MODEL.encode_query(QUESTION), talk=talk
    )
    assert np.isnan(candidates.cosine).tolist() == [True, True]
    assert candidates.talk is not None
    assert np.isnan(candidates.talk.cosine).tolist() == [True, True]


def test_an_error_of_the_model_is_raised_unchanged(warm_store, other):
    def fail() -> np.ndarray:
        raise ValueError("no model")

    late = QuestionVector(MODEL.dimensions, warm_store.start(fail))
    with pytest.raises(ValueError, match="no model"):
        warm_store.candidates(Scope("p"), None, QUESTION, late)
    assert_answers_like_new(warm_store)


def test_a_cold_store_starts_no_thread(other):
    assert other.start(current_thread)() is current_thread()


def positions_of(candidates: Candidates) -> list[tuple[list[int], list[int]]]:
    return [
        (posting.positions.tolist(), posting.counts.tolist()) for posting in candidates.postings
    ]


def test_titles_are_read_again_only_when_something_was_written(warm_store, other, monkeypatch):
    reads = []
    read = match_titles.read_titles
    monkeypatch.setattr(
        match_titles, "read_titles", lambda *where: reads.append(where) or read(*where)
    )

    def titled(word: str) -> bool:
        found = warm_store.gather(Scope("t"), None, word, None).candidates
        return any(posting.titled is not None for posting in found.postings)

    message = Message("user", "It rained.", created_at=NOW, conversation_id="c")
    other.add(Scope("t", "t"), [message], counter=load_counter("approximate"), now=NOW)
    for writer, word in ((other, "Baking"), (warm_store, "Cycling"), (other, "Sailing")):
        writer.add_conversations(Scope("t", "t"), [Conversation("c", f"{word} abroad")])
        count = len(reads)
        assert [titled(word), titled("abroad"), titled("Reading")] == [True, True, False]
        assert len(reads) == count + 1
    with suppress(ZeroDivisionError), warm_store.write():
        warm_store.add_conversations(Scope("t", "t"), [Conversation("c", "Rowing")])
        assert titled("Rowing")
        raise ZeroDivisionError
    assert not titled("Rowing")
    assert titled("Sailing")
