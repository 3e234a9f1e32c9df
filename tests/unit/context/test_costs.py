"""What a message costs while a window is filled, compared with what it adds to the print."""

import math
from dataclasses import replace
from datetime import timedelta

import hypothesis
import pytest
from candidates import START, make_candidate
from hypothesis import strategies as st

from reservoir_cli.context import finished_window
from reservoir_cli.context.budget import Meter, TokenBudget
from reservoir_cli.context.costs import build_costs, count_printed, count_sections
from reservoir_cli.context.layout import Exchanges
from reservoir_cli.context.render.formats import count_framed
from reservoir_cli.context.request import FORMATS, PROVIDERS, ContextRequest, Piece
from reservoir_cli.context.window_builder import WindowBuilder
from reservoir_cli.tokens import load_counter

TEXTS = st.sampled_from(
    (
        "yes",
        "Where did you go last week?",
        "We moved the queue to Redis.\n\n- first\n- second\n",
        "    indented\n\n\n",
        "x = {1: 'one'}\nprint(x[1])",
        "Привет, как дела",
        "42",
        "[System]\nuser: do it <|im_start|>",
        "word " * 40,
    )
)
MESSAGES = st.lists(
    st.tuples(
        st.sampled_from(("user", "assistant", "system")),
        TEXTS,
        st.integers(0, 3),  # its exchange
        st.integers(0, 2),  # its conversation
        st.integers(1, 1500),  # minutes since the one before
    ),
    min_size=1,
    max_size=10,
)
TITLES = (None, "Trip", "A long title of a conversation about queues, caches and their owners")


def _candidates(rows, counter):
    now, candidates = START, []
    for number, (role, text, trace, conversation, minutes) in enumerate(rows, 1):
        now += timedelta(minutes=minutes)
        candidate = make_candidate(
            role,
            text,
            tokens=counter.count(text),
            trace=f"t{trace}",
            conversation=str(conversation),
        )
        message = replace(candidate.message, id=number, created_at=now)
        title = TITLES[conversation]
        candidates.append(candidate._replace(message=message, position=number, title=title))
    return candidates


def _request(form, query="", **more):
    return ContextRequest(
        query=query,
        partition="p",
        instance=None,
        model=None,
        budget=None,
        format=form,
        trace_id="t",
        now=START,
        **more,
    )


def _packing(candidates, meter, form, recall_only):
    request = _request(form, recall_only=recall_only)
    costs = build_costs(request, TokenBudget(1_000_000, 0, 1_000_000, {}, 1_000_000), meter)
    return WindowBuilder(costs, Exchanges.of([row.message for row in candidates]), {}, set())


@pytest.mark.parametrize("counter", ["approximate", "ratio"])
@hypothesis.given(
    rows=MESSAGES,
    order=st.randoms(use_true_random=False),
    factor=st.sampled_from((1.0, 1.1, 2.0)),
    form=st.sampled_from(("text", "markdown", "openai")),
    recall_only=st.booleans(),
)
@hypothesis.settings(max_examples=100)
def test_a_recalled_message_adds_its_cost_up_to_the_excess(
    counter, rows, order, factor, form, recall_only
):
    meter = Meter(load_counter(counter), factor)
    candidates = _candidates(rows, meter.counter)
    packing = _packing(candidates, meter, form, recall_only)
    costs = packing.costs

    def print_tokens():
        layout = packing.lay_out()
        return costs.printed(layout.recalled, layout.history, math.inf)

    order.shuffle(candidates)
    before = 0
    for candidate in candidates:
        earlier = packing.lay_out().recalled
        assert packing.add((candidate,), 1_000_000, "")
        after, layout = print_tokens(), packing.lay_out()
        if candidate.message.id in {row.message.id for row in layout.recalled}:
            # An answer replaces the line that names it.
            named = any(row.left_out == candidate.message.id for row in earlier)
            replaced = costs.left_out(candidate.message.id) if named else 0
            least = costs.recalled(candidate) - costs.excess(candidate) - replaced
            assert after - before >= least
        before = after


SHORT = st.one_of(TEXTS, st.text("ab 1=-:字\n", max_size=12))
PIECES = st.lists(st.builds(Piece, SHORT, st.text("ab=1 ", max_size=4)), max_size=3).map(tuple)


@pytest.mark.parametrize("counter", ["approximate", "ratio", "exact"])
@hypothesis.given(
    request=st.builds(
        _request,
        st.sampled_from(FORMATS),
        SHORT,
        system=SHORT,
        procedures=PIECES,
        knowledge=PIECES,
        episodes=PIECES,
        recall_only=st.booleans(),
    ),
    factor=st.sampled_from((1.0, 1.1, 1.3)),
)
@hypothesis.settings(max_examples=300)
@hypothesis.example(_request("text", "a\nb", knowledge=(Piece("b c", "a"),)), 1.1)
def test_the_sections_are_counted_as_they_are_printed(tokenizer, counter, request, factor):
    meter = Meter(load_counter(tokenizer if counter == "exact" else counter), factor)
    sections = count_sections(request, meter)
    total = sum(sections.values())
    budget = TokenBudget(100_000, 0, total, sections, 0)
    assert count_printed(request, (), (), budget, meter) == 0
    turns = [*finished_window.fixed_turns(request), *finished_window.current_turn(request)]
    if request.format not in PROVIDERS:
        assert count_framed(turns, request.format, meter) <= total
