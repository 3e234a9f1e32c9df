"""Vector blocks hold everything that ranking needs, and can be rebuilt."""

from collections.abc import Sequence
from datetime import timedelta

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from builders import NOW
from hypothesis import given
from hypothesis import strategies as st

from reservoir_cli.messages import Key, Message, Scope
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.search.quantize import quantize, restore, round_to_codes
from reservoir_cli.storage.sqlite import blocks
from reservoir_cli.storage.store import Store

HERE = Scope("p", "i")
DIMENSIONS = 16


def directions(count: int, seed: int = 0) -> np.ndarray:
    sample = np.random.default_rng(seed).standard_normal((count, DIMENSIONS)).astype(np.float32)
    return sample / np.linalg.norm(sample, axis=1, keepdims=True)


def add_notes(add, count: int, **where) -> list[int]:
    messages = [
        Message("user", f"note {number}?", created_at=NOW + timedelta(minutes=number))
        for number in range(count)
    ]
    return [message.id for message in add(*messages, **where)]


def embed(store: Store, ids: Sequence[int], matrix: np.ndarray) -> None:
    if store.active_model() is None:
        store.activate_model("m", "model")
    by_message = {
        Key("p", message_id): [Passage(message_id, 0, 0, 1, vector)]
        for message_id, vector in zip(ids, matrix, strict=True)
    }
    store.add_passages("m", by_message)


def sizes(store: Store) -> list[int]:
    if "://" in store.location:  # a server has no vector blocks
        return []
    rows = store._connection.execute("SELECT n FROM blocks ORDER BY id")
    return [row[0] for row in rows]


def rows_by_id(store: Store, question: np.ndarray | None = None, scope: Scope = HERE) -> dict:
    """Return all fields of candidates by id."""
    candidates = store.candidates(scope, "i", "note", question)
    names = ("created_at", "tokens", "terms", "asks", "own", "thread", "loose", "cosine")
    columns = [getattr(candidates, name).tolist() for name in names]
    return dict(zip(candidates.ids.tolist(), zip(*columns, strict=True), strict=True))


@given(
    arrays.arrays(
        np.float32,
        st.tuples(st.integers(1, 5), st.integers(1, 9)),
        elements=st.floats(-1, 1, width=32),
    )
)
def test_codes_keep_the_length_of_a_vector_and_its_direction(matrix):
    scales, codes = quantize(matrix)
    steps = np.abs(matrix).max(axis=1, keepdims=True).astype(np.float64) / 127
    assert (np.abs(matrix - steps * codes) <= 0.5001 * steps).all()
    lengths = np.linalg.norm(restore(scales, codes).astype(np.float64), axis=1)
    np.testing.assert_allclose(
        lengths, np.linalg.norm(matrix.astype(np.float64), axis=1), 1e-5, 1e-35
    )
    again = quantize(restore(scales, codes))
    normal = scales > 1e-30
    np.testing.assert_array_equal(again[0][normal], scales[normal])
    np.testing.assert_array_equal(again[1][normal], codes[normal])


@pytest.mark.sqlite("a server has no vector blocks")
def test_messages_stored_one_by_one_fill_blocks(store, add):
    ids = add_notes(add, 300)
    for number, vector in zip(ids, directions(300), strict=True):
        embed(store, [number], vector[None])
    assert sizes(store) == [256, 44]
    assert list(rows_by_id(store)) == ids


@pytest.mark.sqlite("a server has no vector blocks")
def test_a_batch_fills_the_last_block_and_starts_new_ones(store, add):
    ids = add_notes(add, 600)
    embed(store, ids[:10], directions(10))
    embed(store, ids[10:], directions(590))
    assert sizes(store) == [256, 256, 88]


@pytest.mark.sqlite("a server has no vector blocks")
def test_each_instance_has_its_own_blocks(store, add):
    for instance in ("i", "j"):
        embed(store, add_notes(add, 3, instance=instance), directions(3))
    assert sizes(store) == [3, 3]
    assert len(rows_by_id(store)) == 3
    assert len(rows_by_id(store, scope=Scope("p"))) == 6


