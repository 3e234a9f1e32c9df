"""Order, units, what is dropped and why. Pure, with costs made by hand."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import hypothesis
import pytest
from hypothesis import strategies as st

from reservoir_cli.context.exchanges import Exchanges
from reservoir_cli.context.layout import Costs, Packing, is_system
from reservoir_cli.context.selection import Rules, Unit, _exchanges, _tool_units, select
from reservoir_cli.context.types import Candidate, Scores, Tier
from reservoir_cli.messages import Role, StoredMessage, ToolCall

START = datetime(2026, 5, 9, 12, tzinfo=UTC)
R, S, Y, O, _ = Tier  # noqa: E741 - recent, similar, synapse, older
BY_TOKENS = Costs(lambda each: each.message.tokens, lambda each: each.message.tokens, 0, 0)
NO_NEWEST = Rules(min_history_messages=0)
TIERS = Rules("tiers", min_history_messages=0)


def said(role="user", content=None, *, tokens=10, tier=R, priority=0.5, **more):
    """A candidate whose number, time and age its place in a pool will give."""
    message = StoredMessage(
        id=0,
        trace_id=more.get("trace", ""),
        conversation_id=more.get("conversation"),
        partition="p",
        instance=more.get("instance", "i"),
        role=Role(role),
        content="" if content is None else content,
        name=None,
        tool_calls=tuple(ToolCall(call, "look", "{}") for call in more.get("calls", ())),
        tool_call_id=more.get("answers"),
        created_at=START,
        source="test",
        source_id="",
        tokens=tokens,
    )
    cosine = more.get("cosine", 0.0)
    scores = Scores(0.0, cosine or 0.0, 0.0, 0.0, priority, cosine is not None)
    return Candidate(message, tier, more.get("filler", False), scores, None)


def pool(*candidates):
    """Candidates as they come out of a store: numbered from 1, a minute apart."""
    placed = []
    for number, each in enumerate(candidates, 1):
        message = replace(
            each.message,
            id=number,
            trace_id=each.message.trace_id or f"t{number}",
            created_at=START + timedelta(minutes=number),
            content=each.message.content or ("" if each.message.tool_calls else f"note {number}"),
        )
        placed.append(replace(each, message=message))
    own = [each.message.id for each in placed if each.message.instance == "i"][::-1]
    return [
        replace(each, age=own.index(each.message.id) if each.message.id in own else None)
        for each in placed
    ]


def chosen(candidates, budget, rules=NO_NEWEST, *, query="", costs=BY_TOKENS):
    return select(candidates, query=query, budget=budget, costs=costs, rules=rules, not_reached=0)


def numbers(candidates):
    return sorted(each.message.id for each in candidates)


def kept(selection):
    return numbers((*selection.recalled, *selection.history))


def reasons(selection):
    return {each.candidate.message.id: each.reason for each in selection.dropped}


# Order


def test_by_score_the_highest_priority_comes_first():
    some = pool(said(priority=0.2), said(priority=0.9), said(priority=0.4))
    assert [kept(chosen(some, room)) for room in (10, 20, 30)] == [[2], [2, 3], [1, 2, 3]]


def test_of_equal_priorities_the_newest_comes_first():
    assert kept(chosen(pool(said(), said(), said()), 20)) == [2, 3]


def test_by_score_standing_instructions_come_sooner():
    candidates = pool(
        said(content="Always name the port.", priority=0.5),
        said(content="what is the port?", priority=0.6),
        said(content="which host?", priority=0.8),
    )
    assert kept(chosen(candidates, 20)) == [1, 3]
    assert kept(chosen(candidates, 20, replace(NO_NEWEST, standing=False))) == [2, 3]
    assert kept(chosen(candidates, 10)) == [3]


def test_by_score_what_does_not_fit_is_skipped_and_the_next_is_tried():
    some = pool(said(priority=0.2), said(priority=0.5, tokens=25), said(priority=0.9))
    found = chosen(some, 30)
    assert kept(found) == [1, 3]
    assert reasons(found) == {2: "no room"}


@pytest.mark.parametrize("order", ["score", "tiers"])
@pytest.mark.parametrize("count", [2, 5])
def test_when_everything_fits_nothing_is_dropped(order, count):
    some = pool(*(said(tier=tier, priority=0.1) for tier in (R, S, Y, O) for _ in range(count)))
    found = chosen(some, 10 * 4 * count, Rules(order))
    assert len(kept(found)) == 4 * count
    assert found.dropped == ()


MIXED = (
    said(tier=O, priority=0.9),  # 1, first out
    said(tier=Y, priority=0.3),  # 2, third out
    said(tier=Y, priority=0.2),  # 3, second out
    said(tier=S, priority=0.7),  # 4, fifth out
    said(tier=S, priority=0.6),  # 5, fourth out
    said(tier=R, priority=0.9),  # 6, sixth out: the oldest recent one, whatever it scores
    said(tier=R, priority=0.1),  # 7
    said(tier=R, priority=0.2),  # 8, last out
)


@pytest.mark.parametrize(
    ("room", "left"),
    [
        pytest.param(80, [1, 2, 3, 4, 5, 6, 7, 8], id="§4 everything fits"),
        pytest.param(79, [2, 3, 4, 5, 6, 7, 8], id="§4 older goes first"),
        pytest.param(69, [2, 4, 5, 6, 7, 8], id="§4 then synapse, the lowest score first"),
        pytest.param(59, [4, 5, 6, 7, 8], id="§4 then the other synapse"),
        pytest.param(49, [4, 6, 7, 8], id="§4 then the lowest-scored similar"),
        pytest.param(39, [6, 7, 8], id="§4 then the other similar"),
        pytest.param(29, [7, 8], id="§4 last the oldest recent"),
        pytest.param(19, [8], id="§4 and the newest last of all"),
    ],
)
def test_by_tiers_the_end_is_dropped_until_the_rest_fits(room, left):
    assert kept(chosen(pool(*MIXED), room, TIERS)) == left


def test_by_tiers_nothing_is_taken_after_the_first_that_does_not_fit():
    some = pool(said(tier=O), said(tier=S, tokens=25), said(tokens=10))
    found = chosen(some, 30, TIERS)
    assert kept(found) == [3]
    assert reasons(found) == {1: "no room", 2: "no room"}


@pytest.mark.parametrize("order", ["score", "tiers"])
def test_a_unit_that_alone_exceeds_the_budget_goes_first(order):
    some = pool(said(), said(tokens=31), said())
    found = chosen(some, 30, Rules(order, 0))
    assert kept(found) == [1, 3]
    assert reasons(found) == {2: "too large"}


@pytest.mark.parametrize("tokens", [25, 26, 30, 31], ids=lambda each: f"§4 {each} tokens")
def test_by_tiers_one_unit_that_can_never_be_printed_does_not_drop_all_the_others(tokens):
    """With a title and a day line to pay, 31 tokens of 30 are not the only too large unit."""
    costs = Costs(
        lambda each: each.message.tokens,
        lambda each: each.message.tokens + 4,
        day=3,
        recalled_title=2,
    )
    some = pool(
        *(said("assistant", tier=R, tokens=2) for _ in range(3)), said("assistant", tokens=tokens)
    )
    found = chosen(some, 30, TIERS, costs=costs)
    assert kept(found)


# The newest


@pytest.mark.parametrize(
    ("count", "tokens", "budget", "left"),
    [
        pytest.param(2, 10, 160, [4, 5], id="§4 two, an eighth exactly"),
        pytest.param(2, 10, 159, [5], id="§4 two, more than an eighth"),
        pytest.param(2, 10, 79, [], id="§4 one is more than an eighth"),
        pytest.param(0, 10, 160, [], id="§4 switched off"),
        pytest.param(3, 10, 240, [3, 4, 5], id="§4 three"),
        pytest.param(3, 10, 239, [4, 5], id="§4 as many as take an eighth"),
    ],
)
def test_the_newest_come_first_while_they_take_at_most_an_eighth(count, tokens, budget, left):
    newest = [said(tokens=tokens, priority=0.0) for _ in range(5)]
    # What scores higher takes all the room that the newest leave.
    rich = [said(tokens=1, priority=1.0, tier=S, instance="j") for _ in range(budget)]
    found = kept(chosen(pool(*newest, *rich), budget, Rules(min_history_messages=count)))
    assert [each for each in found if each <= 5] == left


def test_the_newest_are_those_of_the_instance_that_history_comes_from():
    some = pool(said(priority=0), said(instance="j", priority=0), *[said(instance="j")] * 9)
    assert 1 in kept(chosen(some, 80, Rules(min_history_messages=1)))


# Units


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
def test_a_units_priority_is_its_highest(member):
    high = {member: 0.9}
    some = pool(
        said("assistant", calls=("a", "b"), priority=high.get(1, 0.1)),
        said("tool", answers="a", priority=high.get(2, 0.1)),
        said("tool", answers="b", priority=high.get(3, 0.1)),
        said(priority=0.5),
    )
    assert kept(chosen(some, 30)) == [1, 2, 3]


def test_a_units_tier_is_its_best_members():
    some = pool(
        said("assistant", calls=("a",), tier=O),
        said("tool", answers="a", tier=S),
        said(tier=Y, priority=0.9, instance="j"),
    )
    assert kept(chosen(some, 20, TIERS)) == [1, 2]


def exchange(first=0.1, second=0.1, **more):
    return [
        said("user", trace="t", priority=first, **more),
        said("assistant", trace="t", priority=second, **more),
    ]


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
def test_where_only_one_of_question_and_reply_fits_it_is_the_higher_scored(first, second, left):
    found = chosen(pool(*exchange(first, second)), 19, Rules("score", 0))
    assert kept(found) == [left]
    assert reasons(found) == {3 - left: "no room"}


@pytest.mark.parametrize(("first", "second"), [(0.9, 0.1), (0.1, 0.9)])
def test_by_tiers_it_is_the_newer_one_of_the_recent(first, second):
    found = chosen(pool(*exchange(first, second)), 19, TIERS)
    assert kept(found) == [2]
    assert reasons(found) == {1: "no room"}


def test_a_reply_of_another_trace_stands_by_itself():
    some = pool(said("user", trace="t", priority=0.9), said("assistant", trace="u", priority=0.1))
    assert kept(chosen([*some], 10)) == [1]
    assert kept(chosen(pool(*exchange(0.9, 0.1), said(priority=0.5)), 30)) == [1, 2, 3]


def test_a_reply_that_calls_and_the_reply_after_it_are_told_apart():
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
def test_calls_without_results_and_results_without_calls_do_not_stay(candidates, left, out):
    found = chosen(pool(*candidates), 100)
    assert kept(found) == left
    assert reasons(found) == out


def test_a_call_without_a_result_is_taken_off_its_message_and_the_others_stay():
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


# What is left out


def test_messages_equal_to_the_question_are_left_out_but_not_their_replies():
    some = pool(said(content=" why? \n", trace="t"), said("assistant", "because", trace="t"))
    found = chosen(some, 100, query="why?")
    assert kept(found) == [2]
    assert found.dropped[0].reason == "question"


def test_an_empty_question_is_equal_to_nothing():
    assert kept(
        chosen(pool(said(), said("assistant", calls=("a",)), said("tool", " ", answers="a")), 99)
    ) == [1, 2, 3]


@pytest.mark.parametrize(
    ("allowed", "left"), [(False, [2]), (True, [1, 2])], ids=["§4 default", "§4 include_system"]
)
def test_system_messages_are_no_candidates_unless_they_are_let_in(allowed, left):
    some = pool(said("system"), said())
    found = chosen(some, 100, Rules(include_system=allowed))
    assert kept(found) == left
    assert found.dropped == ()
    assert numbers(found.history) == [2]


@pytest.mark.parametrize(
    ("cosine", "stays"),
    [
        pytest.param(0.2, True, id="§4 reaching it"),
        pytest.param(0.1, False, id="§4 below it"),
        pytest.param(None, True, id="§4 no vector"),
    ],
)
def test_below_min_cosine_nothing_is_recalled(cosine, stays):
    some = pool(said(tier=S, cosine=cosine, priority=0.9, instance="j"), said(cosine=0.9))
    found = chosen(some, 100, Rules(min_history_messages=0, min_cosine=0.2))
    assert (1 in kept(found)) is stays
    assert (reasons(found).get(1) == "below min_cosine") is not stays


def test_what_filling_passes_over_is_no_drop():
    some = pool(said(filler=True, tier=O, priority=0.1), said(tier=S, priority=0.2), said())
    found = chosen(some, 10)
    assert reasons(found) == {2: "no room"}
    assert numbers(each.candidate for each in found.passed_over) == [1]


@pytest.mark.parametrize(
    ("candidate", "for_room"),
    [
        pytest.param(said(tokens=9), True, id="§4 no room"),
        pytest.param(said(tokens=99), True, id="§4 too large"),
        pytest.param(said("tool", tokens=1), False, id="§4 orphan result"),
        pytest.param(said("assistant", calls=("a",), tokens=1), False, id="§4 unanswered call"),
    ],
)
def test_only_what_was_dropped_for_lack_of_room_is_a_truncation(candidate, for_room):
    found = chosen(pool(replace(candidate), said(priority=0.9)), 10)
    assert [each.for_room for each in found.dropped] == [for_room]


# Invariants


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
    """The messages of one turn of a talk."""
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
    """Pools of a talk in one or two instances, its newest part in the tier of the recent."""
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
def test_every_window_is_valid_whatever_was_dropped(candidates, budget, order):
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
    """An upper bound of what any unit costs: a trace, or a call with all that may answer it."""
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
def test_by_tiers_the_order_holds_for_what_is_printed(candidates, budget, newest):
    """What was left out for lack of room stands behind everything printed, unit by unit."""
    found = chosen(candidates, budget, Rules("tiers", newest), costs=FULL)
    printed = {each.message.id for each in (*found.recalled, *found.history)}
    units, _ = _tool_units([each for each in candidates if not is_system(each)])
    exchanges = list(_exchanges(units, Exchanges.of([each.message for each in candidates])))
    no_room = {number for number, reason in reasons(found).items() if reason == "no room"}
    left, kept_keys = [], []
    for exchange in exchanges:
        inside = [unit for unit in exchange if unit.members[0].message.id in printed]
        whole = len(inside) == len(exchange)
        if inside:
            joined = Unit(tuple(each for unit in exchange for each in unit.members))
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
    # What the newest rule kept came before any tier; everything else is in order.
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
def test_what_is_hopeless_would_not_have_fitted(rows, budget, counted) -> None:
    """Recalled messages only, so that none has an age."""

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


# Parts of long messages


def long_text(**more):
    """Return a message of four parts with a hundred tokens each."""
    text = " ".join(f"word{number}" for number in range(400))
    spans = tuple((at * len(text) // 4, (at + 1) * len(text) // 4) for at in range(4))
    return replace(said("assistant", text, tokens=400, **more), parts=spans, replies=True)


def by_part(candidate):
    printed = sum(
        end - start for start, end in candidate.spans or [(0, len(candidate.message.content))]
    )
    return round(candidate.message.tokens * printed / max(1, len(candidate.message.content)))


@pytest.mark.parametrize("cosine", [0.2, 0.8])
def test_a_part_of_the_nearest_message_waits_less_than_those_of_others(cosine):
    some = pool(
        said(priority=0.9, cosine=0.5, tokens=20),
        long_text(priority=0.8, cosine=cosine),
        said(priority=0.52, cosine=0.5, tokens=120),
    )
    found = chosen(some, 190, costs=Costs(by_part, by_part, 0, 0))
    assert kept(found) == ([1, 2] if cosine == 0.8 else [1, 3])


@pytest.mark.parametrize(("about_asker", "first"), [(False, [1]), (True, [2])])
def test_a_part_of_the_best_match_waits_for_nothing_unless_it_is_about_the_asker(
    about_asker, first
):
    some = pool(long_text(priority=1.0), said(priority=0.95, tokens=100))
    some = [replace(candidate, about_asker=about_asker) for candidate in some]
    assert kept(chosen(some, 100, costs=Costs(by_part, by_part, 0, 0))) == first


# What little room is left for


@pytest.mark.parametrize(("priority", "ids"), [(0.8, [1, 2]), (0.7, [1])])
def test_in_little_room_nothing_far_below_what_was_taken_last_is_taken(priority, ids):
    some = pool(
        said(priority=1.0, tokens=920),
        said(priority=priority, tokens=10),
        said(priority=0.9, tokens=500),
    )
    assert kept(chosen(some, 1_000)) == ids


def test_in_more_room_whatever_fits_is_taken():
    some = pool(
        said(priority=1.0, tokens=500),
        said(priority=0.1, tokens=10),
        said(priority=0.9, tokens=600),
    )
    assert kept(chosen(some, 1_000)) == [1, 2]


def test_what_fits_as_a_whole_is_taken_however_little_room_is_left():
    some = pool(said(priority=1.0, tokens=920), said(priority=0.1, tokens=10))
    assert kept(chosen(some, 1_000)) == [1, 2]
