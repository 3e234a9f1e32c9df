"""Messages that are kept or dropped together: calls and results, questions and replies."""

import pytest
from candidates import TIERS, O, S, Y, chosen, exchange, kept, pool, reasons, said

from reservoir_cli.context.selection import Rules
from reservoir_cli.messages import Role


def test_a_call_and_its_results_are_kept_or_dropped_together():
    call = [
        said("assistant", calls=("a", "b"), priority=0.6),
        said("tool", answers="a", priority=0.1),
        said("tool", answers="b", priority=0.1),
    ]
    some = pool(said(priority=0.5), *call)
    assert kept(chosen(some, 30)) == [2, 3, 4]
    assert kept(chosen(some, 29)) == [1]


@pytest.mark.parametrize("member", [1, 2, 3], ids=["the call", "a result", "the other result"])
def test_a_units_priority_is_that_of_its_best_member(member):
    high = {member: 0.9}
    some = pool(
        said("assistant", calls=("a", "b"), priority=high.get(1, 0.1)),
        said("tool", answers="a", priority=high.get(2, 0.1)),
        said("tool", answers="b", priority=high.get(3, 0.1)),
        said(priority=0.5),
    )
    assert kept(chosen(some, 30)) == [1, 2, 3]


def test_a_units_tier_is_that_of_its_best_member():
    some = pool(
        said("assistant", calls=("a",), tier=O),
        said("tool", answers="a", tier=S),
        said(tier=Y, priority=0.9, instance="j"),
    )
    assert kept(chosen(some, 20, TIERS)) == [1, 2]


def test_a_question_and_its_reply_are_kept_together_while_both_fit():
    some = pool(*exchange(0.9, 0.1), said(priority=0.5))
    assert kept(chosen(some, 20)) == [1, 2]


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        pytest.param(0.9, 0.1, 1, id="§4 the question"),
        pytest.param(0.1, 0.9, 2, id="§4 the reply"),
    ],
)
def test_if_only_question_or_reply_fits_the_higher_score_is_kept(first, second, left):
    found = chosen(pool(*exchange(first, second)), 19, Rules("score", 0))
    assert kept(found) == [left]
    assert reasons(found) == {3 - left: "no room"}


@pytest.mark.parametrize(("first", "second"), [(0.9, 0.1), (0.1, 0.9)])
def test_if_only_question_or_reply_fits_by_tiers_the_newer_is_kept(first, second):
    found = chosen(pool(*exchange(first, second)), 19, TIERS)
    assert kept(found) == [2]
    assert reasons(found) == {1: "no room"}


def test_a_reply_of_another_trace_is_its_own_unit():
    some = pool(said("user", trace="t", priority=0.9), said("assistant", trace="u", priority=0.1))
    assert kept(chosen([*some], 10)) == [1]
    assert kept(chosen(pool(*exchange(0.9, 0.1), said(priority=0.5)), 30)) == [1, 2, 3]


def test_a_reply_with_calls_and_the_next_reply_are_separate_units():
    some = pool(
        said("user", trace="t", priority=0.9),
        said("assistant", trace="t", calls=("a",), priority=0.1),
        said("tool", trace="t", answers="a", priority=0.1),
        said("assistant", trace="t", priority=0.1),
        said(priority=0.5),
    )
    assert kept(chosen(some, 30)) == [1, 4, 5]


@pytest.mark.parametrize(
    ("candidates", "left", "out"),
    [
        pytest.param(
            [said("assistant", calls=("a",))], [], {1: "unanswered call"}, id="§4 no result"
        ),
        pytest.param(
            [said("assistant", "look", calls=("a",))], [1], {}, id="§4 no result, but a text"
        ),
        pytest.param(
            [said("assistant", calls=("a", "b")), said("tool", answers="b")],
            [1, 2],
            {},
            id="§4 the other call stays",
        ),
        pytest.param([said("tool", answers="a")], [], {1: "orphan result"}, id="§4 no call"),
        pytest.param([said("tool")], [], {1: "orphan result"}, id="§4 a result of nothing"),
        pytest.param(
            [
                said("assistant", calls=("a",)),
                said("tool", answers="a"),
                said("tool", answers="a"),
            ],
            [1, 2],
            {3: "orphan result"},
            id="§4 a second result",
        ),
        pytest.param(
            [said("tool", answers="a"), said("assistant", "look", calls=("a",))],
            [2],
            {1: "orphan result"},
            id="§4 a result before its call",
        ),
        pytest.param(
            [said("assistant", "x", calls=("a",)), said("tool", answers="a", instance="j")],
            [1],
            {2: "orphan result"},
            id="§4 a call of another instance",
        ),
        pytest.param(
            [
                said("assistant", "x", calls=("a",), conversation="c"),
                said("tool", answers="a", conversation="d"),
            ],
            [1],
            {2: "orphan result"},
            id="§4 a call of another conversation",
        ),
    ],
)
def test_calls_without_results_and_results_without_calls_are_dropped(candidates, left, out):
    found = chosen(pool(*candidates), 100)
    assert kept(found) == left
    assert reasons(found) == out


def test_a_call_without_a_result_is_removed_from_its_message():
    some = pool(
        said("assistant", "looking", calls=("a", "b", "c")),
        said("tool", answers="c"),
        said("tool", answers="a"),
    )
    found = chosen(some, 100)
    (message,) = [each.message for each in found.recalled if each.message.role is Role.ASSISTANT]
    assert [call.id for call in message.tool_calls] == ["a", "c"]
    assert message.content == "looking"


def test_a_call_id_used_again_is_another_call():
    some = pool(
        said("assistant", calls=("a",)),
        said("tool", answers="a"),
        said("assistant", calls=("a",)),
        said("tool", answers="a"),
    )
    found = chosen(some, 100)
    assert kept(found) == [1, 2, 3, 4]
    assert found.dropped == ()
