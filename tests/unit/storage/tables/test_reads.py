"""Reading messages: filters, scopes, related messages, and vectors."""

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pytest
from behind import behind
from builders import NOW
from stored import EVERYWHERE, HERE, HOUR, contents, delete, ids_of

from reservoir_cli.messages import Conversation, Filter, Message, Scope, StoredMessage, ToolCall
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.store import Store


def passage(message: StoredMessage | None, *vector: float) -> Passage:
    assert message is not None
    return Passage(message.id, 0, 0, len(message.content), np.array(vector, np.float32))


def embed(
    store: Store, messages: Sequence[StoredMessage | None], *passages: Passage, model: str = "m"
) -> None:
    by_message = {
        message.key: [passage for passage in passages if passage.message_id == message.id]
        for message in messages
        if message is not None
    }
    store.add_passages(model, by_message)


def test_the_last_messages_are_in_order_of_time_then_id(store, add):
    add(
        Message("user", "late", created_at=NOW),
        Message("user", "early", created_at=NOW - HOUR),
        Message("user", "late too", created_at=NOW),
    )
    assert contents(store.last(HERE, 0)) == ["early", "late", "late too"]
    assert contents(store.last(HERE, 2)) == ["late", "late too"]
    assert contents(store.last(HERE, 99)) == ["early", "late", "late too"]


FILTERS = [
    (Filter(role="assistant"), ["b"]),
    (Filter(trace_id="t"), ["a", "b"]),
    (Filter(conversation_id="k"), ["c"]),
    (Filter(since=NOW), ["b", "c"]),
    (Filter(until=NOW), ["a", "b"]),
    (Filter(since=NOW, until=NOW), ["b"]),
    (Filter(since=NOW + HOUR / 3_600_000), ["c"]),
    (Filter(role="user", trace_id="t"), ["a"]),
    (Filter(role="tool"), []),
]


def test_a_filter_keeps_matching_messages(store, add):
    add(
        Message("user", "a", created_at=NOW - HOUR, trace_id="t"),
        Message("assistant", "b", created_at=NOW, trace_id="t"),
        Message("user", "c", created_at=NOW + HOUR, conversation_id="k"),
    )
    assert [(where, contents(store.last(HERE, 0, where))) for where, _ in FILTERS] == FILTERS


def test_any_number_of_messages_is_found_by_id(store, add):
    ids = ids_of(add(*(Message("user", str(number)) for number in range(3))))
    requested_ids = [ids[2], ids[0], ids[0], 77, *range(1_000, 40_000)]
    assert contents(store.by_id(requested_ids, HERE)) == ["0", "2"]
    assert store.by_id([], HERE) == []


SCOPES = [
    (Scope("p", "i"), {"p/i"}),
    (Scope("p", "j"), {"p/j"}),
    (Scope("p"), {"p/i", "p/j"}),
    (Scope("q", "i"), {"q/i"}),
    (Scope("i", "p"), set()),
    (Scope("pi"), set()),
    (Scope("P"), set()),
    (Scope(None), {"p/i", "p/j", "q/i"}),
]


@pytest.mark.parametrize(("scope", "expected"), SCOPES, ids=[str(row[0]) for row in SCOPES])
def test_no_read_leaves_its_scope(store, add, scope, expected):
    stored = []
    for partition, instance in (("p", "i"), ("p", "j"), ("q", "i")):
        stored += add(
            Message("assistant", "word", trace_id="t", tool_calls=(ToolCall("c", "f", ""),)),
            Message("tool", "word", trace_id="u", tool_call_id="c"),
            partition=partition,
            instance=instance,
        )
    ids = [message.id for message in stored if message is not None]
    store.activate_model("m", "model")
    embed(store, stored[:1], passage(stored[0], 1, 0))
    scope_by_id = {
        message.id: f"{message.partition}/{message.instance}"
        for message in stored
        if message is not None
    }
    expected_count = sum(name in expected for name in scope_by_id.values())

    assert {scope_by_id[message.id] for message in store.last(scope, 0)} == expected
    assert {scope_by_id[message.id] for message in store.by_id(ids, scope)} == expected
    assert {scope_by_id[message.id] for message in store.with_partners(ids, scope)} == expected
    assert {scope_by_id[message.id] for message in store.with_partners(ids[:1], scope)} <= expected
    assert {
        scope_by_id[message_id] for message_id, _ in store.keyword("word", scope, 99)[0]
    } == expected
    assert {scope_by_id[message.id] for message in store.unembedded(99, scope)} == expected
    assert store.count_unembedded(scope) == expected_count - ("p/i" in expected)
    candidates = store.candidates(scope, "i", "word", np.array([1, 0], np.float32))
    assert {scope_by_id[message_id] for message_id in candidates.ids.tolist()} == expected
    assert np.isfinite(candidates.cosine).sum() == ("p/i" in expected)


