"""Count the tokens of single messages, and of a selection as it is printed."""

import math
from collections.abc import Callable, Sequence
from functools import cache

from reservoir_cli.context import turns
from reservoir_cli.context.budget import PER_MESSAGE, Meter
from reservoir_cli.context.layout import Costs
from reservoir_cli.context.render import recalled as quoted
from reservoir_cli.context.render.window import count_framed, count_turns
from reservoir_cli.context.types import PROVIDERS, Candidate, ContextRequest, Span, TokenBudget
from reservoir_cli.messages import StoredMessage, plain_text


def costs_of(request: ContextRequest, budget: TokenBudget, meter: Meter) -> Costs:
    """Return upper bounds of a message's tokens as a recalled line and as a turn."""
    count = cache(meter.counter.count)
    quote = quoted.quote_once(numbered=request.recall_only)

    def said(message: StoredMessage, shown: str) -> int:
        """Return a message's tokens, counting again if it is not printed as it was stored."""
        return message.tokens if shown == plain_text(message) else count(shown)

    def recalled(each: Candidate) -> int:
        line = quoted.recalled_line(each.message, each.spans, numbered=request.recall_only)
        role, shown = line.split(": ", 1)
        framing = f"\n{quoted.GAP}\n{role}: \n{quoted.title_line(each)}"
        return meter.scaled(said(each.message, shown) + count(framing))

    def history(each: Candidate) -> int:
        message = each.message
        framing = f"{message.role}: \n\n" + " ".join(call.id for call in message.tool_calls)
        framing += message.tool_call_id or ""
        tokens = said(message, quoted.defused(plain_text(message))) + count(framing)
        return meter.scaled(tokens + PER_MESSAGE)

    return Costs(
        recalled=_once(recalled),
        history=_once(history),
        day=meter.count("2026-01-01\n"),
        recalled_title=meter.count(
            f"{quoted.RECALLED_TITLE}\n{quoted.RECALLED_NOTE}\n{request.recall_note}\n---\n",
            messages=1,
        ),
        printed=lambda recalled, run, limit: printed_tokens(
            request, recalled, run, budget, meter, quote, limit
        ),
        left_out=lambda answer: meter.count(f"{quoted.answer_left_out(answer)}\n"),
        # In a recall, trials take a tenth of the time and fill one more token in a thousand.
        trials=1 if request.recall_only else 32,
    )


def _once(cost: Callable[[Candidate], int]) -> Callable[[Candidate], int]:
    """Cache the cost of each printed form of a message."""
    known: dict[tuple[int, tuple[Span, ...] | None], int] = {}

    def cost_once(candidate: Candidate) -> int:
        form = candidate.message.id, candidate.spans
        if form not in known:
            known[form] = cost(candidate)
        return known[form]

    return cost_once


def printed_tokens(
    request: ContextRequest,
    recalled: Sequence[Candidate],
    history: Sequence[Candidate],
    budget: TokenBudget,
    meter: Meter,
    quote: quoted.Quote | None = None,
    limit: float = math.inf,
) -> int:
    """Count the tokens of recalled messages and history as they are printed.

    A text is also counted as a whole: rounding its sections one by one may give less.

    :param limit: a count above it may be too low, but never falls below the limit.
    """
    shown = turns.history_turns(request, recalled, history, quote)
    alone = count_turns(shown, request.format, meter)
    if request.format in PROVIDERS or alone > limit:
        return alone
    window = [*turns.fixed_turns(request), *shown, *turns.current_turn(request)]
    whole = count_framed(window, request.format, meter)
    return max(alone, whole - sum(budget.sections.values()))
