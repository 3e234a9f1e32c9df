"""Links: which messages are linked."""

from contextlib import closing
from datetime import timedelta

import numpy as np
import pytest
from builders import NOW, add_passages

from reservoir_cli.messages import Key, Message, Scope
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.passage import Passage
from reservoir_cli.tokens import load_counter

P = Scope("p")


def direction(degrees):
    radians = np.radians(degrees)
    return np.array([np.cos(radians), np.sin(radians)], np.float32)


def cosine(degrees):
    return float(np.cos(np.radians(degrees)))


def add_notes(store, count, *, partition="p", instance="i", conversation=None, minute=0):
    messages = [
        Message(
            "user",
            f"note {number}",
            created_at=NOW + timedelta(minutes=minute + number),
            conversation_id=conversation,
        )
        for number in range(count)
    ]
    stored = store.add(
        Scope(partition, instance), messages, counter=load_counter("approximate"), now=NOW
    )
    return [message.id for message in stored]


def embed(store, ids, vectors):
    passages = [
        Passage(message_id, 0, 0, 1, vector)
        for message_id, vector in zip(ids, vectors, strict=True)
    ]
    store.activate_model("fake", "fake")
    add_passages(store, "fake", ids, passages)


def links(store, ids, least=0.7):
    """Return the pairs of linked messages of any partition, each with its older message first."""
    scopes = [Scope(message.partition) for message in store.last(Scope(None), 0)]
    reached = {
        message_id: {
            other for scope in scopes for other in store.linked([message_id], 1, scope, least)
        }
        for message_id in ids
    }
    pairs = {
        (min(pair), max(pair)) for start in ids for pair in [(start, e) for e in reached[start]]
    }
    for first, second in pairs:  # a link is followed from both of its ends
        assert first in reached[second]
        assert second in reached[first]
    return pairs


def expected_links(ids, vectors, least):
    """Return the pairs of linked messages of one thread, straight from the rule."""
    pairs = set()
    for at, vector in enumerate(vectors):
        start = max(0, at - 256)
        nearness = [round(float(vector @ other), 5) for other in vectors[start:at]]
        order = sorted(range(len(nearness)), key=lambda k: (-nearness[k], -k))
        for k in {*order[:3], *([len(nearness) - 1] if nearness else [])}:
            if nearness[k] >= least:
                pairs.add((ids[start + k], ids[at]))
    return pairs