def test_scopes_are_listed_by_size(store, add):
    add(Message("user", "1"))
    add(Message("user", "2"), Message("user", "3"), partition="q", instance="j")
    assert store.channels() == [("q", "j", 2), ("p", "i", 1)]


def test_the_newest_instance_is_the_one_with_the_newest_message(store, add):
    assert store.newest_instance("p") is None
    add(Message("user", "1", created_at=NOW))
    add(Message("user", "2", created_at=NOW - HOUR), instance="j")
    add(Message("user", "3", created_at=NOW + HOUR), partition="q", instance="k")
    assert store.newest_instance("p") == "i"


# What belongs together


def test_the_partners_of_a_message_are_those_of_its_trace(store, add):
    stored = add(
        Message("user", "q1", trace_id="1"),
        Message("user", "q2", trace_id="2"),
        Message("assistant", "r1", trace_id="1"),
    )
    assert contents(store.with_partners(ids_of(stored[:1]), HERE)) == ["q1", "r1"]
    assert contents(store.with_partners(ids_of(stored[2:]), HERE)) == ["q1", "r1"]


def _tool_use(conversation: str, minute: int) -> list[Message]:
    created_at = NOW + timedelta(minutes=minute)
    return [
        Message("user", f"{conversation} question", created_at, conversation_id=conversation),
        Message(
            "assistant",
            f"{conversation} call",
            created_at,
            tool_calls=(ToolCall("call_1", "f", ""), ToolCall("call_2", "f", "")),
            conversation_id=conversation,
        ),
        *(
            Message(
                "tool",
                f"{conversation} result {number}",
                created_at + timedelta(seconds=number),
                tool_call_id=f"call_{number}",
                conversation_id=conversation,
            )
            for number in (1, 2)
        ),
    ]


@pytest.mark.parametrize("name", ["call", "result 1", "result 2"])
def test_a_call_and_its_results_find_each_other(store, add, name):
    stored = add(*_tool_use("a", 0))
    start = [message for message in stored if message and message.content == f"a {name}"]
    assert contents(store.with_partners(ids_of(start), HERE)) == [
        "a call",
        "a result 1",
        "a result 2",
    ]


@pytest.mark.parametrize("content", ["a call", "a result 1", "b call", "b result 2"])
@pytest.mark.parametrize("minutes", [0, 10], ids=["at the same time", "one after the other"])
def test_the_same_call_id_in_two_conversations_is_not_mixed_up(store, add, content, minutes):
    stored = add(*_tool_use("a", 0), *_tool_use("b", minutes))
    start = [message for message in stored if message and message.content == content]
    conversation = content[0]
    assert contents(store.with_partners(ids_of(start), HERE)) == [
        f"{conversation} call",
        f"{conversation} result 1",
        f"{conversation} result 2",
    ]


def test_a_repeated_call_id_refers_to_the_nearest_call(store, add):
    stored = []
    for minute in (0, 10):
        created_at = NOW + timedelta(minutes=minute)
        stored += add(
            Message(
                "assistant", f"call {minute}", created_at, tool_calls=(ToolCall("call_0", "f", ""),)
            ),
            Message(
                "tool", f"result {minute}", created_at + timedelta(seconds=1), tool_call_id="call_0"
            ),
        )
    for first in (0, 2):
        minute = 5 * first
        for start in (stored[first], stored[first + 1]):
            assert contents(store.with_partners(ids_of([start]), HERE)) == [
                f"call {minute}",
                f"result {minute}",
            ]


