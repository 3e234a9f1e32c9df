"""Layout: where a kept message is printed, and what is counted once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from each import each

from reservoir_cli.context.candidate import Candidate, Scores, Tier
from reservoir_cli.context.choose import SelectionOptions, select
from reservoir_cli.context.layout import by_time
from reservoir_cli.context.window_builder import Costs
from reservoir_cli.messages import Role, StoredMessage, ToolCall

START = datetime(2026, 5, 9, 12, tzinfo=UTC)
FREE = Costs(lambda _: 1, lambda _: 1, 0, 0)


def make_candidates(*turns, now=START):
    """Return recent messages of one instance from ``("user", "text", {fields})``, by time.

    Messages after a question belong to its exchange.
    """
    candidates = []
    trace = "t0"
    for number, (role, content, *fields) in enumerate(turns, 1):
        extra = fields[0] if fields else {}
        trace = f"t{number}" if role == "user" else trace
        message = StoredMessage(
            id=number,
            trace_id=extra.get("trace", trace),
            conversation_id=None,
            partition="p",
            instance=extra.get("instance", "i"),
            role=Role(role),
            content=content,
            name=None,
            tool_calls=tuple(ToolCall(call_id, "look", "{}") for call_id in extra.get("calls", ())),
            tool_call_id=extra.get("answers"),
            created_at=now + timedelta(minutes=number),
            source="test",
            source_id=str(number),
            tokens=extra.get("tokens", 1),
        )
        scores = Scores(0.0, 0.0, 0.0, 0.0, extra.get("priority", 0.5), True)
        age = None if extra.get("instance") else len(turns) - number
        candidates.append(Candidate(message, Tier.RECENT, False, scores, age))
    ages = sorted(candidate.age for candidate in candidates if candidate.age is not None)
    return [
        candidate if candidate.age is None else candidate._replace(age=ages.index(candidate.age))
        for candidate in candidates
    ]


def lay_out(candidates, *, budget=1_000, costs=FREE, query="", include_system=False):
    selection = select(
        candidates,
        query=query,
        budget=budget,
        costs=costs,
        options=SelectionOptions(min_history_messages=0, include_system=include_system),
        not_reached=0,
    )
    return [
        [candidate.message.id for candidate in part]
        for part in (selection.recalled, selection.history)
    ]


BY_TOKENS = Costs(
    lambda candidate: candidate.message.tokens, lambda candidate: candidate.message.tokens, 0, 0
)


@each(
    ("turns", "recalled", "history"),
    [
        pytest.param([("user", "a"), ("assistant", "b")], [], [1, 2], id="§4 an unbroken run"),
        pytest.param(
            [("assistant", "a"), ("user", "b")], [1], [2], id="§4 never begins with a reply"
        ),
        pytest.param(
            [("assistant", "a"), ("assistant", "b")], [1, 2], [], id="§4 nothing but replies"
        ),
        pytest.param(
            [
                ("assistant", "", {"calls": ["c"]}),
                ("tool", "r", {"answers": "c"}),
                ("assistant", "d"),
                ("user", "b"),
            ],
            [1, 2, 3],
            [4],
            id="§4 a leading call moves to recalled with its results",
        ),
        pytest.param(
            [
                ("user", "a"),
                ("assistant", "", {"calls": ["c"]}),
                ("tool", "r", {"answers": "c"}),
                ("assistant", "d"),
            ],
            [],
            [1, 2, 3, 4],
            id="§4 a call inside the run stays",
        ),
        pytest.param(
            [("user", "a"), ("user", "b", {"instance": "j"}), ("user", "c")],
            [2],
            [1, 3],
            id="§4 another instance neither joins nor ends the run",
        ),
        pytest.param(
            [("user", "a"), ("tool", "r", {"answers": "x"}), ("user", "c")],
            [],
            [1, 3],
            id="§4 an orphan does not end it",
        ),
        pytest.param(
            [("user", "a"), ("assistant", "", {"calls": ["x"]}), ("user", "c")],
            [],
            [1, 3],
            id="§4 an unanswered call does not end it",
        ),
        pytest.param(
            [("user", "a"), ("system", "be brief"), ("user", "c")],
            [],
            [1, 3],
            id="§4 a system message does not end it",
        ),
        pytest.param(
            [("user", "a"), ("user", " the question "), ("user", "c")],
            [],
            [1, 3],
            id="§4 the question itself does not end it",
        ),
        pytest.param(
            [("user", "a"), ("user", "b", {"tokens": 9_999}), ("user", "c")],
            [],
            [1, 3],
            id="§4 a too large one does not end it",
        ),
    ],
)
def test_history_is_the_unbroken_run_of_newest_messages(turns, recalled, history):
    assert lay_out(make_candidates(*turns), query="the question", costs=BY_TOKENS) == [
        recalled,
        history,
    ]


def test_a_message_that_is_not_printed_for_lack_of_room_ends_the_run():
    turns = [
        ("user", "old", {"priority": 0.9}),
        ("user", "long", {"priority": 0.1, "tokens": 8}),
        ("user", "new", {"priority": 0.9}),
    ]
    assert lay_out(make_candidates(*turns), budget=9, costs=BY_TOKENS) == [[1], [3]]


def test_the_run_grows_when_the_gap_in_it_is_filled_later():
    turns = [("user", "old"), ("user", "gap", {"priority": 0.1}), ("user", "new")]
    assert lay_out(make_candidates(*turns)) == [[], [1, 2, 3]]


def test_an_allowed_system_message_is_recalled_and_never_history():
    turns = [("user", "a"), ("system", "be brief"), ("user", "c")]
    assert lay_out(make_candidates(*turns), include_system=True) == [[2], [1, 3]]


def test_parallel_results_follow_their_call():
    turns = [
        ("user", "a"),
        ("assistant", "", {"calls": ["x", "y"]}),
        ("user", "meanwhile"),
        ("tool", "2", {"answers": "y"}),
        ("tool", "1", {"answers": "x"}),
    ]
    assert lay_out(make_candidates(*turns)) == [[], [1, 2, 5, 4, 3]]


# What counts once


def with_history(*turns):
    """Return recalled messages of another instance, and a history of one message."""
    elsewhere = [(*turn, {"instance": "j"}) for turn in turns]
    return make_candidates(*elsewhere, ("user", "now"))


@pytest.mark.parametrize(
    ("turns", "recalled"),
    [
        pytest.param([("user", "a"), ("user", "a")], 1, id="§4 equal to each other"),
        pytest.param([("user", "a"), ("user", " a\n")], 1, id="§4 trimmed"),
        pytest.param([("user", "a"), ("assistant", "a")], 2, id="§4 another role"),
        pytest.param([("user", "a"), ("user", "A")], 2, id="§4 another case"),
        pytest.param([("user", "now")], 0, id="§4 equal to history"),
        pytest.param([("assistant", "now")], 1, id="§4 equal to history in another role"),
    ],
)
def test_equal_recalled_messages_count_once(turns, recalled):
    recalled_ids, history = lay_out(with_history(*turns))
    assert len(recalled_ids) == recalled
    assert len(history) == 1


def test_history_is_never_deduplicated():
    assert lay_out(make_candidates(("user", "yes"), ("assistant", "yes"), ("user", "yes"))) == [
        [],
        [1, 2, 3],
    ]


def test_copies_of_a_recalled_message_cost_nothing():
    copies = [("user", "same words")] * 5 + [("user", "other words")]
    turns = [(*turn, {"instance": "j", "priority": 0.9}) for turn in copies[:5]]
    turns += [("user", "other words", {"instance": "j", "priority": 0.1})]
    recalled_ids, _ = lay_out(make_candidates(*turns), budget=2, costs=BY_TOKENS)
    assert len(recalled_ids) == 2
    assert 6 in recalled_ids


def test_recalled_messages_are_oldest_first():
    candidates = make_candidates(*[("user", f"{number}", {"instance": "j"}) for number in range(5)])
    shuffled = [candidate._replace() for candidate in candidates]
    recalled, _ = lay_out(shuffled)
    assert recalled == [candidate.message.id for candidate in sorted(candidates, key=by_time)]


# The cost of titles and days


def test_a_title_is_counted_once_and_a_line_for_each_day():
    costs = Costs(recalled=lambda _: 1, history=lambda _: 1, day=10, recalled_title=100)
    same_day = make_candidates(*[("user", f"{number}", {"instance": "j"}) for number in range(3)])
    several_days = [
        candidate._replace(
            message=replace(candidate.message, created_at=START + timedelta(days=day))
        )
        for day, candidate in enumerate(same_day)
    ]
    assert len(lay_out(same_day, costs=costs, budget=113)[0]) == 3
    assert len(lay_out(same_day, costs=costs, budget=112)[0]) == 2
    assert len(lay_out(several_days, costs=costs, budget=133)[0]) == 3
    assert len(lay_out(several_days, costs=costs, budget=132)[0]) == 2


def test_a_message_that_joins_history_later_is_counted_as_a_turn_only():
    costs = Costs(recalled=lambda _: 1, history=lambda _: 5, day=0, recalled_title=0)
    turns = [("user", "old"), ("user", "gap", {"priority": 0.1}), ("user", "new")]
    assert lay_out(make_candidates(*turns), costs=costs, budget=15) == [[], [1, 2, 3]]
    assert lay_out(make_candidates(*turns), costs=costs, budget=14) == [[1], [3]]


def test_a_title_that_is_not_printed_is_not_counted():
    """A question above its reply: the reply is first recalled, then both become history."""
    costs = Costs(recalled=lambda _: 10, history=lambda _: 10, day=10, recalled_title=10)
    turns = [("user", "question", {"priority": 0.1}), ("assistant", "reply", {"priority": 0.9})]
    assert lay_out(make_candidates(*turns), costs=costs, budget=30) == [[], [1, 2]]
