"""Trimming, rule by rule, for lists in OpenAI's and Anthropic's formats."""

import copy
import json
from collections import UserList
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reservoir_cli import trim_history
from reservoir_cli.chat.trim import find_turn_start, message_cost
from reservoir_cli.tokens import ApproximateCounter, RatioCounter

ChatMessage = dict[str, Any]


class Characters:
    """Count characters, so that tests know the cost of a message: its length plus 4."""

    name, version, exact = "characters", "1", True

    def count(self, text: str) -> int:
        return len(text)


def trim(messages: list[ChatMessage], turn_start: int, budget: int, iteration: int = 2):
    return trim_history(
        messages, turn_start=turn_start, iteration=iteration, budget=budget, counter=Characters()
    )


def cost(message: ChatMessage) -> int:
    return message_cost(message, Characters())


def user(text: str) -> ChatMessage:
    return {"role": "user", "content": text}


def says(text: str) -> ChatMessage:
    return {"role": "assistant", "content": text}


# The two formats of a call and its result.


def openai_call(*ids: str) -> ChatMessage:
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": call_id, "type": "function", "function": function} for call_id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def openai_result(call_id: str) -> ChatMessage:
    return {"role": "tool", "tool_call_id": call_id, "content": "done"}


def anthropic_call(*ids: str) -> ChatMessage:
    uses = [{"type": "tool_use", "id": call_id, "name": "f", "input": {}} for call_id in ids]
    return {"role": "assistant", "content": [{"type": "text", "text": "I look"}, *uses]}


def anthropic_result(call_id: str) -> ChatMessage:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": "done"}
    return {"role": "user", "content": [block]}


SHAPES = [
    pytest.param(openai_call, openai_result, id="openai"),
    pytest.param(anthropic_call, anthropic_result, id="anthropic"),
]

SYSTEM = {"role": "system", "content": "You are an agent."}
OLD = [user("read a"), says("a is read"), user("read b"), says("b is read")]
TURN = [user("now read c"), openai_call("c"), openai_result("c")]
LIST = [SYSTEM, *OLD, *TURN]
FIT = sum(map(cost, OLD))


# §7.1 and §7.3: the very same list


@pytest.mark.parametrize(
    ("budget", "iteration", "turn_start"),
    [
        pytest.param(0, 9, 5, id="budget 0 is off"),
        pytest.param(-1, 9, 5, id="a negative budget is off"),
        pytest.param(1, 1, 5, id="the first iteration"),
        pytest.param(1, 0, 5, id="before the first iteration"),
        pytest.param(1, 9, 1, id="nothing between head and turn"),
        pytest.param(1, 9, 0, id="the turn is all there is"),
        pytest.param(1, 9, -3, id="a turn that starts nowhere"),
        pytest.param(FIT, 9, 5, id="an exact fit"),
        pytest.param(FIT + 1, 9, 5, id="room to spare"),
    ],
)
def test_a_list_within_the_budget_is_returned_unchanged(budget, iteration, turn_start):
    before = copy.deepcopy(LIST)
    assert trim(LIST, turn_start, budget, iteration) is LIST
    assert before == LIST


@pytest.mark.parametrize("messages", [[], [SYSTEM]])
def test_a_list_without_old_messages_is_returned_unchanged(messages):
    assert trim(messages, len(messages), 1) is messages


def test_all_messages_of_a_list_may_be_old():
    assert trim(LIST[:5], 5, FIT) is not None
    assert trim(LIST[:5], 5, FIT - 1) == [SYSTEM, *OLD[1:]]
    assert trim(LIST[:5], 5, 1) == [SYSTEM]


# §7.3: the oldest goes first


def test_one_token_over_drops_exactly_the_oldest():
    assert trim(LIST, 5, FIT - 1) == [SYSTEM, *OLD[1:], *TURN]


@pytest.mark.parametrize("kept", range(len(OLD) + 1))
def test_the_oldest_are_dropped_one_by_one_until_the_rest_fits(kept):
    newest = OLD[len(OLD) - kept :]
    exact = sum(map(cost, newest))
    assert trim(LIST, 5, max(1, exact)) == [SYSTEM, *newest, *TURN]
    if 0 < kept < len(OLD):
        assert trim(LIST, 5, exact + cost(OLD[-kept - 1]) - 1) == [SYSTEM, *newest, *TURN]


def test_a_huge_newest_old_message_drops_all_other_old_ones():
    old = [*OLD, user("x" * 10_000)]
    assert trim([SYSTEM, *old, *TURN], 6, 5_000) == [SYSTEM, *TURN]


def test_a_small_message_after_a_huge_one_stays():
    old = [user("x" * 10_000), says("ok")]
    assert trim([SYSTEM, *old, *TURN], 3, 20) == [SYSTEM, says("ok"), *TURN]


