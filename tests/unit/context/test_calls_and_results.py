"""Tool calls and their results, from selection to the request body; long results are cut."""

import json
from dataclasses import replace
from datetime import timedelta
from itertools import accumulate

import pytest
from builders import NOW
from validators import problems
from windows import CALLING, PROVIDERS, REPLY, RESULT, SEARCH, USER, candidate, stored, window

from reservoir_cli import Message, Reservoir
from reservoir_cli.context.candidate import Selection
from reservoir_cli.context.excerpts import shorten_result
from reservoir_cli.context.layout import Costs
from reservoir_cli.context.request import FORMATS
from reservoir_cli.context.selection import Rules, select
from reservoir_cli.messages import Role, StoredMessage
from reservoir_cli.tokens import ApproximateCounter


def _select(messages: list[StoredMessage]) -> Selection:
    pool = [
        replace(candidate(message), age=len(messages) - 1 - index)
        for index, message in enumerate(messages)
    ]
    free = Costs(lambda _: 1, lambda _: 1, 1, 1)
    return select(pool, query="?!", budget=1_000, costs=free, rules=Rules(), not_reached=0)


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


# §1: long tool results are cut


COUNTER = ApproximateCounter()


def _result_of(text: str, message_id: int = 77) -> StoredMessage:
    return stored(message_id % 25, "tool", text, id=message_id, tool_call_id="c")


LINES = "\n".join(f"line {n}: the quick brown fox" for n in range(2_000))


@pytest.mark.parametrize("limit", [50, 200, 1_999, 10_000])
def test_a_cut_result_ends_at_a_line_end_and_names_the_message_and_what_is_missing(limit):
    original = _result_of(LINES)
    shortened = shorten_result(original, limit, COUNTER)
    head, _, marker = shortened.content.rpartition("\n")
    assert LINES.startswith(head + "\n")
    assert "77" in marker
    assert "reservoir view -p p --id 77" in marker
    assert f"{original.tokens:,}" in marker
    assert shortened.tokens == COUNTER.count(shortened.content) <= limit
    assert shortened.tokens > limit - 60
    assert replace(shortened, content=original.content, tokens=original.tokens) == original


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(LINES, id="short lines"),
        pytest.param("first line\n" + "word " * 20_000, id="one short line and a long one"),
        pytest.param("word " * 20_000, id="no line end"),
    ],
)
def test_the_marker_of_a_cut_gives_the_exact_missing_length(text):
    original = _result_of(text)
    shortened = shorten_result(original, 2_000, COUNTER)
    head, _, marker = shortened.content.rpartition("\n")
    missing = int(marker.split("[… ")[1].split(" ")[0].replace(",", ""))
    assert missing == pytest.approx(original.tokens - COUNTER.count(head), abs=60)


def test_a_text_without_a_line_end_is_cut_inside_the_line():
    shortened = shorten_result(_result_of("word " * 20_000), 500, COUNTER)
    head, _, _ = shortened.content.rpartition("\n")
    assert ("word " * 20_000).startswith(head)
    assert 300 < COUNTER.count(head) < 500


@pytest.mark.parametrize(("limit", "is_cut"), [(0, False), (2_000, True), (100_000, False)])
@pytest.mark.parametrize("form", FORMATS)
def test_results_over_the_setting_are_cut_and_0_is_off(tmp_path, form, limit, is_cut):
    settings = {"embedding_model": "nobody/absent-model", "max_tool_result_tokens": limit}
    with Reservoir.open(tmp_path / "store.db", settings=settings, offline=True) as reservoir:
        messages = [
            Message("user", "read it"),
            Message("assistant", "", tool_calls=(SEARCH,)),
            Message("tool", LINES, tool_call_id="call_1"),
            Message("user", LINES),
        ]
        rows = reservoir.ingest(messages, partition="p", instance="i", embed=False)
        context = reservoir.context(
            "and?", partition="p", instance="i", model="gpt-4o", format=form
        )
        assert reservoir.view(reservoir.scope("p", "i"), 0) == rows
    printed = json.dumps(context.to(), ensure_ascii=False)
    assert (f"reservoir view -p p --id {rows[2].id}]" in printed) is is_cut
    assert context.truncated is is_cut
    # Messages of the user are never cut.
    assert printed.count("line 1999: ") == (1 if is_cut else 2)
    cut_sizes = [candidate.message.tokens for candidate in context.kept if candidate.cut]
    assert all(1.1 * tokens <= limit for tokens in cut_sizes)