def test_embedding_does_not_change_the_other_fields(store, add):
    conversation = Message("assistant", "in a conversation", created_at=NOW, conversation_id="c")
    ids = [*add_notes(add, 5), *(message.id for message in add(conversation))]
    before = rows_by_id(store)
    embed(store, ids, directions(6))
    after = rows_by_id(store)
    assert [row[:-1] for row in after.values()] == [row[:-1] for row in before.values()]
    assert list(after) == list(before)


@pytest.mark.sqlite("it looks at the rows that SQLite reads")
def test_pending_messages_are_not_read_row_by_row(store, add):
    messages = [
        Message("user", "a note", conversation_id=f'"{number}", 7') for number in range(200)
    ]
    ids = [*add_notes(add, 200), *(message.id for message in add(*messages))]
    fetched = []
    store._connection.row_factory = lambda _, row: fetched.append(row) or row
    assert sorted(rows_by_id(store)) == ids
    assert len(fetched) < 20


def test_the_cosine_of_a_message_is_that_of_its_best_passage(store, add):
    [message_id] = add_notes(add, 1)
    store.activate_model("m", "model")
    passages = [
        Passage(message_id, start, start, start + 1, vector)
        for start, vector in enumerate(directions(400))
    ]
    store.add_passages("m", {Key("p", message_id): passages})
    question = directions(1, seed=7)[0]
    [row] = rows_by_id(store, question).values()
    assert row[-1] == pytest.approx((directions(400) @ question).max(), abs=0.01)
    assert sizes(store) in ([256, 144], [])


def test_cosines_are_those_of_the_vectors_that_the_store_keeps(store, add):
    ids = add_notes(add, 1_000)
    matrix = directions(1_000)
    embed(store, ids, matrix)
    question = directions(1, seed=7)[0]
    cosines = np.array([row[-1] for row in rows_by_id(store, question).values()])
    np.testing.assert_allclose(cosines, round_to_codes(matrix) @ question, atol=1e-4)
    np.testing.assert_allclose(cosines, matrix @ question, atol=0.01)
    kept = store.passages([Key("p", message_id) for message_id in ids])
    vectors = np.stack([kept[Key("p", message_id)][0].vector for message_id in ids])
    np.testing.assert_array_equal(vectors, round_to_codes(matrix))


def test_a_message_without_text_is_a_candidate_without_a_vector(store, add):
    [empty] = add(Message("tool", "", tool_call_id="c"))
    [message_id] = add_notes(add, 1)
    store.activate_model("m", "model")
    store.add_passages("m", {empty.key: []})
    embed(store, [message_id], directions(1))
    rows = rows_by_id(store, directions(1)[0])
    assert set(rows) == {empty.id, message_id}
    assert np.isnan(rows[empty.id][-1])
    assert rows[message_id][-1] == pytest.approx(1, abs=0.01)


def test_messages_embedded_twice_are_counted_once(store, add):
    ids = add_notes(add, 4)
    embed(store, ids, directions(4))
    embed(store, ids, directions(4, seed=9))
    assert sizes(store) in ([4], [])
    assert store.holdings()["embedded"] == 4


@pytest.mark.sqlite("a server has no vector blocks")
def test_removed_messages_are_in_no_block_and_the_others_stay(store, add):
    ids = add_notes(add, 300)
    embed(store, ids, directions(300))
    with store.write():
        blocks.remove(store._connection, ("p", "i"), [ids[0], ids[280]])
    assert sizes(store) == [255, 43]
    assert set(rows_by_id(store)) == set(ids) - {ids[0], ids[280]}
    with store.write():
        blocks.remove(store._connection, ("p", "i"), ids[:256])
    assert sizes(store) == [43]


