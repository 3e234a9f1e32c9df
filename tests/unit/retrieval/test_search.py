"""Search and its thresholds, with handmade embeddings."""

from datetime import timedelta

import numpy as np
import pytest
from builders import NOW, Compass

from reservoir_cli import Reservoir, UsageError
from reservoir_cli.messages import Message, Scope
from reservoir_cli.settings import config
from reservoir_cli.storage.passage import Passage
from reservoir_cli.tokens import load_counter

pytestmark = pytest.mark.both_stores


@pytest.fixture
def reservoir(store, monkeypatch):
    monkeypatch.setattr(
        "reservoir_cli.embedding.load_model.load_embedder", lambda *_, **__: Compass()
    )
    store.activate_model("compass", "compass")
    return Reservoir(store, config.load(None, {"partition": "p"}))


@pytest.fixture
def say(store):
    """Store a message with a cosine to every question, or without an embedding."""
    clock = iter(range(10_000))

    def store_message(content, cosine=None, *, partition="p", instance="p", **more):
        message = Message(
            more.pop("role", "user"), content, created_at=NOW + timedelta(hours=next(clock)), **more
        )
        (stored,) = store.add(
            Scope(partition, instance), [message], counter=load_counter("approximate"), now=NOW
        )
        vectors = []
        if cosine is not None:
            vector = np.array([cosine, (1 - cosine**2) ** 0.5], np.float32)
            vectors = [Passage(stored.id, 0, 0, 1, vector)]
        store.add_passages("compass", {stored.key: vectors})
        return stored.id

    return store_message


def ids_of(hits):
    return [hit.message.id for hit in hits]


def test_semantic_search_ranks_by_cosine(reservoir, say):
    far, near, middle = say("a", -0.2), say("b", 0.9), say("c", 0.4)
    hits = reservoir.search("z", mode="semantic")
    assert ids_of(hits) == [near, middle, far]
    assert [hit.score for hit in hits] == pytest.approx([0.9, 0.4, -0.2], abs=0.005)
    assert [hit.rank for hit in hits] == [1, 2, 3]


def test_of_equal_cosines_the_newest_comes_first(reservoir, say):
    ids = [say(f"{number}", 0.5) for number in range(3)]
    assert ids_of(reservoir.search("z", mode="semantic")) == ids[::-1]


def test_keyword_search_finds_only_messages_with_the_words(reservoir, say):
    both_words = say("the amber fjord")
    say("a birch")
    assert ids_of(reservoir.search("amber fjord", mode="keyword")) == [both_words]


def test_a_message_without_an_embedding_is_found_by_its_words(reservoir, say):
    say("nothing of it", 0.9)
    message_id = say("the fjord")
    assert message_id in ids_of(reservoir.search("fjord"))


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
@pytest.mark.parametrize(
    ("threshold", "above"),
    [
        pytest.param(0.6, [0.9], id="§4 lists only what lies above"),
        pytest.param(0.5, [0.9], id="§4 strictly greater"),
        pytest.param(0.49, [0.9, 0.0], id="§4 just below"),
        pytest.param(0.0, [0.9, 0.0], id="§4 without a vector never"),
        pytest.param(None, [0.9, 0.0, None], id="§4 without it there is none"),
    ],
)
def test_a_threshold_lists_only_hits_above_it(reservoir, say, mode, threshold, above):
    cosines = [0.9, 0.0, None]
    ids = {cosine: say("the fjord", cosine) for cosine in cosines}
    if mode == "semantic":
        above = [cosine for cosine in above if cosine is not None]
    hits = reservoir.search("fjord", mode=mode, threshold=threshold)
    assert set(ids_of(hits)) == {ids[cosine] for cosine in above}


