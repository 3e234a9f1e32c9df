"""Trimming, rule by rule, for lists in the formats of OpenAI, Anthropic and Ollama."""

import copy
from collections import UserList
from typing import Any

import pytest
from bodies import Characters
from each import each

from reservoir_cli import UsageError, trim_history
from reservoir_cli.chat.message_cost import message_cost
from reservoir_cli.chat.trim import find_turn_start
from reservoir_cli.tokens import ApproximateCounter

ChatMessage = dict[str, Any]


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


@each(
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
    assert trim(LIST[:5], 5, FIT - 1) == [SYSTEM, *OLD[2:]]
    assert trim(LIST[:5], 5, cost(OLD[2])) == [SYSTEM, OLD[2]]  # the steps go before their question
    assert trim(LIST[:5], 5, 1) == [SYSTEM]


# §7.3: the oldest exchange goes first


def test_one_token_over_drops_exactly_the_oldest_exchange():
    assert trim(LIST, 5, FIT - 1) == [SYSTEM, *OLD[2:], *TURN]


@pytest.mark.parametrize("kept", [0, 2, 4])
def test_the_oldest_are_dropped_one_by_one_until_the_rest_fits(kept):
    newest = OLD[len(OLD) - kept :]
    exact = sum(map(cost, newest))
    assert trim(LIST, 5, max(1, exact)) == [SYSTEM, *newest, *TURN]
    if 0 < kept < len(OLD):
        two = OLD[-kept - 2 : len(OLD) - kept]
        assert trim(LIST, 5, exact + sum(map(cost, two)) - 1) == [SYSTEM, *newest, *TURN]


def test_a_huge_newest_old_message_drops_all_other_old_ones():
    old = [*OLD, user("x" * 10_000)]
    assert trim([SYSTEM, *old, *TURN], 6, 5_000) == [SYSTEM, *TURN]


def test_a_small_reply_goes_with_its_huge_question():
    old = [user("x" * 10_000), says("ok")]
    assert trim([SYSTEM, *old, *TURN], 3, 20) == [SYSTEM, *TURN]


# §7.2: head and turn


@each("head", [SYSTEM, user("hello"), says("hello"), openai_result("nobody")])
def test_the_first_message_stays_whatever_its_role(head):
    assert trim([head, *OLD, *TURN], 5, 1) == [head, *TURN]


def test_head_and_turn_are_not_counted():
    huge = "x" * 100_000
    messages = [user(huge), *OLD, user(huge), openai_call("c"), openai_result("c")]
    assert trim(messages, 5, FIT) is messages
    assert trim(messages, 5, FIT - 1) == [messages[0], *OLD[2:], *messages[5:]]


@pytest.mark.parametrize(("call", "result"), SHAPES)
def test_the_turn_is_never_cut_and_keeps_its_question_and_its_calls(call, result):
    turn = [result("from the old part"), user("go on"), result("nobody"), call("open")]
    messages = [SYSTEM, *OLD, call("from the old part"), *turn]
    assert trim(messages, 6, 1) == [SYSTEM, OLD[2], *messages[5:]]


# §7.4: calls and results


@pytest.mark.parametrize(("call", "result"), SHAPES)
def test_within_the_first_and_the_current_exchange_steps_are_dropped(call, result):
    steps = [call("a"), result("a"), call("b", "c"), result("c"), result("b"), says("done")]
    for messages, start in (
        ([user("begin"), *steps, *TURN], 7),
        ([SYSTEM, user("begin"), *steps, call("d"), result("d")], 8),
    ):
        head, rest = messages[: start - 6], messages[start:]
        for first, end in ((2, 6), (5, 6), (6, 6)):
            old = steps[first:end]
            budget = sum(map(cost, [*old, *head[1:]]))
            assert trim(messages, start, max(1, budget)) == [*head, *old, *rest]
            smaller = trim(messages, start, max(1, budget - 1))
            assert len(smaller) <= len(head) + len(old) + len(rest)


@pytest.mark.parametrize(("call", "result"), SHAPES)
def test_a_result_in_another_exchange_goes_with_its_call(call, result):
    old = [user("look"), call("a"), user("wait"), result("a"), says("done"), *OLD]
    assert trim([SYSTEM, *old, *TURN], 10, sum(map(cost, old)) - 1) == [SYSTEM, *OLD, *TURN]


@pytest.mark.parametrize(("call", "result"), SHAPES)
@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(lambda call, result: [result("a")], id="a result without its call"),
        pytest.param(lambda call, result: [call("a")], id="a call without its result"),
        pytest.param(lambda call, result: [result("a"), call("a")], id="the wrong order"),
        pytest.param(lambda call, result: [call("b"), result("a"), result("b")], id="one of two"),
    ],
)
def test_a_list_that_is_cut_begins_behind_what_providers_refuse(call, result, odd):
    old = [user("x" * 200), *OLD[:2], user("and?"), *odd(call, result), *OLD[2:]]
    messages = [SYSTEM, *old, *TURN]
    kept = trim(messages, len(old) + 1, sum(map(cost, old)) - 1)
    assert kept == [SYSTEM, *OLD[2:], *TURN]