# §7.2: head and turn


@pytest.mark.parametrize("head", [SYSTEM, user("hello"), says("hello"), openai_result("nobody")])
def test_the_first_message_stays_whatever_its_role(head):
    assert trim([head, *OLD, *TURN], 5, 1) == [head, *TURN]


def test_head_and_turn_are_not_counted():
    huge = "x" * 100_000
    messages = [user(huge), *OLD, user(huge), openai_call("c"), openai_result("c")]
    assert trim(messages, 5, FIT) is messages
    assert trim(messages, 5, FIT - 1) == [messages[0], *OLD[1:], *messages[5:]]


@pytest.mark.parametrize(("call", "result"), SHAPES)
def test_the_turn_is_never_cut_even_with_orphans_in_it(call, result):
    turn = [result("from the old part"), user("go on"), result("nobody"), call("open")]
    messages = [SYSTEM, *OLD, call("from the old part"), *turn]
    assert trim(messages, 6, 1) == [SYSTEM, *turn]


# §7.4: the legal start


@pytest.mark.parametrize(("call", "result"), SHAPES)
def test_a_cut_between_call_and_result_leaves_no_orphan(call, result):
    old = [call("a"), result("a"), says("done with a")]
    messages = [SYSTEM, *old, *TURN]
    assert trim(messages, 4, sum(map(cost, old[1:]))) == [SYSTEM, says("done with a"), *TURN]


@pytest.mark.parametrize(("call", "result"), SHAPES)
def test_all_results_of_a_parallel_call_are_dropped_with_it(call, result):
    old = [call("a", "b", "c"), result("a"), result("b"), result("c"), says("done")]
    messages = [SYSTEM, *old, *TURN]
    for first in (1, 2, 3):
        assert trim(messages, 6, sum(map(cost, old[first:]))) == [SYSTEM, says("done"), *TURN]


@pytest.mark.parametrize(("call", "result"), SHAPES)
def test_a_call_that_stays_keeps_its_results(call, result):
    old = [user("x" * 200), call("a", "b"), result("b"), result("a"), says("done")]
    assert trim([SYSTEM, *old, *TURN], 6, sum(map(cost, old[1:]))) == [SYSTEM, *old[1:], *TURN]


@pytest.mark.parametrize(("call", "result"), SHAPES)
def test_an_orphan_forgets_the_calls_before_it(call, result):
    # b is declared, then the orphan a moves the start after it, so b's result becomes an orphan.
    old = [user("x" * 200), call("b"), result("a"), result("b"), says("done")]
    kept = trim([SYSTEM, *old, *TURN], 6, sum(map(cost, old[1:])))
    assert kept == [SYSTEM, says("done"), *TURN]


@pytest.mark.parametrize(("call", "result"), SHAPES)
def test_a_result_before_its_call_is_an_orphan(call, result):
    old = [user("x" * 200), result("a"), call("a"), says("done")]
    kept = trim([SYSTEM, *old, *TURN], 5, sum(map(cost, old[1:])))
    assert kept == [SYSTEM, call("a"), says("done"), *TURN]


@pytest.mark.parametrize(("call", "result"), SHAPES)
def test_without_a_cut_orphans_stay(call, result):
    messages = [SYSTEM, result("nobody"), says("x"), *TURN]
    assert trim(messages, 3, 10_000) is messages


@pytest.mark.parametrize(("call", "result"), SHAPES)
def test_the_head_declares_no_calls_for_the_old_part(call, result):
    # Calls of an assistant message in the remaining old part count.
    messages = [call("h"), user("x" * 200), result("h"), says("done"), *TURN]
    assert trim(messages, 4, 100) == [call("h"), says("done"), *TURN]


@pytest.mark.parametrize("call_id", [None, ""])
def test_a_tool_message_without_an_id_stays(call_id):
    result = {"role": "tool", "content": "done"}
    if call_id is not None:
        result["tool_call_id"] = call_id
    messages = [SYSTEM, user("x" * 200), result, says("done"), *TURN]
    assert trim(messages, 4, 100) == [SYSTEM, result, says("done"), *TURN]


def test_a_user_message_that_declares_calls_declares_nothing():
    user_call = {**openai_call("a"), "role": "user"}
    old = [user("x" * 200), user_call, openai_result("a"), says("done")]
    kept = trim([SYSTEM, *old, *TURN], 5, sum(map(cost, old[1:])))
    assert kept == [SYSTEM, says("done"), *TURN]