#: Damage of blocks, and how many of 300 messages lose their vectors by a repair.
DAMAGE = [
    ("DELETE FROM blocks WHERE id = (SELECT MIN(id) FROM blocks)", 256),
    ("UPDATE blocks SET codes = zeroblob(n) WHERE n = 44", 44),
    ("UPDATE blocks SET tokens = zeroblob(4 * n)", 0),
    ("UPDATE blocks SET word_counts = zeroblob(4 * n)", 0),
    ("UPDATE blocks SET created_at = zeroblob(8 * n)", 0),
    ("UPDATE blocks SET partition = 'elsewhere' WHERE n = 44", 44),
    ("UPDATE messages SET tokens = tokens + 1", 0),
    ("INSERT INTO pending SELECT partition, id FROM messages WHERE content = 'note 7?'", 1),
    ("DELETE FROM pending", 2),
]


@pytest.mark.sqlite("a server has no vector blocks")
@pytest.mark.parametrize(("damage", "lost"), DAMAGE)
def test_a_repair_restores_what_blocks_repeat_and_drops_what_is_damaged(store, add, damage, lost):
    ids = add_notes(add, 300)
    [empty] = add(Message("user", "", created_at=NOW))
    embed(store, ids, directions(300))
    store.add_passages("m", {empty.key: []})
    pending = add_notes(add, 2, instance="j")
    question = directions(1, seed=7)[0]
    before = rows_by_id(store, question, Scope("p"))
    assert store.problems() == []
    store._connection.execute(damage)
    assert [problem.repairable for problem in store.problems()] == [True]
    store.repair()
    assert store.problems() == []
    after = rows_by_id(store, question, Scope("p"))
    assert after.keys() == before.keys()
    assert sum(np.isnan(row[-1]) for row in after.values()) == 3 + (lost if lost != 2 else 0)
    assert {*pending} <= {message.id for message in store.unembedded(1_000)}
    for message_id, row in after.items():
        if not np.isnan(row[-1]) and "messages SET" not in damage:
            assert row == before[message_id]


@pytest.mark.sqlite("a server has no vector blocks")
def test_a_message_that_lost_one_of_its_blocks_is_embedded_again(store, add):
    ids = add_notes(add, 2)
    store.activate_model("m", "model")
    passages = [
        Passage(ids[0], number, number, number + 1, vector)
        for number, vector in enumerate(directions(300))
    ]
    store.add_passages("m", {Key("p", ids[0]): passages})
    embed(store, ids[1:], directions(1))
    assert sizes(store) == [256, 45]
    store._connection.execute("DELETE FROM blocks WHERE n = 256")
    store.repair()
    assert sizes(store) == [1]
    assert [message.id for message in store.unembedded(9)] == ids[:1]


def test_a_new_count_of_tokens_reaches_ranking(store, add):
    ids = add_notes(add, 300)
    embed(store, ids, directions(300))
    store.update_counts({Key("p", ids[3]): 77, Key("p", ids[280]): 78}, "other 1")
    tokens = {message_id: row[1] for message_id, row in rows_by_id(store).items()}
    assert (tokens[ids[3]], tokens[ids[280]]) == (77, 78)
    assert store.problems() == []


def test_candidates_are_in_order_of_time_even_if_stored_late(store, add):
    late = add_notes(add, 20)
    early = [
        message.id
        for message in add(*(Message("user", "x", created_at=NOW - timedelta(days=1)),) * 20)
    ]
    embed(store, late, directions(20))
    embed(store, early, directions(20))
    assert list(rows_by_id(store)) == [*early, *late]


@pytest.mark.sqlite("a server has no vector blocks")
def test_a_changed_block_gets_an_id_that_was_never_used(store, add):
    def numbers() -> set[int]:
        rows = store._connection.execute("SELECT id FROM blocks")
        return {row[0] for row in rows}

    ids = add_notes(add, 600)
    embed(store, ids, directions(600))
    used = first = numbers()
    assert len(first) == 3
    steps = [
        lambda: store.delete([Key("p", ids[0])]),  # of the first
        lambda: store.delete([Key("p", message_id) for message_id in ids[512:]]),  # all of the last
        lambda: embed(store, add_notes(add, 1), directions(1)),  # after the rest of the first
    ]
    for step in steps:
        before = numbers()
        step()
        assert len(numbers() & before) == len(before) - 1
        assert not (numbers() - before) & used
        used = used | numbers()