@pytest.mark.parametrize(("call", "result"), SHAPES)
def test_without_a_cut_orphans_stay(call, result):
    messages = [SYSTEM, result("nobody"), says("x"), *TURN]
    assert trim(messages, 3, 10_000) is messages


@pytest.mark.parametrize(("call", "result"), SHAPES)
def test_a_call_at_the_head_keeps_its_result(call, result):
    messages = [call("h"), result("h"), says("x" * 200), *TURN]
    assert trim(messages, 3, 100) == [call("h"), result("h"), *TURN]


@pytest.mark.parametrize(("call", "result"), SHAPES)
def test_a_call_that_the_turn_repeats_keeps_its_result(call, result):
    old = [user("x" * 200), says("y" * 200), user("look"), call("a"), result("a"), says("done")]
    turn = [*TURN, call("a"), says("as before")]
    assert trim([SYSTEM, *old, *turn], 7, 1) == [SYSTEM, *old[2:], *turn]
    kept = [user("x"), call("b"), call("a"), user("wait"), result("b")]  # b is answered in the turn
    assert trim([SYSTEM, *old, *kept], 10, 1) == [SYSTEM, *old[2:], *kept]


@pytest.mark.parametrize("call_id", [None, ""])
def test_a_tool_message_without_an_id_answers_the_call_before_it(call_id):
    result = {"role": "tool", "content": "done", "tool_name": "f"}
    if call_id is not None:
        result["tool_call_id"] = call_id
    old = [user("x" * 200), says("y"), user("look"), openai_call("a"), result, says("done")]
    kept = trim([SYSTEM, *old, *TURN], 7, sum(map(cost, old)) - 1)
    assert kept == [SYSTEM, *old[2:], *TURN]


OLLAMA_CALL: ChatMessage = {"role": "assistant", "content": "", "tool_calls": [{"function": {}}]}
OLLAMA_RESULT: ChatMessage = {"role": "tool", "tool_name": "f", "content": "done"}
REASONING: ChatMessage = {"type": "reasoning", "id": "rs", "summary": []}
CALL: ChatMessage = {"type": "function_call", "call_id": "c", "arguments": "{}"}
OUTPUT: ChatMessage = {"type": "function_call_output", "call_id": "c", "output": "done"}


@each(
    "step",
    [
        pytest.param([OLLAMA_CALL, OLLAMA_RESULT, OLLAMA_RESULT], id="results without ids"),
        pytest.param([OLLAMA_CALL, SYSTEM, OLLAMA_RESULT], id="instructions between them"),
        pytest.param([OLLAMA_CALL, user("wait"), OLLAMA_RESULT], id="a question between them"),
        pytest.param([REASONING, CALL, OUTPUT], id="reasoning"),
        pytest.param([REASONING, SYSTEM, says("I look"), CALL, OUTPUT], id="reasoning and words"),
    ],
)
def test_a_step_stays_whole_wherever_the_turn_begins_or_the_list_does(step):
    later = [user("x" * 100), says("y"), user("and?")]
    for start in range(1, len(step)):
        messages = [SYSTEM, *OLD[:1], *step, says("it is done")]
        assert trim(messages, 2 + start, 1) == messages
        assert trim([*step, *later], len(step) + 2, 1) == [*step, later[-1]]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_stay_wherever_they_stand(role):
    rule = {"role": role, "content": "Never name the client."}
    messages = [{**SYSTEM, "role": role}, rule, *OLD[:3], rule, OLD[3], *TURN]
    assert trim(messages, 7, 1) == [messages[0], rule, rule, *TURN]