def test_a_message_with_an_undeclared_result_is_dropped():
    results = {
        "role": "user",
        "content": [*anthropic_result("a")["content"], *anthropic_result("b")["content"]],
    }
    old = [user("x" * 200), anthropic_call("a"), results, says("done")]
    kept = trim([SYSTEM, *old, *TURN], 5, sum(map(cost, old[1:])))
    assert kept == [SYSTEM, says("done"), *TURN]


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"role": "assistant", "content": "x", "tool_calls": 5}, id="calls: number"),
        pytest.param({"role": "assistant", "tool_calls": {"id": "a"}}, id="calls: object"),
        pytest.param({"role": "assistant", "tool_calls": [{"id": ["a"]}]}, id="id: list"),
        pytest.param({"role": "assistant", "tool_calls": [None, "x"]}, id="calls: not objects"),
        pytest.param(
            {"role": "assistant", "content": [{"type": "tool_use", "id": {}}]}, id="use: id object"
        ),
        pytest.param({"role": "tool", "tool_call_id": 7, "content": "x"}, id="id: number"),
        pytest.param({"role": ["user"], "content": {"a": 1}}, id="role: list"),
        pytest.param({"content": [None, 3, {"type": "text", "text": 4}]}, id="parts: odd"),
        pytest.param({"role": "user", "content": "\ud800"}, id="half a character"),
        pytest.param({}, id="empty"),
    ],
)
def test_odd_messages_are_counted_and_not_changed(odd):
    messages = [SYSTEM, user("x y " * 2_000), odd, *TURN]
    for counter in (Characters(), ApproximateCounter()):
        kept = trim_history(messages, turn_start=3, iteration=2, budget=400, counter=counter)
        assert kept == [SYSTEM, odd, *TURN]


# §7.5: what a message costs


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"role": "user", "content": "hello"}, "hello"),
        ({"role": "user", "content": ""}, ""),
        ({"role": "user", "content": None}, ""),
        ({"role": "user", "content": []}, ""),
        ({"role": "user"}, ""),
        ({}, ""),
        ({"role": "user", "content": "hello", "name": "ann"}, "hello\nann"),
        ({"role": "tool", "content": "done", "tool_call_id": "a"}, "done\na"),
        (
            {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "x": "ü"}]},
            '[{"id":"a","x":"ü"}]',
        ),
        (
            {"role": "assistant", "content": "x", "tool_calls": [{"id": "a"}], "name": "n"},
            'x\n[{"id":"a"}]\nn',
        ),
        ({"role": "assistant", "content": "x", "reasoning_content": "why"}, "x\nwhy"),
        (
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            },
            "a\nb",
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:é"}}]},
            '{"type":"image_url","image_url":{"url":"data:é"}}',
        ),
        (
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "a", "content": "b"}],
            },
            '{"type":"tool_result","tool_use_id":"a","content":"b"}',
        ),
        ({"role": "tool", "content": "c", "name": "n", "tool_call_id": "i"}, "c\nn\ni"),
        ({"role": "assistant", "content": "c", "tool_calls": []}, "c"),
    ],
)
@pytest.mark.parametrize("counter", [Characters(), ApproximateCounter(), RatioCounter()])
def test_the_cost_of_a_message_is_its_parts_joined_by_newlines_plus_4(message, text, counter):
    assert message_cost(message, counter) == (counter.count(text) if text else 0) + 4


def test_an_empty_message_costs_4():
    assert message_cost({"role": "assistant", "content": ""}, ApproximateCounter()) == 4
    empty = says("")
    messages = [SYSTEM, *(empty for _ in range(10)), *TURN]
    assert trim(messages, 11, 40) is messages
    assert trim(messages, 11, 39) == [SYSTEM, *(empty for _ in range(9)), *TURN]


def test_there_is_no_safety_factor():
    counter = ApproximateCounter()
    exact = sum(message_cost(message, counter) for message in OLD)
    assert trim_history(LIST, turn_start=5, iteration=2, budget=exact) is LIST
    kept = trim_history(LIST, turn_start=5, iteration=2, budget=exact - 1)
    assert kept == [SYSTEM, *OLD[1:], *TURN]


def test_the_function_takes_a_small_budget_as_given():
    messages = [SYSTEM, *OLD, user("x" * 100), *TURN]
    kept = trim_history(messages, turn_start=6, iteration=2, budget=50, counter=Characters())
    assert kept == [SYSTEM, *TURN]
    assert trim(messages, 6, 500) is messages


def test_the_input_is_never_changed():
    messages = [SYSTEM, *OLD, openai_call("a"), openai_result("a"), *TURN]
    before = copy.deepcopy(messages)
    for budget in range(1, 400, 7):
        kept = trim(messages, 7, budget)
        assert messages == before
        assert all(any(message is original for original in messages) for message in kept)


