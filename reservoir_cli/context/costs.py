"""Count the tokens of messages, of sections, which have caps, and of a selection as printed."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache

from reservoir_cli.chat.turn import Section, Turn
from reservoir_cli.context import finished_window
from reservoir_cli.context.budget import Meter, TokenBudget
from reservoir_cli.context.candidate import Candidate, Span, cache_by
from reservoir_cli.context.render import quote_recalled
from reservoir_cli.context.render.control_tokens import defuse
from reservoir_cli.context.render.formats import count_frame, count_framed, count_turns
from reservoir_cli.context.render.text_and_markdown import turn_text
from reservoir_cli.context.request import PROVIDERS, ContextRequest, Format
from reservoir_cli.context.window_builder import Costs
from reservoir_cli.messages import Role, StoredMessage, plain_text
from reservoir_cli.settings.schema import Settings
from reservoir_cli.tokens.counter import PER_MESSAGE
from reservoir_cli.util.progress import counted

#: What a message counted alone may exceed its part of a text by: line breaks, merged words, a gap
_SEAMS = 6
_DAY = "2026-01-01"  # a day, as long as any


def build_costs(
    request: ContextRequest,
    budget: TokenBudget,
    meter: Meter,
    quote: quote_recalled.Quote | None = None,
) -> Costs:
    """Return upper bounds of a message's tokens as a recalled line and as a turn."""
    count = cache(meter.counter.count)

    def count_text(message: StoredMessage, text: str) -> int:
        """Return a message's tokens, counting again if it is not printed as it was stored."""
        return message.tokens if text == plain_text(message) else count(text)

    # Numbers of as many digits count alike, so a few labels are counted for all messages.
    @cache
    def framing_tokens(role: Role, digits: int, excerpt: bool, title: str | None) -> int:
        number = int("8" * digits)
        label = quote_recalled.label(role, number, excerpt, _DAY if request.recall_only else "")
        return count(f"\n{label}: \n") + optional_tokens(title)

    @cache
    def optional_tokens(title: str | None) -> int:
        """Count the lines that are printed above a recalled message only if they are needed."""
        titled = quote_recalled.title_line(title, compact=request.compact)
        return count(f"{quote_recalled.GAP}\n{titled}")

    @cache
    def left_out_tokens(digits: int) -> int:
        return meter.count(f"{quote_recalled.left_out_line(int('8' * digits))}\n")

    def recalled_tokens(candidate: Candidate) -> int:
        message, excerpt = candidate.message, candidate.spans is not None
        text = quote_recalled.quote_text(quote_recalled.printed_text(message, candidate.spans))
        framing = framing_tokens(message.role, len(str(message.id)), excerpt, candidate.title)
        return meter.scale(count_text(message, text) + framing)

    def history_tokens(candidate: Candidate) -> int:
        message = candidate.message
        tokens = count_text(message, _history_text(message, request.format))
        return meter.scale(tokens + count(_turn_frame(message)) + PER_MESSAGE)

    @cache
    def line_excess(title: str | None) -> int:
        return meter.scale(optional_tokens(title) + _SEAMS)

    def excess(candidate: Candidate) -> int:
        if candidate.age is None:
            return line_excess(candidate.title)
        # It may become a turn.
        optional = max(optional_tokens(candidate.title), count(_turn_frame(candidate.message)))
        return meter.scale(optional + _SEAMS)

    return Costs(
        recalled=cache_by(_form, recalled_tokens),
        history=cache_by(_form, history_tokens),
        day=0 if request.recall_only else meter.count(f"{_DAY}\n"),
        recalled_title=meter.count(
            f"{quote_recalled.introduction(request.recall_note, compact=request.compact)}\n---\n",
            messages=1,
        ),
        printed=lambda recalled, run, limit: count_printed(
            request, recalled, run, budget, meter, quote, limit
        ),
        left_out=lambda answer: left_out_tokens(len(str(answer))),
        excess=excess,
        # In a recall, trials take a tenth of the time and fill one more token in a thousand.
        trials=1 if request.recall_only else 32,
    )