def test_a_threshold_filters_keyword_hits_or_is_refused(reservoir, say):
    nearest = say("the fjord", 0.9)
    say("the fjord", -0.9)
    try:
        hits = reservoir.search("fjord", mode="keyword", threshold=0.6)
    except UsageError:
        return
    assert ids_of(hits) == [nearest]


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_threshold_that_no_hit_can_have_is_wrong_usage(reservoir, threshold):
    with pytest.raises(UsageError, match="the threshold cannot be"):
        reservoir.search("fjord", threshold=threshold)


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_limit_is_respected(reservoir, say, mode):
    for number in range(5):
        say(f"fjord {number}", number / 10)
    for limit in (1, 2, 5):
        assert len(reservoir.search("fjord", mode=mode, limit=limit)) == limit


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_deduplication_keeps_the_best_of_equal_contents(reservoir, say, mode):
    say("the fjord ", 0.5)
    say(" the fjord", 0.9)
    say("a fjord and more than that", 0.1)
    plain = reservoir.search("fjord", mode=mode)
    fewer = reservoir.search("fjord", mode=mode, deduplicate=True)
    assert len(plain) == 3
    assert [hit.message.content.strip() for hit in fewer].count("the fjord") == 1
    assert ids_of(fewer) == [
        hit.message.id
        for index, hit in enumerate(plain)
        if hit.message.content.strip()
        not in [earlier.message.content.strip() for earlier in plain[:index]]
    ]
    assert [hit.rank for hit in fewer] == [1, 2]


def test_equal_contents_do_not_use_up_the_limit(reservoir, say):
    for _ in range(50):
        say("the fjord", 0.9)
    say("another fjord", 0.1)
    hits = reservoir.search("fjord", mode="semantic", limit=2, deduplicate=True)
    assert len(hits) == 2


def test_linked_messages_are_added_to_a_hit_and_not_counted(reservoir, say):
    linked = say("said before", 0.9)
    hit = say("the fjord", 0.9, trace_id="t")
    reply = say("as deep as that", None, role="assistant", trace_id="t")
    (result,) = reservoir.search("fjord", mode="keyword", link=True, limit=1)
    assert result.message.id == hit
    assert [message.id for message in result.linked] == [linked, reply]
    (plain,) = reservoir.search("fjord", mode="keyword", limit=1)
    assert plain.linked == ()


SCOPES = {"own": {}, "sibling": {"instance": "q"}, "stranger": {"partition": "x", "instance": "p"}}


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_nothing_crosses_the_scope(reservoir, say, mode):
    for name, scope in SCOPES.items():
        say(f"fjord of {name}", 0.9, trace_id="one", **scope)
    for options, expected in (
        ({}, {"own", "sibling"}),
        ({"instance": "q"}, {"sibling"}),
        ({"partition": "x"}, {"stranger"}),
        ({"scope": Scope(None)}, {*SCOPES}),
    ):
        hits = reservoir.search("fjord", mode=mode, link=True, **options)
        messages = [hit.message for hit in hits] + [row for hit in hits for row in hit.linked]
        found = {message.content.removeprefix("fjord of ") for message in messages}
        assert found == expected, options


def test_an_unknown_mode_is_wrong_usage(reservoir):
    with pytest.raises(UsageError):
        reservoir.search("fjord", mode="fuzzy")


def test_a_row_has_rank_scores_and_linked_messages(reservoir, say):
    say("the fjord", 0.9)
    row = reservoir.search("fjord")[0].to_row()
    assert {"rank", "score", "similarity", "cosine", "bm25", "linked"} <= row.keys()
    assert row["score"] == row["similarity"]
    assert row["cosine"] == pytest.approx(0.9, abs=0.005)


def test_the_only_message_with_a_word_is_among_the_hits(reservoir, say):
    for number in range(12):
        say(f"words of message {number}", 0.9)
    message_id = say("many others " * 20_000 + "quokka", -0.9)
    hits = reservoir.search("what about the quokka", limit=9)
    assert hits[-1].message.id == message_id
    assert len(hits) == 9
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert message_id not in ids_of(reservoir.search("a quokka", mode="semantic", limit=9))
    assert message_id not in ids_of(reservoir.search("what about the quokka", limit=2))


def test_messages_that_alone_have_a_word_leave_two_thirds_of_the_hits(reservoir, say):
    near = [say(f"words of message {number}", 0.9) for number in range(12)]
    for word in ("quokka", "wombat", "numbat"):
        say("many others " * 20_000 + word, -0.9)
    found = ids_of(reservoir.search("quokka wombat numbat", limit=6))
    assert len(set(found) & set(near)) == 4


def test_a_short_message_that_alone_has_a_word_ranks_like_any_other(reservoir, say):
    for number in range(12):
        say(f"words of message {number}", 0.9)
    message_id = say("many others " * 900 + "quokka", -0.9)
    assert message_id not in ids_of(reservoir.search("words of the quokka", limit=6))
