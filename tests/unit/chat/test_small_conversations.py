"""Small conversations of every kind: every body is valid, whatever was left out."""

import copy
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from bodies import FORMS, PROVIDERS, SETTINGS, START, recalled_text
from builders import context
from hypothesis import example, given, settings
from hypothesis import strategies as st
from validators import problems

from reservoir_cli import Message, Reservoir, ToolCall
from reservoir_cli.chat.turn import Section
from reservoir_cli.context.candidate import Candidate, Scores, Selection, Tier
from reservoir_cli.context.choose import SelectionOptions, select
from reservoir_cli.context.finished_window import (
    current_turn,
    ends_with_a_question,
    fixed_turns,
    history_turns,
)
from reservoir_cli.context.render.formats import count_turns, render
from reservoir_cli.context.render.quote_recalled import quote_line
from reservoir_cli.context.request import ContextRequest, Piece
from reservoir_cli.context.window_builder import Costs
from reservoir_cli.messages import Role, StoredMessage, plain_text

#: To try thousands after a change of the tested code: HYPOTHESIS_EXAMPLES=5000 pytest …
EXAMPLES = int(os.environ.get("HYPOTHESIS_EXAMPLES", "300"))


ODD_IDS = ("a", "b", "", "a b", "x" * 41, "käse")
TEXTS = ("", " ", "hello", "q?", "q?", "hello\nthere", "long " * 30)
RAW = ("", "{}", '{"k": 1}', "[1]", "null", "not {json", '"text"')
SMALL_NAMES = ("f", "g.h", "n" * 70, "名")
LONGEST = 12


class _Digits:
    """Make choices from one number: one draw per message makes thousands of examples cheap."""

    def __init__(self, number: int) -> None:
        self.number = number

    def one_of(self, *choices: Any) -> Any:
        self.number, index = divmod(self.number, len(choices))
        return choices[index]

    def share(self) -> float:
        return self.one_of(*range(17)) / 16

    def call(self) -> ToolCall:
        return ToolCall(self.one_of(*ODD_IDS), self.one_of(*SMALL_NAMES), self.one_of(*RAW))


def _small_message(number: int, before: Sequence[StoredMessage], digits: _Digits) -> StoredMessage:
    role = digits.one_of("user", "assistant", "tool", "assistant", "tool", "user", "system")
    text = digits.one_of(*TEXTS)
    calls = digits.one_of(0, 1, 1, 2, 3) if role == "assistant" else 0
    message = StoredMessage(
        id=number,
        trace_id=digits.one_of("t", "u", f"own {number}"),
        conversation_id=digits.one_of(None, "c", "d"),
        partition="p",
        instance=digits.one_of("i", "i", "i", "j"),
        role=Role(role),
        content=f"{text} {number}" if text.strip() and digits.one_of(True, False) else text,
        name=None,
        tool_calls=tuple(digits.call() for _ in range(calls)),
        tool_call_id=digits.one_of(*ODD_IDS) if role == "tool" else None,
        created_at=(before[-1].created_at if before else START)
        + timedelta(minutes=digits.one_of(0, 1, 500, 1_500)),
        source="test",
        source_id=str(number),
        tokens=0,
    )
    callers = [earlier for earlier in before if earlier.tool_calls][-3:]
    if role == "tool" and callers and digits.one_of(True, True, False):
        caller = digits.one_of(*callers)
        message = replace(
            message,
            conversation_id=caller.conversation_id,
            instance=caller.instance,
            tool_call_id=digits.one_of(*caller.tool_calls).id,
        )
    return replace(message, tokens=len(plain_text(message)))


def _pool(seeds: list[bytes]) -> list[Candidate]:
    """Draw messages of two instances in order of time, leaving out some of the scope."""
    drawn: list[tuple[StoredMessage, _Digits]] = []
    for number, seed in enumerate(seeds, 1):
        digits = _Digits(int.from_bytes(seed, "little"))
        before = [message for message, _ in drawn]
        drawn.append((_small_message(number, before, digits), digits))
    own_ids = [message.id for message, _ in drawn if message.instance == "i"]
    pool = []
    for message, digits in drawn:
        embedded = digits.one_of(True, False)
        cosine = digits.share() if embedded else 0.0
        scores = Scores(digits.share(), cosine, 0.0, digits.share(), digits.share(), embedded)
        tier = digits.one_of(*Tier)
        age = len(own_ids) - 1 - own_ids.index(message.id) if message.id in own_ids else None
        filler = tier is Tier.OLDER and digits.one_of(True, False)
        if digits.one_of(*range(12)) < 11:
            pool.append(Candidate(message, tier, filler, scores, age, position=message.id))
    return pool