@pytest.mark.parametrize("count", [2, 40, 300])
def test_links_are_those_of_the_rule(store, count):
    random = np.random.default_rng(7)
    vectors = [direction(angle) for angle in random.uniform(0, 360, count)]
    ids = add_notes(store, count)
    embed(store, ids, vectors)
    kept = store.passages([Key("p", message_id) for message_id in ids])
    stored = [kept[Key("p", message_id)][0].vector for message_id in ids]
    seeds = ids[:: max(1, count // 40)]
    expected = expected_links(ids, stored, 0.7)
    for seed in seeds:
        ends = {end for pair in expected if seed in pair for end in pair} - {seed}
        assert set(store.linked([seed], 1, P, 0.7)) == ends


def test_links_do_not_depend_on_which_messages_are_embedded_first(store, new_location):
    vectors = [direction(7 * number % 61) for number in range(300)]
    forward = add_notes(store, 300)
    for start in range(0, 300, 75):
        embed(store, forward[start : start + 75], vectors[start : start + 75])
    with closing(open_store(new_location())) as other:
        backward = add_notes(other, 300)
        for start in range(225, -1, -75):
            embed(other, backward[start : start + 75], vectors[start : start + 75])
        for at in range(0, 300, 38):
            here, there = (
                [numbers.index(end) for end in opened.linked([numbers[at]], 1, P, 0.7)]
                for opened, numbers in ((store, forward), (other, backward))
            )
            assert here == there


def test_a_message_is_linked_to_the_one_before_it(store):
    ids = add_notes(store, 3)
    embed(store, ids, [direction(0), direction(10), direction(20)])
    assert links(store, ids, cosine(15)) == {(ids[0], ids[1]), (ids[1], ids[2])}


def test_a_message_is_linked_to_the_three_nearest_before_it(store):
    ids = add_notes(store, 6)
    embed(store, ids, [direction(angle) for angle in (30, 3, 2, 1, 180, 0)])
    assert store.linked([ids[5]], 1, P, 0.7) == ids[1:4]


def test_the_previous_message_is_linked_in_addition_to_the_three_nearest(store):
    ids = add_notes(store, 6)
    embed(store, ids, [direction(angle) for angle in (4, 3, 2, 1, 30, 0)])
    assert store.linked([ids[5]], 1, P, 0.7) == ids[1:5]


def test_a_link_needs_the_threshold_and_reaching_it_is_enough(store):
    ids = add_notes(store, 3)
    vectors = [np.array(values, np.float32) for values in ([1, 0, 0], [0, 1, 0], [-1, 0, 0])]
    embed(store, ids, vectors)
    assert links(store, ids, 0) == {(ids[0], ids[1]), (ids[1], ids[2])}
    assert links(store, ids, 0.001) == set()


def test_without_similar_messages_the_chain_ends(store):
    ids = add_notes(store, 4)
    embed(store, ids, [direction(0), direction(1), direction(120), direction(121)])
    assert links(store, ids) == {(ids[0], ids[1]), (ids[2], ids[3])}


@pytest.mark.parametrize(
    ("first", "second", "linked"),
    [
        pytest.param({}, {}, True, id="§4 the same instance"),
        pytest.param({}, {"instance": "j"}, False, id="§4 another instance"),
        pytest.param({}, {"partition": "q"}, False, id="§4 never across partitions"),
        pytest.param({"conversation": "c"}, {"conversation": "c"}, True, id="§4 a conversation"),
        pytest.param({"conversation": "c"}, {"conversation": "d"}, False, id="§4 two of them"),
        pytest.param({"conversation": "c"}, {}, False, id="§4 a conversation and none"),
        pytest.param(
            {"conversation": "c"},
            {"conversation": "c", "partition": "q", "instance": "i"},
            False,
            id="§4 one conversation in two partitions",
        ),
    ],
)
def test_only_messages_of_one_thread_are_linked(store, first, second, linked):
    ids = add_notes(store, 1, **first) + add_notes(store, 1, minute=1, **second)
    embed(store, ids, [direction(0), direction(0)])
    assert bool(links(store, ids)) is linked


def test_only_the_256_previous_messages_are_compared(store):
    ids = add_notes(store, 258)
    # The first is similar to the last two only, and all others to neither.
    vectors = [direction(0)] + [direction(180)] * 255 + [direction(0), direction(0)]
    embed(store, ids, vectors)
    assert store.linked([ids[0]], 1, P, 0.7) == [ids[256]]
    assert store.linked([ids[257]], 1, P, 0.7) == [ids[256]]


def test_a_message_without_a_vector_has_no_links_and_does_not_count(store):
    ids = add_notes(store, 3)
    embed(store, [ids[0], ids[2]], [direction(0), direction(0)])
    assert links(store, ids) == {(ids[0], ids[2])}
    embed(store, [ids[1]], [direction(0)])
    assert links(store, ids) == {(ids[0], ids[1]), (ids[1], ids[2]), (ids[0], ids[2])}


def test_messages_of_several_passages_count_as_one_of_the_256_before(store):
    ids = add_notes(store, 202)
    passages = [
        Passage(message_id, part, 0, 1, direction(180 if 0 < index < 201 else 0))
        for index, message_id in enumerate(ids)
        for part in range(2)
    ]
    store.activate_model("fake", "fake")
    add_passages(store, "fake", ids, passages)
    assert store.linked([ids[201]], 1, P, 0.7) == [ids[0]]


@pytest.mark.parametrize(
    ("depth", "reached"),
    [
        pytest.param(0, [], id="§4 synapse_depth 0"),
        pytest.param(1, [3], id="§4 synapse_depth 1"),
        pytest.param(2, [2, 3], id="§4 synapse_depth 2"),
        pytest.param(9, [0, 1, 2, 3], id="§4 synapse_depth 9"),
    ],
)
def test_messages_are_reached_within_so_many_links(store, depth, reached):
    ids = add_notes(store, 5)
    embed(store, ids, [direction(10 * index) for index in range(5)])
    assert store.linked([ids[4]], depth, P, cosine(15)) == [ids[index] for index in reached]


def test_links_are_followed_in_both_directions(store):
    ids = add_notes(store, 3)
    embed(store, ids, [direction(10 * index) for index in range(3)])
    assert store.linked([ids[1]], 1, P, cosine(15)) == [ids[0], ids[2]]


def test_links_are_not_followed_out_of_the_scope(store):
    ids = add_notes(store, 2)
    embed(store, ids, [direction(0), direction(0)])
    assert store.linked([ids[1]], 5, Scope("q"), 0.7) == []
    assert store.linked([ids[1]], 5, Scope("p", "j"), 0.7) == []
