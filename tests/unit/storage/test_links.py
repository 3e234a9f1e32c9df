"""Links: which messages are linked, and how strongly."""

from datetime import timedelta

import numpy as np
import pytest
from behind import behind
from builders import NOW, add_passages

from reservoir_cli.messages import Message, Scope
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.passage import Passage
from reservoir_cli.tokens import load_counter

P = Scope("p")


def direction(degrees):
    radians = np.radians(degrees)
    return np.array([np.cos(radians), np.sin(radians)], np.float32)


def scaled_cosine(degrees):
    return (1 + np.cos(np.radians(degrees))) / 2


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


def embed(store, ids, vectors, threshold=0.85):
    passages = [
        Passage(message_id, 0, 0, 1, vector)
        for message_id, vector in zip(ids, vectors, strict=True)
    ]
    add_passages(store, "fake", ids, passages, threshold)


def links(store):
    """Return {(source, target): (score, kind)} from the store."""
    rows = behind(store.location, "SELECT source_id, target_id, score, kind FROM synapses")
    return {row[:2]: row[2:] for row in rows}


def test_links_do_not_depend_on_which_messages_are_embedded_first(store, tmp_path):
    other = open_store(str(tmp_path / "other.db"), create=True)
    vectors = [direction(7 * number % 61) for number in range(600)]
    forward, backward = add_notes(store, 600), add_notes(other, 600)
    for start in range(0, 600, 150):
        embed(store, forward[start : start + 150], vectors[start : start + 150])
    for start in range(450, -1, -150):
        embed(other, backward[start : start + 150], vectors[start : start + 150])
    numbers = dict(zip(backward, forward, strict=True))
    renumbered = {
        (numbers[source], numbers[target]): value
        for (source, target), value in links(other).items()
    }
    other.close()
    assert renumbered.keys() == links(store).keys()
    for ends, (score, kind) in links(store).items():
        assert renumbered[ends] == (pytest.approx(score, abs=1e-6), kind)


def test_a_message_is_linked_to_the_one_before_it(store):
    ids = add_notes(store, 3)
    embed(store, ids, [direction(0), direction(10), direction(20)], threshold=0.99)
    assert set(links(store)) == {(ids[1], ids[0]), (ids[2], ids[1])}
    assert {kind for _, kind in links(store).values()} == {"previous"}


def test_a_message_is_linked_to_the_three_nearest_before_it(store):
    ids = add_notes(store, 6)
    embed(store, ids, [direction(angle) for angle in (30, 3, 2, 1, 180, 0)])
    assert {target for source, target in links(store) if source == ids[5]} == set(ids[1:4])


def test_the_previous_message_is_linked_in_addition_to_the_three_nearest(store):
    ids = add_notes(store, 6)
    embed(store, ids, [direction(angle) for angle in (4, 3, 2, 1, 30, 0)])
    kinds = {
        target: kind for (source, target), (_, kind) in links(store).items() if source == ids[5]
    }
    assert kinds == {ids[4]: "previous", ids[3]: "near", ids[2]: "near", ids[1]: "near"}


def test_a_link_needs_the_threshold_and_reaching_it_is_enough(store):
    ids = add_notes(store, 3)
    # Right angles have a cosine of 0, which is 0.5 on the scale of the threshold.
    vectors = [np.array(values, np.float32) for values in ([1, 0, 0], [0, 1, 0], [-1, 0, 0])]
    embed(store, ids, vectors, threshold=0.5)
    assert {pair: score for pair, (score, _) in links(store).items()} == {
        (ids[1], ids[0]): 0.5,
        (ids[2], ids[1]): 0.5,
    }


def test_the_score_of_a_link_is_on_the_scale_of_the_threshold(store):
    ids = add_notes(store, 2)
    embed(store, ids, [direction(0), direction(40)])
    assert links(store)[ids[1], ids[0]][0] == pytest.approx(scaled_cosine(40), abs=1e-6)


def test_without_similar_messages_the_chain_ends(store):
    ids = add_notes(store, 4)
    embed(store, ids, [direction(0), direction(1), direction(120), direction(121)])
    assert set(links(store)) == {(ids[1], ids[0]), (ids[3], ids[2])}


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
    assert bool(links(store)) is linked


