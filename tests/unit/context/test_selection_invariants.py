"""Invariants of every selection."""

from dataclasses import replace

import hypothesis
import pytest
from candidates import (
    NO_NEWEST,
    O,
    R,
    S,
    Y,
    chosen,
    kept,
    numbers,
    pool,
    reasons,
    said,
)
from hypothesis import strategies as st

from reservoir_cli.context.exchanges import Exchanges
from reservoir_cli.context.layout import Costs, Packing, is_system
from reservoir_cli.context.message_groups import MessageGroup, group_tool_calls, join_answers
from reservoir_cli.context.selection import Rules, select
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


def turn(number, kind, tier, instance, tokens, others, priority, tied):
    """Draw the messages of one turn of a conversation."""
    more = {"tier": tier, "instance": instance, "trace": f"t{number}" if tied else ""}
    lead = {**more, "tokens": tokens, "priority": priority}
    rest = {**more, "tokens": others, "priority": 1 - priority}
    results = [said("tool", answers="a", **rest), said("tool", answers="b", **lead)]
    match kind:
        case "exchange":
            return [said("user", **lead), said("assistant", **rest)]
        case "same":
            return [said("user", "same", **lead), said("assistant", "same", **rest)]
        case "calls":
            call = said("assistant", calls=("a", "b"), **lead)
            return [said("user", **rest), call, *results, said("assistant", **lead)]
        case "late":
            call = said("assistant", calls=("b", "a"), **lead)
            return [call, said("user", **rest), *results]
        case "orphan":
            return [said("tool", answers="z", **lead)]
        case "open":
            return [said("assistant", calls=("c",), **lead)]
    return [said(kind, **lead)]


@st.composite
def pools(draw):
    """Draw conversations in one or two instances, whose newest part has the tier ``recent``."""
    turns = [turn(number, *each) for number, each in enumerate(draw(TURNS))]
    recent = draw(st.integers(2, 8))
    return [
        replace(each, tier=R) if each.age is not None and each.age < recent else each
        for each in pool(*(each for some in turns for each in some))
    ]


FULL = Costs(lambda each: each.message.tokens, lambda each: each.message.tokens + 4, 3, 5)
ORDERS = st.sampled_from(["score", "tiers"])


def printed_cost(found, costs):
    days = {each.message.created_at.date() for each in found.recalled}
    return (
        sum(map(costs.recalled, found.recalled))
        + sum(map(costs.history, found.history))
        + costs.day * len(days)
        + costs.recalled_title * bool(found.recalled)
    )


@hypothesis.given(pools(), st.integers(0, 400), ORDERS, st.integers(0, 4))
@hypothesis.settings(max_examples=300)
def test_the_budget_is_never_exceeded(candidates, budget, order, newest):
    found = chosen(candidates, budget, Rules(order, newest), costs=FULL)
    assert printed_cost(found, FULL) <= budget


@hypothesis.given(pools(), st.integers(0, 400), ORDERS)
@hypothesis.settings(max_examples=300)
def test_every_body_is_valid_whatever_was_dropped(candidates, budget, order):
    found = chosen(candidates, budget, Rules(order), costs=FULL)
    assert not found.history or found.history[0].message.role is Role.USER
    for section in (found.recalled, found.history):
        waiting = []
        for each in section:
            if each.message.role is Role.TOOL:
                assert each.message.tool_call_id in waiting
                waiting.remove(each.message.tool_call_id)
            if section is found.history and each.message.role is not Role.TOOL:
                assert waiting == []
            waiting += [call.id for call in each.message.tool_calls]
        assert waiting == []


@hypothesis.given(pools(), st.integers(0, 400), ORDERS)
@hypothesis.settings(max_examples=300)
def test_each_candidate_is_kept_or_dropped_once_and_never_both(candidates, budget, order):
    found = chosen(candidates, budget, Rules(order), costs=FULL)
    told = [*kept(found), *numbers(each.candidate for each in found.dropped)]
    expected = numbers(each for each in candidates if each.message.role is not Role.SYSTEM)
    assert sorted(told) == expected


