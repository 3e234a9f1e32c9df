"""Invariants of every selection."""

import hypothesis
import pytest
from candidates import (
    NO_NEWEST,
    O,
    R,
    S,
    Y,
    drop_reasons,
    kept_ids,
    make_candidate,
    pool,
    select_from,
    sorted_ids,
)
from hypothesis import strategies as st

from reservoir_cli.context.choose import SelectionOptions, select
from reservoir_cli.context.layout import Exchanges, is_system
from reservoir_cli.context.message_groups import MessageGroup, group_tool_calls, join_answers
from reservoir_cli.context.window_builder import Costs, WindowBuilder
from reservoir_cli.messages import Role

TURNS = st.lists(
    st.tuples(
        st.sampled_from(
            ("exchange", "same", "calls", "late", "orphan", "open", "user", "assistant", "system")
        ),
        st.sampled_from((S, Y, O)),
        st.sampled_from("iiij"),
        st.integers(1, 40),
        st.integers(1, 40),
        st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0)),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


def turn(number, kind, tier, instance, tokens, others, priority, one_trace):
    """Draw the messages of one turn of a conversation."""
    common = {"tier": tier, "instance": instance, "trace": f"t{number}" if one_trace else ""}
    main = {**common, "tokens": tokens, "priority": priority}
    rest = {**common, "tokens": others, "priority": 1 - priority}
    results = [
        make_candidate("tool", answers="a", **rest),
        make_candidate("tool", answers="b", **main),
    ]
    match kind:
        case "exchange":
            return [make_candidate("user", **main), make_candidate("assistant", **rest)]
        case "same":
            return [
                make_candidate("user", "same", **main),
                make_candidate("assistant", "same", **rest),
            ]
        case "calls":
            call = make_candidate("assistant", calls=("a", "b"), **main)
            return [
                make_candidate("user", **rest),
                call,
                *results,
                make_candidate("assistant", **main),
            ]
        case "late":
            call = make_candidate("assistant", calls=("b", "a"), **main)
            return [call, make_candidate("user", **rest), *results]
        case "orphan":
            return [make_candidate("tool", answers="z", **main)]
        case "open":
            return [make_candidate("assistant", calls=("c",), **main)]
    return [make_candidate(kind, **main)]


@st.composite
def pools(draw):
    """Draw conversations in one or two instances, whose newest part has the tier ``recent``."""
    turns = [turn(number, *fields) for number, fields in enumerate(draw(TURNS))]
    recent = draw(st.integers(2, 8))
    return [
        candidate._replace(tier=R)
        if candidate.age is not None and candidate.age < recent
        else candidate
        for candidate in pool(*(candidate for members in turns for candidate in members))
    ]


FULL = Costs(
    lambda candidate: candidate.message.tokens, lambda candidate: candidate.message.tokens + 4, 3, 5
)
NEWEST = st.integers(0, 4)


def printed_cost(selection, costs):
    days = {candidate.message.created_at.date() for candidate in selection.recalled}
    return (
        sum(map(costs.recalled, selection.recalled))
        + sum(map(costs.history, selection.history))
        + costs.day * len(days)
        + costs.recalled_title * bool(selection.recalled)
    )


def the_budget_is_never_exceeded(selection, candidates, budget):
    assert printed_cost(selection, FULL) <= budget


def every_body_is_valid_whatever_was_dropped(selection, candidates, budget):
    assert not selection.history or selection.history[0].message.role is Role.USER
    for section in (selection.recalled, selection.history):
        open_calls = []
        for candidate in section:
            if candidate.message.role is Role.TOOL:
                assert candidate.message.tool_call_id in open_calls
                open_calls.remove(candidate.message.tool_call_id)
            if section is selection.history and candidate.message.role is not Role.TOOL:
                assert open_calls == []
            open_calls += [call.id for call in candidate.message.tool_calls]
        assert open_calls == []


def each_candidate_is_kept_or_dropped_once_and_never_both(selection, candidates, budget):
    reported = [
        *kept_ids(selection),
        *sorted_ids(candidate.candidate for candidate in selection.dropped),
    ]
    expected = sorted_ids(
        candidate for candidate in candidates if candidate.message.role is not Role.SYSTEM
    )
    assert sorted(reported) == expected


