"""Tool calls and their results, from selection to the request body."""

from dataclasses import replace
from datetime import timedelta
from itertools import accumulate

import pytest
from builders import NOW
from validators import problems
from windows import CALLING, PROVIDERS, REPLY, RESULT, SEARCH, USER, candidate, stored, window

from reservoir_cli.context.candidate import Selection
from reservoir_cli.context.choose import SelectionOptions, select
from reservoir_cli.context.window_builder import Costs
from reservoir_cli.messages import Role, StoredMessage


def _select(messages: list[StoredMessage]) -> Selection:
    pool = [
        candidate(message)._replace(age=len(messages) - 1 - index)
        for index, message in enumerate(messages)
    ]
    free = Costs(lambda _: 1, lambda _: 1, 1, 1)
    return select(
        pool, query="?!", budget=1_000, costs=free, options=SelectionOptions(), not_reached=0
    )


def _minutes_apart(*messages: StoredMessage) -> list[StoredMessage]:
    """Return messages a minute apart; those after a question belong to its exchange."""
    traces = accumulate(
        (message.trace_id for message in messages),
        lambda previous, trace: trace if trace in question_traces else previous,
    )
    question_traces = {message.trace_id for message in messages if message.role is Role.USER}
    return [
        replace(message, id=number, created_at=NOW + timedelta(minutes=number), trace_id=trace)
        for number, (message, trace) in enumerate(zip(messages, traces, strict=True), 1)
    ]


def test_conversations_that_use_the_same_id_at_the_same_time_keep_their_results():
    messages = _minutes_apart(
        USER,
        replace(CALLING, content="of c", conversation_id="c"),
        replace(CALLING, content="of d", conversation_id="d"),
        replace(RESULT, content="for d", conversation_id="d"),
        replace(RESULT, content="for c", conversation_id="c"),
    )
    history = [candidate.message.content for candidate in _select(messages).history]
    assert history == [USER.content, "of c", "for c", "of d", "for d"]


def test_a_repeated_call_id_keeps_its_results_in_order():
    repeated = [
        replace(message, content=f"{message.content} again") for message in (CALLING, RESULT)
    ]
    messages = _minutes_apart(USER, CALLING, RESULT, *repeated, REPLY)
    history = [candidate.message.content for candidate in _select(messages).history]
    assert history == [message.content for message in messages]


def test_a_call_and_a_result_without_ids_belong_together():
    call = replace(CALLING, content="I look", tool_calls=(replace(SEARCH, id=""),))
    messages = _minutes_apart(USER, call, replace(RESULT, tool_call_id=None), REPLY)
    selection = _select(messages)
    assert [candidate.message.role.value for candidate in selection.history] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert selection.history[1].message.tool_calls
    assert selection.recalled == ()


def test_a_user_message_between_call_and_result_moves_after_the_result():
    messages = _minutes_apart(USER, CALLING, stored(3, "user", "hurry"), RESULT, REPLY)
    history = [candidate.message.content for candidate in _select(messages).history]
    assert history == [USER.content, "", RESULT.content, "hurry", REPLY.content]
    context = replace(window(), selection=_select(messages))
    for form in PROVIDERS:
        assert problems(form, context.to(form)) == []


@pytest.mark.parametrize("role", ["user", "tool"])
def test_only_assistant_messages_keep_tool_calls(role):
    """No provider accepts tool calls of users or results, even if an import stored some."""
    odd = stored(2, role, "look", tool_calls=(SEARCH,), tool_call_id="call_0")
    first = replace(CALLING, tool_calls=(replace(SEARCH, id="call_0"),))
    messages = _minutes_apart(USER, first, odd, RESULT, REPLY)
    context = replace(window(), selection=_select(messages))
    for form in PROVIDERS:
        assert problems(form, context.to(form)) == []