pools = st.lists(st.binary(min_size=14, max_size=14), max_size=LONGEST).map(_pool)

options = st.builds(
    SelectionOptions,
    order=st.sampled_from(("score", "tiers")),
    min_history_messages=st.integers(0, 4),
    min_cosine=st.sampled_from((0.0, 0.0, 0.4)),
    include_system=st.booleans(),
)

requests = st.builds(
    lambda **fields: ContextRequest(**fields),  # fields with a default keep it
    query=st.sampled_from(("what now?", "hello", "q?", "", " ")),
    partition=st.just("p"),
    instance=st.just("i"),
    model=st.just("m"),
    budget=st.just(1),
    format=st.just("text"),
    trace_id=st.just("t"),
    now=st.just(START),
    system=st.sampled_from((None, "Be brief.")),
    procedures=st.sampled_from(((), (Piece("Do it.", "p"),))),
    knowledge=st.sampled_from(((), (Piece("Foxes.", "n"), Piece("Dogs.", "m")))),
    episodes=st.sampled_from(((), (Piece("2026-01-01: x"),))),
)


# Counts characters, so that every cost is exact.


def _line(candidate: Candidate) -> int:
    return len(quote_line(candidate.message)) + len("\n…\n")


COSTS = Costs(
    recalled=lambda candidate: _line(candidate) + len("…\n"),
    history=_line,
    day=len("2026-01-01\n"),
    recalled_title=len(recalled_text([])) + len("\n\n"),
    left_out=lambda answer: len(f"[answer left out: #{answer}]\n"),
)


def choose(
    pool: list[Candidate], request: ContextRequest, budget: int, rule: SelectionOptions
) -> Selection:
    return select(
        pool, query=request.query, budget=budget, costs=COSTS, options=rule, not_reached=0
    )


#: Errors of conversations without a question.
NOT_WITHOUT_A_QUESTION = (
    "the last message is not the user's",
    "messages: at least one message is required",
)


def every_body_of_a_small_conversation_is_valid(selection, pool, request_, budget, rule):
    for form in PROVIDERS:
        asked_for = request_._replace(format=form)
        turns = history_turns(asked_for, selection.recalled, selection.history)
        window = [*fixed_turns(request_), *turns, *current_turn(request_)]
        has_question = ends_with_a_question(window)
        errors = problems(form, render(window, form, "m", 100))
        if not has_question:
            errors = [error for error in errors if error not in NOT_WITHOUT_A_QUESTION]
        assert errors == [], form


def a_small_conversation_costs_no_more_than_its_budget(selection, pool, request_, budget, rule):
    def printed(chosen: Selection) -> int:
        turns = history_turns(request_, chosen.recalled, chosen.history)
        return len(render(turns, "text", None, 1))

    assert printed(selection) <= budget
    # One character less than the total would reveal a forgotten cost.
    total = printed(choose(pool, request_, 100_000, rule))
    less = max(0, total - 1)
    assert printed(choose(pool, request_, less, rule)) <= less


def history_begins_with_a_question(selection, pool, request_, budget, rule):
    assert [candidate.message.role for candidate in selection.history[:1]] in ([], [Role.USER])


def every_message_is_printed_once_or_dropped(selection, pool, request_, budget, rule):
    left_out = [dropped.candidate for dropped in (*selection.dropped, *selection.passed_over)]
    counts = Counter(
        candidate.message.id for candidate in (*selection.recalled, *selection.history, *left_out)
    )
    assert all(count == 1 for count in counts.values())
    expected = {candidate.message.id for candidate in pool} - counts.keys()
    for candidate in pool:
        if candidate.message.id in expected:
            repeats_query = candidate.message.content.strip() == request_.query.strip()
            blank = not candidate.message.content.strip() and not candidate.message.tool_calls
            assert repeats_query or blank or candidate.message.role is Role.SYSTEM