def _history_text(message: StoredMessage, form: Format) -> str:
    if form in PROVIDERS:
        return defuse(plain_text(message))
    return turn_text(defuse(message.content), map(finished_window.defuse_call, message.tool_calls))


def _turn_frame(message: StoredMessage) -> str:
    """Return what surrounds a message as a turn in some format."""
    call_ids = " ".join(call.id for call in message.tool_calls)
    return f"{message.role}: \n\n{call_ids}{message.tool_call_id or ''}"


def _form(candidate: Candidate) -> tuple[int, tuple[Span, ...] | None]:
    return candidate.message.id, candidate.spans


def count_printed(
    request: ContextRequest,
    recalled: Sequence[Candidate],
    history: Sequence[Candidate],
    budget: TokenBudget,
    meter: Meter,
    quote: quote_recalled.Quote | None = None,
    limit: float = math.inf,
) -> int:
    """Count the tokens of recalled messages and history as they are printed.

    A text is also counted as a whole: rounding its sections one by one may give less.

    :param limit: a count above it may be too low, but never falls below the limit.
    """
    printed_turns = finished_window.history_turns(request, recalled, history, quote)
    tokens = count_turns(printed_turns, request.format, meter)
    if request.format in PROVIDERS or tokens > limit:
        return tokens
    all_turns = [
        *finished_window.fixed_turns(request),
        *printed_turns,
        *finished_window.current_turn(request),
    ]
    framed_tokens = count_framed(all_turns, request.format, meter)
    return max(tokens, framed_tokens - sum(budget.sections.values()))


def count_sections(request: ContextRequest, meter: Meter) -> dict[Section, int]:
    """Count each section that is not pruned, and the whole in its frame, which may give more."""
    fixed = [*finished_window.fixed_turns(request), *finished_window.current_turn(request)]
    sections = {
        section: count_turns(
            [turn for turn in fixed if turn.section is section], request.format, meter
        )
        for section in dict.fromkeys(turn.section for turn in fixed)
    }
    if request.format in PROVIDERS:
        return sections
    others = sum(sections.values()) - sections.get(Section.CURRENT, 0)
    framed = count_framed(fixed, request.format, meter)
    current = sections.get(Section.CURRENT, 0) + count_frame(meter)
    return {**sections, Section.CURRENT: max(current, framed - others)}


def cap_sections(request: ContextRequest, settings: Settings, meter: Meter) -> ContextRequest:
    """Return the request without the pieces that exceed their section's cap."""

    def fitting(turns: Callable[[int], list[Turn]], most: int, cap: int) -> int:
        """Return how many pieces fit, by halving the numbers: more pieces take more tokens."""

        def count(number: int) -> int:
            return count_turns(turns(number), request.format, meter)

        return bisect_right(range(1, most + 1), cap, key=count)

    knowledge, episodes = request.knowledge, request.episodes
    first = fitting(
        lambda number: finished_window.knowledge_turn(knowledge[:number]),
        len(knowledge),
        settings.max_knowledge_tokens,
    )
    last = fitting(
        lambda number: finished_window.episodes_turn(episodes[-number:]),
        len(episodes),
        settings.max_episode_tokens,
    )
    return request._replace(
        knowledge=knowledge[: max(1, first)], episodes=episodes[len(episodes) - last :]
    )


def cap_notes(
    request: ContextRequest, left_out: int, settings: Settings, meter: Meter
) -> tuple[str, ...]:
    """Return notes on pieces left out by the caps, and on a first piece that exceeds its cap."""
    notes = []
    if left_out:
        pieces = counted(left_out, "piece")
        notes.append(f"{pieces} of knowledge and episodes left out: beyond the caps")
    first = count_turns(finished_window.knowledge_turn(request.knowledge), request.format, meter)
    if first > settings.max_knowledge_tokens:
        notes.append(
            f"the first piece of knowledge alone takes {first:,} tokens, more than "
            f"max_knowledge_tokens ({settings.max_knowledge_tokens:,})"
        )
    return tuple(notes)
