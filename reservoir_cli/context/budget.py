"""Compute how a context's tokens are distributed. Pure.

available = min(max_context_tokens, window - reserve), or the budget given by hand;
history = available - system - procedure - knowledge - episodes - current.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from reservoir_cli.chat.turn import Section
from reservoir_cli.context.window_constants import RESERVE_SHARE
from reservoir_cli.errors import UsageError
from reservoir_cli.tokens.counter import PER_MESSAGE, TokenCounter

APPROXIMATE_SAFETY = 1.10


class TokenBudget(NamedTuple):
    """The tokens of a context window and their distribution."""

    window: int
    reserve: int  # tokens kept for the answer
    available: int
    sections: Mapping[Section, int]  # tokens of the sections that are never pruned
    history: int  # tokens left for recalled messages and history
    borrowed: int = 0  # tokens of the reserve that history may take
    notes: tuple[str, ...] = ()

    @property
    def overflow(self) -> int:
        """By how much the sections and the question alone exceed what is available."""
        return max(0, sum(self.sections.values()) - self.available)

    @property
    def overfull(self) -> bool:
        """Whether the sections and the question alone exceed what is available."""
        return self.overflow > 0


class Meter(NamedTuple):
    """A token counter with the factor, multiplier times safety, of every count of a context."""

    counter: TokenCounter
    factor: float

    @classmethod
    def of(cls, counter: TokenCounter, multiplier: float, safety: float | None) -> "Meter":
        """Make a meter from the settings; without a factor, 1.10 unless the counter is exact."""
        if safety is None:
            safety = 1.0 if counter.exact else APPROXIMATE_SAFETY
        return cls(counter, multiplier * safety)

    @property
    def name(self) -> str:
        """The counter's name."""
        return self.counter.name

    @property
    def mark(self) -> str:
        """The prefix of a printed count: ``≈`` unless the count is exact."""
        return "" if self.counter.exact else "≈"

    def scale(self, tokens: int) -> int:
        """Multiply a raw count by the factors, and round up."""
        # First round off floating-point error: 10 * 1.1 is 11.000000000000002.
        return math.ceil(round(tokens * self.factor, 6))

    def count(self, text: str, messages: int = 0) -> int:
        """Count the tokens of a text that fills this many messages of the request."""
        return self.scale(self.counter.count(text) + PER_MESSAGE * messages)


def reserve_setting(model: str | None) -> str:
    """Return the setting that holds the reserve of a model, or of all."""
    return f"models.{model}.reserve_tokens" if model else "reserve_tokens"


def plan(
    *,
    window: int,
    reserve: int,
    limit: int | None,
    budget: int | None,
    model: str | None,
    sections: Mapping[Section, int],
    min_history: int,
    recall_only: bool = False,
) -> TokenBudget:
    """Divide the tokens of a context window.

    :param limit: setting ``max_context_tokens``; only an explicit budget may exceed it.
    :param budget: tokens requested by the user; a hard limit, nothing is subtracted from it.
    :param min_history: under a model's limit, history gets this many tokens, but at most half of
        the available ones, unless the sections leave nothing. At most half of the reserve is
        borrowed for it.
    :param recall_only: only recalled messages are printed, in a frame; without them, nothing.
    :raises UsageError: the budget exceeds the model's window, or leaves nothing.
    """
    notes = []
    room = window - reserve
    if budget is not None:
        available = budget
        if model and budget > window:
            raise UsageError(
                f"a budget of {budget:,} is more than {model} can read ({window:,} tokens)",
                hint=f"--budget {max(room, 1)} leaves {reserve:,} for the answer",
            )
        if model and budget > room:
            notes.append(f"the budget leaves {window - budget:,} of {reserve:,} for the answer")
    else:
        available = room if limit is None else min(limit, room)
    if available <= 0:
        raise UsageError(
            f"no tokens are left for the context: window {window:,}, reserve {reserve:,}",
            hint=f"lower --reserve or {reserve_setting(model)}, or give a positive --budget",
        )
    fixed = sum(sections.values())
    remaining = available - fixed
    borrowed = 0
    if budget is None and 0 < remaining < (minimum := min(min_history, available // 2)):
        maximum = room + int(RESERVE_SHARE * reserve)
        maximum = maximum if limit is None else min(limit, maximum)
        borrowed = min(minimum - remaining, max(0, maximum - available))
    if borrowed:
        notes.append(
            f"the sections leave {remaining:,} tokens; history may take {remaining + borrowed:,}, "
            f"{borrowed:,} of them from the reserve"
        )
    token_budget = TokenBudget(
        window, reserve, available, dict(sections), max(0, remaining) + borrowed, borrowed
    )
    if token_budget.overfull:
        if recall_only:
            notes.append(
                f"the frame of recalled messages alone needs {fixed:,} tokens, more than the "
                f"{available:,} available; nothing is printed"
            )
        else:
            readable = not model or fixed <= window
            hint = f"; --budget {fixed:,} holds them" if budget is not None and readable else ""
            notes.append(
                f"the question and the sections alone need {fixed:,} tokens, more than the "
                f"{available:,} available; they are printed whole{hint}"
            )
    return token_budget._replace(notes=tuple(notes))
