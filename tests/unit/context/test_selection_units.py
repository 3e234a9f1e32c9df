"""Messages that are kept or dropped together: calls and results, questions and replies."""

import pytest
from candidates import (
    TIERS,
    O,
    S,
    Y,
    drop_reasons,
    exchange,
    kept_ids,
    make_candidate,
    pool,
    select_from,
)
from each import each

from reservoir_cli.context.choose import SelectionOptions
from reservoir_cli.messages import Role


def test_a_call_and_its_results_are_kept_or_dropped_together():
    call = [
        make_candidate("assistant", calls=("a", "b"), priority=0.6),
        make_candidate("tool", answers="a", priority=0.1),
        make_candidate("tool", answers="b", priority=0.1),
    ]
    candidates = pool(make_candidate(priority=0.5), *call)
    assert kept_ids(select_from(candidates, 30)) == [2, 3, 4]
    assert kept_ids(select_from(candidates, 29)) == [1]


@pytest.mark.parametrize("member", [1, 2, 3], ids=["the call", "a result", "the other result"])
def test_a_units_priority_is_that_of_its_best_member(member):
    priorities = {member: 0.9}
    candidates = pool(
        make_candidate("assistant", calls=("a", "b"), priority=priorities.get(1, 0.1)),
        make_candidate("tool", answers="a", priority=priorities.get(2, 0.1)),
        make_candidate("tool", answers="b", priority=priorities.get(3, 0.1)),
        make_candidate(priority=0.5),
    )
    assert kept_ids(select_from(candidates, 30)) == [1, 2, 3]


def test_a_units_tier_is_that_of_its_best_member():
    candidates = pool(
        make_candidate("assistant", calls=("a",), tier=O),
        make_candidate("tool", answers="a", tier=S),
        make_candidate(tier=Y, priority=0.9, instance="j"),
    )
    assert kept_ids(select_from(candidates, 20, TIERS)) == [1, 2]


def test_a_question_and_its_reply_are_kept_together_while_both_fit():
    candidates = pool(*exchange(0.9, 0.1), make_candidate(priority=0.5))
    assert kept_ids(select_from(candidates, 20)) == [1, 2]


@pytest.mark.parametrize(
    ("first", "second", "kept_id"),
    [pytest.param(0.9, 0.1, 1, id="§4 the question"), pytest.param(0.1, 0.9, 2, id="§4 the reply")],
)
def test_if_only_question_or_reply_fits_the_higher_score_is_kept(first, second, kept_id):
    selection = select_from(pool(*exchange(first, second)), 19, SelectionOptions("score", 0))
    assert kept_ids(selection) == [kept_id]
    assert drop_reasons(selection) == {3 - kept_id: "no room"}


@pytest.mark.parametrize(("first", "second"), [(0.9, 0.1), (0.1, 0.9)])
def test_if_only_question_or_reply_fits_by_tiers_the_newer_is_kept(first, second):
    selection = select_from(pool(*exchange(first, second)), 19, TIERS)
    assert kept_ids(selection) == [2]
    assert drop_reasons(selection) == {1: "no room"}


def test_a_reply_of_another_trace_is_its_own_unit():
    candidates = pool(
        make_candidate("user", trace="t", priority=0.9),
        make_candidate("assistant", trace="u", priority=0.1),
    )
    assert kept_ids(select_from([*candidates], 10)) == [1]
    assert kept_ids(select_from(pool(*exchange(0.9, 0.1), make_candidate(priority=0.5)), 30)) == [
        1,
        2,
        3,
    ]


def test_a_reply_with_calls_and_the_next_reply_are_separate_units():
    candidates = pool(
        make_candidate("user", trace="t", priority=0.9),
        make_candidate("assistant", trace="t", calls=("a",), priority=0.1),
        make_candidate("tool", trace="t", answers="a", priority=0.1),
        make_candidate("assistant", trace="t", priority=0.1),
        make_candidate(priority=0.5),
    )
    assert kept_ids(select_from(candidates, 30)) == [1, 4, 5]


@each(
    ("candidates", "expected", "dropped"),
    [
        pytest.param(
            [make_candidate("assistant", calls=("a",))],
            [],
            {1: "unanswered call"},
            id="§4 no result",
        ),
        pytest.param(
            [make_candidate("assistant", "look", calls=("a",))],
            [1],
            {},
            id="§4 no result, but a text",
        ),
        pytest.param(
            [make_candidate("assistant", calls=("a", "b")), make_candidate("tool", answers="b")],
            [1, 2],
            {},
            id="§4 the other call stays",
        ),
        pytest.param(
            [make_candidate("tool", answers="a")], [], {1: "orphan result"}, id="§4 no call"
        ),
        pytest.param(
            [make_candidate("tool")], [], {1: "orphan result"}, id="§4 a result of nothing"
        ),
        pytest.param(
            [
                make_candidate("assistant", calls=("a",)),
                make_candidate("tool", answers="a"),
                make_candidate("tool", answers="a"),
            ],
            [1, 2],
            {3: "orphan result"},
            id="§4 a second result",
        ),
        pytest.param(
            [
                make_candidate("tool", answers="a"),
                make_candidate("assistant", "look", calls=("a",)),
            ],
            [2],
            {1: "orphan result"},
            id="§4 a result before its call",
        ),
        pytest.param(
            [
                make_candidate("assistant", "x", calls=("a",)),
                make_candidate("tool", answers="a", instance="j"),
            ],
            [1],
            {2: "orphan result"},
            id="§4 a call of another instance",
        ),
        pytest.param(
            [
                make_candidate("assistant", "x", calls=("a",), conversation="c"),
                make_candidate("tool", answers="a", conversation="d"),
            ],
            [1],
            {2: "orphan result"},
            id="§4 a call of another conversation",
        ),
    ],
)
def test_calls_without_results_and_results_without_calls_are_dropped(candidates, expected, dropped):
    selection = select_from(pool(*candidates), 100)
    assert kept_ids(selection) == expected
    assert drop_reasons(selection) == dropped


def test_a_call_without_a_result_is_removed_from_its_message():
    candidates = pool(
        make_candidate("assistant", "looking", calls=("a", "b", "c")),
        make_candidate("tool", answers="c"),
        make_candidate("tool", answers="a"),
    )
    selection = select_from(candidates, 100)
    (message,) = [
        candidate.message
        for candidate in selection.recalled
        if candidate.message.role is Role.ASSISTANT
    ]
    assert [call.id for call in message.tool_calls] == ["a", "c"]
    assert message.content == "looking"


def test_a_call_id_used_again_is_another_call():
    candidates = pool(
        make_candidate("assistant", calls=("a",)),
        make_candidate("tool", answers="a"),
        make_candidate("assistant", calls=("a",)),
        make_candidate("tool", answers="a"),
    )
    selection = select_from(candidates, 100)
    assert kept_ids(selection) == [1, 2, 3, 4]
    assert selection.dropped == ()