def by_tiers_dropped_units_come_after_printed_ones(selection, candidates, budget):
    """Units without room come after every printed unit in the order."""
    printed = {candidate.message.id for candidate in (*selection.recalled, *selection.history)}
    units, _ = group_tool_calls([candidate for candidate in candidates if not is_system(candidate)])
    exchanges = list(
        join_answers(units, Exchanges.of([candidate.message for candidate in candidates]))
    )
    no_room = {number for number, reason in drop_reasons(selection).items() if reason == "no room"}
    dropped_keys, kept_keys = [], []
    for exchange in exchanges:
        inside = [unit for unit in exchange if unit.members[0].message.id in printed]
        complete = len(inside) == len(exchange)
        if inside:
            group = MessageGroup(tuple(member for unit in exchange for member in unit.members))
            kept_keys += [
                (group.by_tier() if complete else unit.by_tier(), unit.members[0].message.id)
                for unit in inside
            ]
        dropped_keys += [
            unit.by_tier()
            for unit in exchange
            if unit not in inside and unit.members[0].message.id in no_room
        ]
    first = min(dropped_keys, default=None)
    # Messages kept by the rule for the newest precede all tiers; the others are in order.
    newest_ids = {number for number, reason in selection.reasons.items() if reason == "newest"}
    ordered_keys = [key for key, number in kept_keys if number not in newest_ids]
    if first is not None:
        assert all(key <= first for key in ordered_keys)


CLAIMS = (
    the_budget_is_never_exceeded,
    every_body_is_valid_whatever_was_dropped,
    each_candidate_is_kept_or_dropped_once_and_never_both,
)


@hypothesis.given(pools(), st.integers(0, 400), st.sampled_from(["score", "tiers"]), NEWEST)
@hypothesis.settings(max_examples=400)
def test_a_selection_keeps_every_claim(candidates, budget, order, newest):
    options = SelectionOptions(order, newest)
    selection = select_from(candidates, budget, options, costs=FULL)
    assert select_from(candidates, budget, options, costs=FULL) == selection
    for claim in CLAIMS:
        claim(selection, candidates, budget)
    if order == "tiers":
        by_tiers_dropped_units_come_after_printed_ones(selection, candidates, budget)


def largest_unit(candidates):
    """Return an upper bound of the cost of a unit: a trace, or a call with its possible results."""
    sizes = {}
    for candidate in candidates:
        keys = [candidate.message.trace_id, *(call.id for call in candidate.message.tool_calls)]
        for key in (*keys, candidate.message.tool_call_id):
            sizes[key] = sizes.get(key, 0) + FULL.history(candidate)
    calls = sum(sizes.get(call_id, 0) for call_id in "abc")
    return max(calls, *sizes.values()) + FULL.recalled_title + FULL.day


@hypothesis.given(pools(), st.integers(0, 300), st.integers(0, 200), st.integers(0, 3))
@hypothesis.settings(max_examples=300)
def test_in_tier_order_a_smaller_budget_keeps_a_subset(candidates, room, extra, newest):
    budget = largest_unit(candidates) + room
    options = SelectionOptions("tiers", newest)
    small = select_from(candidates, budget, options, costs=FULL)
    large = select_from(candidates, budget + extra, options, costs=FULL)
    duplicates = {
        dropped.candidate.message.id for dropped in large.dropped if dropped.reason == "duplicate"
    }
    assert set(kept_ids(small)) <= set(kept_ids(large)) | duplicates


@hypothesis.given(
    st.lists(
        st.tuples(
            st.sampled_from(("user", "assistant")),
            st.integers(1, 60),
            st.integers(0, 4),
            st.floats(0, 1),
            st.sampled_from(("", "same")),
        ),
        max_size=30,
    ),
    st.integers(0, 400),
    st.booleans(),
)
def test_skipping_hopeless_messages_changes_no_selection(rows, budget, counted):
    """Only recalled messages, which have no age."""

    def printed(recalled, history, _limit):
        return sum(candidate.message.tokens for candidate in (*recalled, *history))

    candidates = [
        candidate._replace(age=None)
        for candidate in pool(
            *(
                make_candidate(
                    role, text, tokens=tokens, trace=f"t{trace}", tier=O, priority=priority
                )
                for role, tokens, trace, priority, text in rows
            )
        )
    ]
    costs = Costs(
        lambda candidate: candidate.message.tokens + 3,
        lambda candidate: candidate.message.tokens + 3,
        2,
        5,
        printed if counted else None,
        left_out=lambda _: 4,
        trials=1,
    )

    def select_again():
        arguments = {"query": "", "budget": budget, "costs": costs, "options": NO_NEWEST}
        return select(candidates, **arguments, not_reached=0)

    selection = select_again()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WindowBuilder, "is_hopeless", lambda *_: False)
        assert select_again() == selection