def test_the_first_message_after_the_system_is_the_users():
    messages = [SYSTEM, says("Hello!"), *OLD, *TURN]
    assert trim(messages, 6, FIT + cost(messages[1]) - 1) == [SYSTEM, *OLD, *TURN]


# Responses


def item(kind: str, **more: Any) -> ChatMessage:
    return {"type": kind, **more}


@pytest.mark.parametrize("kind", ["function_call", "custom_tool_call", "computer_call"])
def test_items_of_responses_are_trimmed_by_pairs(kind):
    def call(call_id: str) -> ChatMessage:
        return item(kind, call_id=call_id, arguments="x" * 100)

    def output(call_id: str) -> ChatMessage:
        return item(f"{kind}_output", call_id=call_id, output="done")

    reasoning = item("reasoning", id="rs", summary=[], encrypted_content="x")
    first = [reasoning, call("a"), call("b"), output("b"), output("a")]
    second = [reasoning, says("I look again"), call("c"), output("c")]
    last = [item("message", role="assistant", content=[{"type": "output_text", "text": "done"}])]
    question = item("message", role="user", content=[{"type": "input_text", "text": "look"}])
    messages = [question, *first, *second, *last, user("and?")]
    start = len(messages) - 1
    assert find_turn_start(messages) == start
    steps = [*first, *second, *last]
    for kept in (steps, steps[5:], last, []):
        budget = sum(map(cost, kept)) if kept else 1
        assert trim(messages, start, budget) == [question, *kept, messages[-1]]
        if len(kept) > 1:
            assert trim(messages, start, budget - 1) != [question, *kept, messages[-1]]


@each(
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
        pytest.param({"type": "function_call", "call_id": {}}, id="call id: object"),
        pytest.param({"type": ["x_call"], "role": None}, id="type: list"),
        pytest.param({"role": "assistant", "content": "\ud800"}, id="half a character"),
        pytest.param({}, id="empty"),
    ],
)
def test_odd_messages_are_counted_and_not_changed(odd):
    messages = [SYSTEM, user("x y " * 2_000), says("z"), user("and?"), odd, *TURN]
    for counter in (Characters(), ApproximateCounter()):
        kept = trim_history(messages, turn_start=5, iteration=2, budget=400, counter=counter)
        assert kept == [SYSTEM, user("and?"), odd, *TURN]


def test_empty_messages_have_a_cost():
    empty = says("")
    messages = [user(""), *(empty for _ in range(10)), *TURN]
    assert trim(messages, 11, 40) is messages
    assert trim(messages, 11, 39) == [user(""), *(empty for _ in range(9)), *TURN]


def test_there_is_no_safety_factor():
    counter = ApproximateCounter()
    exact = sum(message_cost(message, counter) for message in OLD)
    assert trim_history(LIST, turn_start=5, iteration=2, budget=exact) is LIST
    kept = trim_history(LIST, turn_start=5, iteration=2, budget=exact - 1)
    assert kept == [SYSTEM, *OLD[2:], *TURN]


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


@each(
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
            0,
        ),
        ([user("a"), {"type": "function_call_output", "call_id": "c", "output": "b"}], 0),
        ([user("a"), {"type": "message", "role": "user", "content": "b"}], 1),
    ],
)
def test_a_turn_starts_with_the_last_question(messages, start):
    assert find_turn_start(messages) == start


def test_the_turn_begins_at_the_last_question_unless_told_otherwise():
    assert trim_history(LIST, iteration=2, budget=1) == [SYSTEM, *TURN]


@each("turn_start", [2.5, "2", 2.0, float("nan")])
def test_a_turn_start_must_be_an_integer(turn_start):
    with pytest.raises(UsageError, match="turn_start must be an integer"):
        trim_history(LIST, turn_start=turn_start, iteration=2, budget=1)


@each("name", ["iteration", "budget", "multiplier", "attachment_tokens"])
def test_no_number_is_nan(name):
    numbers = {"iteration": 2, "budget": 1, name: float("nan")}
    with pytest.raises(UsageError, match=f"{name} must be a number, not NaN"):
        trim_history(LIST, **numbers)


def test_any_sequence_and_any_number_is_accepted():
    messages = [{"role": "user", "content": "x" * 50} for _ in range(9)]
    expected = trim_history(messages, turn_start=8, iteration=2, budget=50)
    assert len(expected) < len(messages)
    assert trim_history(UserList(messages), turn_start=8, iteration=2, budget=50.0) == expected