def printed_messages_equal_stored_ones(selection, pool, request_, budget, rule):
    stored = {candidate.message.id: candidate.message for candidate in pool}
    for candidate in (*selection.recalled, *selection.history):
        original = stored[candidate.message.id]
        assert replace(candidate.message, tool_calls=original.tool_calls) == original
        assert set(candidate.message.tool_calls) <= set(original.tool_calls)
    turns = history_turns(request_, selection.recalled, selection.history)
    recalled = [turn.content for turn in turns if turn.section is Section.RECALLED]
    expected = [recalled_text(selection.recalled)]
    assert recalled == (expected if selection.recalled else [])
    history = [(turn.role, turn.content) for turn in turns if turn.section is Section.HISTORY]
    assert history == [
        (candidate.message.role, candidate.message.content) for candidate in selection.history
    ]


def recalled_results_are_with_their_calls(selection, pool, request_, budget, rule):
    for candidates in (selection.recalled, selection.history):
        calls = Counter(
            (candidate.message.instance, candidate.message.conversation_id, call.id)
            for candidate in candidates
            for call in candidate.message.tool_calls
        )
        results = Counter(
            (
                candidate.message.instance,
                candidate.message.conversation_id,
                candidate.message.tool_call_id or "",
            )
            for candidate in candidates
            if candidate.message.role is Role.TOOL
        )
        assert calls == results


def a_result_in_history_answers_a_call_of_its_own_conversation(
    selection, pool, request_, budget, rule
):
    open_calls: list[tuple[str | None, str]] = []
    for candidate in selection.history:
        message = candidate.message
        if message.role is Role.TOOL:
            key = (message.conversation_id, message.tool_call_id or "")
            assert key in open_calls
            open_calls.remove(key)
        else:
            open_calls = [(message.conversation_id, call.id) for call in message.tool_calls]


def selection_is_repeatable_and_changes_no_message(selection, pool, request_, budget, rule):
    before = copy.deepcopy(pool)
    assert choose(pool, request_, budget, rule) == selection
    assert pool == before
    assert choose(before, request_, budget, rule) == selection


# Two pinned copies, of which one is recalled until the newest message makes turns of both.
_COPY = bytes.fromhex("4e404c452baac668f7dd3b705219")
COPIES = _pool([_COPY, _COPY, bytes(11) + bytes.fromhex("141edc")])
ASKED = ContextRequest(
    query="what now?",
    partition="p",
    instance="i",
    model="m",
    budget=1,
    format="text",
    trace_id="t",
    now=START,
)
CLAIMS = (
    every_body_of_a_small_conversation_is_valid,
    a_small_conversation_costs_no_more_than_its_budget,
    history_begins_with_a_question,
    every_message_is_printed_once_or_dropped,
    printed_messages_equal_stored_ones,
    recalled_results_are_with_their_calls,
    a_result_in_history_answers_a_call_of_its_own_conversation,
    selection_is_repeatable_and_changes_no_message,
)


@settings(max_examples=EXAMPLES)
@given(pools, requests, st.integers(0, 700), options)
@example(COPIES, ASKED, 262, SelectionOptions(min_history_messages=0))
def test_a_small_conversation_keeps_every_claim(pool, request_, budget, rule):
    selection = choose(pool, request_, budget, rule)
    for claim in CLAIMS:
        claim(selection, pool, request_, budget, rule)


@settings(max_examples=max(20, EXAMPLES // 15))
@given(pools, requests, st.integers(30, 400), st.sampled_from(FORMS), st.booleans())
def test_a_small_conversation_in_a_real_store_keeps_its_budget(pool, request_, budget, form, tiers):
    messages = [
        Message(
            candidate.message.role,
            candidate.message.content,
            created_at=candidate.message.created_at,
            trace_id=candidate.message.trace_id,
            conversation_id=candidate.message.conversation_id,
            tool_calls=candidate.message.tool_calls,
            tool_call_id=candidate.message.tool_call_id,
        )
        for candidate in pool
    ]
    with Reservoir.open(":memory:", settings=SETTINGS, offline=True) as reservoir:
        for instance in ("i", "j"):
            pairs = zip(messages, pool, strict=True)
            own_messages = [
                message for message, candidate in pairs if candidate.message.instance == instance
            ]
            reservoir.ingest(own_messages, partition="p", instance=instance, embed=False)
        window = context(
            reservoir,
            request_.query,
            partition="p",
            budget=budget,
            format=form,
            order="tiers" if tiers else "score",
        )
    assert window.used <= budget or window.budget.overfull
    printed = count_turns(window.turns, form, window.meter)
    # Only the separator between sections is not counted with one of them.
    assert printed <= budget + 3 or window.budget.overfull
    if form in PROVIDERS and ends_with_a_question(window.turns):
        assert problems(form, {**window.to(), "model": "m"}) == []
