"""What a message costs while a window is filled, compared with what it adds to the print."""

import math
from dataclasses import replace
from datetime import timedelta

import hypothesis
import pytest
from candidates import START, make_candidate
from hypothesis import strategies as st

from reservoir_cli.context.budget import Meter, TokenBudget
from reservoir_cli.context.costs import build_costs
from reservoir_cli.context.exchanges import Exchanges
from reservoir_cli.context.layout import Packing
from reservoir_cli.context.request import ContextRequest
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
        candidates.append(replace(candidate, message=message, position=number, title=title))
    return candidates


def _packing(candidates, meter, form, recall_only):
    request = ContextRequest(
        query="",
        partition="p",
        instance=None,
        model=None,
        budget=None,
        format=form,
        trace_id="t",
        now=START,
        recall_only=recall_only,
    )
    costs = build_costs(request, TokenBudget(1_000_000, 0, 1_000_000, {}, 1_000_000), meter)
    return Packing(costs, Exchanges.of([row.message for row in candidates]), {}, set())


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