def test_ten_thousand_messages_are_trimmed():
    old = [
        message
        for n in range(2_500)
        for message in (
            user(f"read {n}"),
            openai_call(f"c{n}"),
            openai_result(f"c{n}"),
            says(f"read {n}"),
        )
    ]
    messages = [SYSTEM, *old, *TURN]
    kept = trim(messages, 10_001, 5_000)
    assert kept[:1] == [SYSTEM]
    assert kept[-3:] == TURN
    middle = kept[1:-3]
    assert 0 < len(middle) < len(old)
    assert middle == old[-len(middle) :]
    assert sum(map(cost, middle)) <= 5_000 < sum(map(cost, old[-len(middle) - 4 :]))


# Where the turn starts


@pytest.mark.parametrize(
    ("messages", "start"),
    [
        ([], 0),
        ([SYSTEM], 0),
        ([says("x")], 0),
        ([user("x")], 0),
        ([SYSTEM, user("x"), says("y")], 1),
        (LIST, 5),
        ([SYSTEM, user("a"), anthropic_call("c"), anthropic_result("c")], 1),
        ([SYSTEM, user("a"), anthropic_call("c"), anthropic_result("c"), says("x")], 1),
        ([SYSTEM, user("a"), {"role": "user", "content": [{"type": "text", "text": "b"}]}], 2),
        (
            [
                user("a"),
                anthropic_call("c"),
                {
                    "role": "user",
                    "content": [
                        *anthropic_result("c")["content"],
                        {"type": "text", "text": "and?"},
                    ],
                },
            ],
            2,
        ),
    ],
)
def test_a_turn_starts_with_the_last_question(messages, start):
    assert find_turn_start(messages) == start


# Invariants

numbers = st.sampled_from("abcd")
words = st.text("xy ", max_size=30)
chat_messages = st.one_of(
    st.builds(user, words),
    st.builds(says, words),
    st.builds(openai_result, numbers),
    st.builds(anthropic_result, numbers),
    st.lists(numbers, max_size=3).map(lambda ids: openai_call(*ids)),
    st.lists(numbers, max_size=3).map(lambda ids: anthropic_call(*ids)),
    st.just({"role": "tool", "content": "nameless"}),
)
cases = given(
    st.lists(chat_messages, max_size=20),
    st.integers(-1, 22),
    st.integers(0, 3),
    st.integers(-5, 900),
)


@cases
def test_the_head_the_newest_old_messages_and_the_turn_are_kept(
    messages, turn_start, iteration, budget
):
    turn_start = min(turn_start, len(messages))
    before = copy.deepcopy(messages)
    kept = trim(messages, turn_start, budget, iteration)
    assert messages == before
    if kept is messages:
        return
    assert budget > 0 < iteration - 1
    assert turn_start > 1
    old, turn = messages[1:turn_start], messages[turn_start:]
    rest = kept[1 : len(kept) - len(turn)]
    assert kept == [messages[0], *rest, *turn]
    assert rest == old[len(old) - len(rest) :]
    assert len(rest) < len(old)
    assert sum(map(cost, rest)) <= budget < sum(map(cost, old))


@cases
def test_every_kept_old_result_follows_its_call(messages, turn_start, iteration, budget):
    turn_start = min(turn_start, len(messages))
    kept = trim(messages, turn_start, budget, iteration)
    if kept is messages:
        return
    declared: set[str] = set()
    for message in kept[1 : len(kept) - (len(messages) - turn_start)]:
        text = json.dumps(message)
        if message["role"] == "assistant":
            declared |= {call_id for call_id in "abcd" if f'"id": "{call_id}"' in text}
        elif "tool_call_id" in text or "tool_result" in text:
            ids = [call_id for call_id in "abcd" if f'_id": "{call_id}"' in text]
            assert len(ids) == 1
            assert ids[0] in declared


@cases
def test_only_messages_that_had_to_be_dropped_are_dropped(messages, turn_start, iteration, budget):
    """A dropped message did not fit, or preceded a result without its call."""
    turn_start = min(turn_start, len(messages))
    kept = trim(messages, turn_start, budget, iteration)
    if kept is messages:
        return
    old = messages[1:turn_start]
    rest = len(kept) - 1 - (len(messages) - turn_start)
    longer = old[len(old) - rest - 1 :]
    last_dropped = longer[0]
    is_result = last_dropped["role"] == "tool" or "tool_result" in json.dumps(last_dropped)
    assert sum(map(cost, longer)) > budget or is_result


def test_any_sequence_and_any_number_is_accepted():
    messages = [{"role": "user", "content": "x" * 50} for _ in range(9)]
    expected = trim_history(messages, turn_start=8, iteration=2, budget=50)
    assert len(expected) < len(messages)
    assert trim_history(UserList(messages), turn_start=8, iteration=2, budget=50.0) == expected