@hypothesis.given(pools(), st.integers(0, 400), ORDERS)
@hypothesis.settings(max_examples=100)
def test_the_same_input_gives_the_same_output(candidates, budget, order):
    assert chosen(candidates, budget, Rules(order)) == chosen(candidates, budget, Rules(order))


def largest_unit(candidates):
    """Return an upper bound of the cost of a unit: a trace, or a call with its possible results."""
    sizes = {}
    for each in candidates:
        keys = [each.message.trace_id, *(call.id for call in each.message.tool_calls)]
        for key in (*keys, each.message.tool_call_id):
            sizes[key] = sizes.get(key, 0) + FULL.history(each)
    calls = sum(sizes.get(each, 0) for each in "abc")
    return max(calls, *sizes.values()) + FULL.recalled_title + FULL.day


@hypothesis.given(pools(), st.integers(0, 300), st.integers(0, 200), st.integers(0, 3))
@hypothesis.settings(max_examples=300)
def test_in_tier_order_a_smaller_budget_keeps_a_subset(candidates, room, more, newest):
    budget = largest_unit(candidates) + room
    rules = Rules("tiers", newest)
    small = chosen(candidates, budget, rules, costs=FULL)
    large = chosen(candidates, budget + more, rules, costs=FULL)
    same = {each.candidate.message.id for each in large.dropped if each.reason == "duplicate"}
    assert set(kept(small)) <= set(kept(large)) | same


@hypothesis.given(pools(), st.integers(0, 400), st.integers(0, 3))
@hypothesis.settings(max_examples=300)
def test_by_tiers_dropped_units_come_after_printed_ones(candidates, budget, newest):
    """Units without room come after every printed unit in the order."""
    found = chosen(candidates, budget, Rules("tiers", newest), costs=FULL)
    printed = {each.message.id for each in (*found.recalled, *found.history)}
    units, _ = group_tool_calls([each for each in candidates if not is_system(each)])
    exchanges = list(join_answers(units, Exchanges.of([each.message for each in candidates])))
    no_room = {number for number, reason in reasons(found).items() if reason == "no room"}
    left, kept_keys = [], []
    for exchange in exchanges:
        inside = [unit for unit in exchange if unit.members[0].message.id in printed]
        whole = len(inside) == len(exchange)
        if inside:
            joined = MessageGroup(tuple(each for unit in exchange for each in unit.members))
            kept_keys += [
                (joined.by_tier() if whole else unit.by_tier(), unit.members[0].message.id)
                for unit in inside
            ]
        left += [
            unit.by_tier()
            for unit in exchange
            if unit not in inside and unit.members[0].message.id in no_room
        ]
    first = min(left, default=None)
    # Messages kept by the rule for the newest precede all tiers; the others are in order.
    held = {number for number, why in found.reasons.items() if why == "newest"}
    by_order = [key for key, number in kept_keys if number not in held]
    if first is not None:
        assert all(key <= first for key in by_order)


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
def test_units_reported_as_too_large_would_not_fit_alone(rows, budget, counted) -> None:
    """Only recalled messages, which have no age."""

    def printed(recalled, history, _limit):
        return sum(each.message.tokens for each in (*recalled, *history))

    candidates = [
        replace(each, age=None)
        for each in pool(
            *(
                said(role, text, tokens=tokens, trace=f"t{trace}", tier=O, priority=priority)
                for role, tokens, trace, priority, text in rows
            )
        )
    ]
    sums = Costs(
        lambda each: each.message.tokens + 3,
        lambda each: each.message.tokens + 3,
        2,
        5,
        printed if counted else None,
        left_out=lambda _: 4,
        trials=1,
    )

    def selected():
        more = {"query": "", "budget": budget, "costs": sums, "rules": NO_NEWEST}
        return select(candidates, **more, not_reached=0)

    quick = selected()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Packing, "_is_hopeless", lambda *_: False)
        assert selected() == quick