# Vectors


def test_a_message_is_pending_until_it_has_its_vectors(store, add):
    one, two, three = add(
        Message("user", "one", created_at=NOW),
        Message("user", "two", created_at=NOW - HOUR),
        Message("user", "three", created_at=NOW + HOUR),
    )
    assert contents(store.unembedded(9, HERE)) == ["one", "two", "three"]
    assert contents(store.unembedded(2, HERE, newest=True)) == ["three", "two"]
    assert store.count_unembedded(HERE) == 3
    embed(store, [one, two], passage(one, 1, 0))  # two has no text to embed
    assert contents(store.unembedded(9, HERE)) == ["three"]
    embed(store, [three], passage(three, 0, 1))
    assert store.count_unembedded(EVERYWHERE) == 0


def test_the_active_model_is_the_last_one_activated(store):
    assert store.active_model() is None
    store.activate_model("id-1", "one")
    store.activate_model("id-2", "two")
    assert store.active_model() == ("id-2", "two")


def test_a_message_forgotten_while_it_was_embedded_gets_no_vector(store, add):
    gone, kept = add(Message("user", "gone"), Message("user", "kept"))
    assert contents(store.unembedded(9, HERE)) == ["gone", "kept"]
    delete(store, gone)
    store.activate_model("m", "model")
    embed(store, [gone, kept], passage(gone, 1, 0), passage(kept, 0, 1))
    assert [key.id for key in store.passages([gone.key, kept.key])] == [kept.id]  # type: ignore[union-attr]
    assert store.holdings()["embedded"] == 1
    assert store.count_unembedded(EVERYWHERE) == 0


def test_candidates_carry_time_tokens_and_scores_in_order_of_time(store, add):
    late, early, words = add(
        Message("user", "late", created_at=NOW),
        Message("user", "early", created_at=NOW - HOUR),
        Message("user", "redis redis", created_at=NOW - 2 * HOUR),
    )
    [other] = add(Message("user", "other", created_at=NOW + HOUR), instance="j")
    store.activate_model("m", "model")
    best = passage(late, 0.6, 0.8)._replace(number=1)
    passages = [passage(late, 0, -1), best, passage(early, 0, 1), passage(other, 1, 0)]
    embed(store, [late, early, other], *passages)

    candidates = store.candidates(Scope("p"), "i", "why did we drop Redis?", _vector(1, 0))
    stored = [words, early, late, other]
    assert candidates.ids.tolist() == ids_of(stored)
    assert candidates.created_at.tolist() == [
        int(message.created_at.timestamp() * 1000) for message in stored if message
    ]
    assert candidates.tokens.tolist() == [message.tokens for message in stored if message]
    assert candidates.own.tolist() == [True, True, True, False]
    np.testing.assert_allclose(candidates.cosine, [np.nan, 0, 0.6, 1], atol=0.01)
    [posting] = candidates.postings
    assert (posting.positions.tolist(), posting.counts.tolist()) == ([0], [2])
    assert candidates.terms.tolist() == [2, 1, 1, 1]
    assert not candidates.asks.any()


def test_candidates_without_a_vector_or_words_are_without_scores(store, add):
    assert len(store.candidates(HERE, None, "", None).ids) == 0
    add(Message("user", "hello"))
    candidates = store.candidates(HERE, None, "?!", None)
    assert np.isnan(candidates.cosine).all()
    assert candidates.postings == ()
    assert not candidates.own.any()


def test_titles_of_conversations_are_updated_and_not_lost(store):
    store.add_conversations(HERE, [Conversation("c", "old title", "tool", project="p", branch="b")])
    store.add_conversations(HERE, [Conversation("c", "new title", None, "gpt-4")])
    store.add_conversations(HERE, [Conversation("c")])
    rows = behind(store.location, "SELECT * FROM conversations")
    assert rows == [("p", "i", "c", "new title", "tool", "gpt-4", "p", "b")]


def _vector(*values: float) -> "np.ndarray":
    return np.array(values, np.float32)