def test_only_the_256_previous_messages_are_compared(store):
    ids = add_notes(store, 258)
    # The first is similar to the last two only, and all others to neither.
    vectors = [direction(0)] + [direction(180)] * 255 + [direction(0), direction(0)]
    embed(store, ids, vectors)
    all_links = links(store)
    assert (ids[256], ids[0]) in all_links
    assert (ids[257], ids[0]) not in all_links


def test_a_link_is_created_once_both_messages_have_vectors(store):
    ids = add_notes(store, 2)
    embed(store, ids[1:], [direction(0)])
    assert links(store) == {}
    embed(store, ids[:1], [direction(0)])
    assert set(links(store)) == {(ids[1], ids[0])}


def test_a_link_to_the_previous_message_is_replaced_when_one_in_between_is_embedded(store):
    ids = add_notes(store, 3)
    embed(store, [ids[0], ids[2]], [direction(0), direction(0)])
    assert links(store)[ids[2], ids[0]][1] == "previous"
    embed(store, [ids[1]], [direction(0)])
    assert {pair: kind for pair, (_, kind) in links(store).items()} == {
        (ids[1], ids[0]): "previous",
        (ids[2], ids[1]): "previous",
        (ids[2], ids[0]): "near",
    }


def one_by_one(ids):
    return [[message_id] for message_id in ids]


def by_seven(ids):
    return [ids[start : start + 7] for start in range(0, len(ids), 7)]


def newest_first(ids):
    return [batch[::-1] for batch in by_seven(ids)][::-1]


def shuffled(ids):
    return [[int(message_id)] for message_id in np.random.default_rng(4).permutation(ids)]


@pytest.mark.parametrize(
    ("batches", "count"),
    [
        pytest.param(one_by_one, 40, id="§4 one by one"),
        pytest.param(shuffled, 40, id="§4 in any order"),
        pytest.param(by_seven, 40, id="§4 in small batches"),
        pytest.param(newest_first, 40, id="§4 newest first"),
        pytest.param(by_seven, 280, id="§4 in small batches, more than 256"),
        pytest.param(newest_first, 280, id="§4 newest first, more than 256"),
    ],
)
def test_links_do_not_depend_on_the_order_of_embedding(tmp_path, batches, count):
    random = np.random.default_rng(7)
    vectors = [direction(angle) for angle in random.uniform(0, 360, count)]
    results = []
    for name, make_batches in (("one", lambda ids: [ids]), ("other", batches)):
        store = open_store(str(tmp_path / f"{name}.db"))
        ids = add_notes(store, count)
        with store.write():
            for batch in make_batches(ids):
                embed(store, batch, [vectors[ids.index(message_id)] for message_id in batch])
        results.append(
            {pair: (round(score, 5), kind) for pair, (score, kind) in links(store).items()}
        )
        store.close()
    assert len(results[0]) > count
    assert results[1] == results[0]


def test_messages_of_several_passages_count_as_one_of_the_256_before(store):
    ids = add_notes(store, 202)
    passages = [
        Passage(message_id, part, 0, 1, direction(180 if 0 < index < 201 else 0))
        for index, message_id in enumerate(ids)
        for part in range(2)
    ]
    add_passages(store, "fake", ids[:-1], passages, 0.85)
    add_passages(store, "fake", ids[-1:], passages, 0.85)
    assert (ids[201], ids[0]) in links(store)


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
    embed(store, ids, [direction(10 * index) for index in range(5)], threshold=scaled_cosine(15))
    assert store.linked([ids[4]], depth, P) == [ids[index] for index in reached]


def test_links_are_followed_in_both_directions(store):
    ids = add_notes(store, 3)
    embed(store, ids, [direction(10 * index) for index in range(3)], threshold=scaled_cosine(15))
    assert store.linked([ids[1]], 1, P) == [ids[0], ids[2]]


def test_links_are_not_followed_out_of_the_scope(store):
    ids = add_notes(store, 2)
    embed(store, ids, [direction(0), direction(0)])
    assert store.linked([ids[1]], 5, Scope("q")) == []
    assert store.linked([ids[1]], 5, Scope("p", "j")) == []
