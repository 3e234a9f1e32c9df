"""The finished window, in every format. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, assert_never, cast

from reservoir_cli.chat import providers
from reservoir_cli.chat.turn import Turn
from reservoir_cli.context.budget import Meter
from reservoir_cli.context.render import text
from reservoir_cli.context.render.frame import wrap
from reservoir_cli.context.turns import (
    current_turn,
    ends_with_a_question,
    fixed_turns,
    history_turns,
)
from reservoir_cli.context.types import (
    FORMATS,
    PROVIDERS,
    Candidate,
    ContextRequest,
    Format,
    Selection,
    Tier,
    TokenBudget,
)
from reservoir_cli.errors import UsageError
from reservoir_cli.settings.models import find_model
from reservoir_cli.util.formats import unknown_format

if TYPE_CHECKING:
    from reservoir_cli.context.window_message import WindowMessage


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """The messages for a model, inside a budget, with a reason for each.

    :param scope: where history came from, and where messages were looked for.
    :param history_used: tokens of the recalled messages and the history, as they are printed.
    :param pieces_left_out: knowledge and episodes beyond their caps.
    :param notes: what a person should know about this window.
    :param relevance: how well the question fits the best message of the scope.
    :param floor: the relevance below which nothing is recalled.
    :param nothing_found: that is below the floor, so nothing is recalled.
    :param hints: what a person may want to do about it.
    """

    request: ContextRequest
    budget: TokenBudget
    selection: Selection
    meter: Meter
    scope: Mapping[str, str | None]
    history_used: int
    pieces_left_out: int = 0
    notes: tuple[str, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    relevance: float = 0.0
    nothing_found: bool = False
    hints: tuple[str, ...] = ()
    floor: float = 0.0

    @property
    def used(self) -> int:
        """Tokens of everything that is printed."""
        return sum(self.budget.sections.values()) + self.history_used

    @property
    def kept(self) -> tuple[Candidate, ...]:
        """The stored messages in the window, recalled ones first."""
        return (*self.selection.recalled, *self.selection.history)

    @property
    def not_reached(self) -> int:
        """How many messages of the scope filling left out, for the budget was spent."""
        passed_over = sum(drop.for_room for drop in self.selection.passed_over)
        return self.selection.not_reached + passed_over

    @property
    def truncations(self) -> int:
        """How many things were left out or cut for lack of room.

        A window whose sections and question alone exceed the budget counts as one more.
        """
        dropped = sum(each.for_room for each in self.selection.dropped)
        cut = sum(each.cut for each in self.kept)
        return dropped + self.pieces_left_out + cut + self.budget.overfull

    @property
    def excerpts(self) -> int:
        """How many messages an excerpt is printed of."""
        return sum(candidate.spans is not None for candidate in self.kept)

    @property
    def truncated(self) -> bool:
        """Whether there was not room for everything."""
        return self.truncations > 0

    @property
    def turns(self) -> list[Turn]:
        """The whole window in order, the current message last."""
        return [
            *fixed_turns(self.request),
            *history_turns(self.request, self.selection.recalled, self.selection.history),
            *current_turn(self.request),
        ]

    @property
    def messages(self) -> "tuple[WindowMessage, ...]":
        """Everything that is printed, in order."""
        from reservoir_cli.context.render import json as document
        from reservoir_cli.context.window_message import WindowMessage

        return tuple(map(WindowMessage.from_row, document.rows(self)))

    def to(self, form: str | None = None, *, explain: bool = False) -> str | dict[str, Any]:
        """Render the window in a format, as a text or as a JSON document (a dict).

        :param form: a format of ``reservoir context``; the one asked for by default.
        :param explain: with ``json``, add every candidate and its reason.
        :raises UsageError: there is no such format, or nothing that could be sent.
        """
        chosen = parse_format(form) if form else self.request.format
        if chosen == "json":
            from reservoir_cli.context.render import json as document

            return document.to_json(self, explain=explain)
        turns = replace(self, request=replace(self.request, format=chosen)).turns
        if not (ends_with_a_question(turns) if chosen in PROVIDERS else turns):
            raise UsageError(
                "there is nothing to send: no question, and no history that ends with one",
                hint='give a question: reservoir context "…"',
            )
        if chosen in ("text", "markdown"):
            return text.framed(turns, markdown=chosen == "markdown")
        model = self.request.model
        window = self.budget.window if model else None
        return written(turns, chosen, model, self.max_tokens, window)

    @property
    def max_tokens(self) -> int:
        """How long the answer may be: by the reserve, the model, and what the window leaves."""
        model = find_model(self.request.model) if self.request.model else None
        limit = model.output_limit if model and model.output_limit else self.budget.reserve
        return max(1, min(self.budget.reserve, limit, self.budget.window - self.used))

    @property
    def _from(self) -> str:
        """Where history came from, if that was neither named nor the partition's own instance."""
        instance = self.scope["instance"]
        usual = (self.request.instance, self.request.partition)
        return "" if instance in usual else f" (of {self.scope['partition']}/{instance})"

    def summary(self) -> str:
        """One line about the run, for people."""
        share = 100 * self.used / self.budget.available
        pinned = sum(candidate.tier is Tier.PINNED for candidate in self.kept)
        history = sum(candidate.tier is not Tier.PINNED for candidate in self.selection.history)
        parts = [
            f"{self.meter.mark}{self.used:,} of {self.budget.available:,} tokens ({share:.0f}%)",
            f"{history} recent{self._from}",
            *([f"{pinned} pinned"] if pinned else []),
            f"{len(self.kept) - history - pinned} recalled",
            *([f"{self.excerpts} by excerpts"] if self.excerpts else []),
            f"{len(self.selection.dropped)} dropped",
            *([f"{self.budget.overflow:,} too many"] if self.budget.overfull else []),
            f"reserve {self.budget.reserve:,}",
            *([self.request.model] if self.request.model else []),
        ]
        return " · ".join(parts)


def parse_format(name: str) -> Format:
    """Read a format by its name.

    :raises UsageError: there is no such format.
    """
    if name in FORMATS:
        return cast(Format, name)
    raise unknown_format(name, FORMATS)


def written(
    turns: Sequence[Turn],
    form: Format,
    model: str | None,
    max_tokens: int,
    window: int | None = None,
) -> str | dict[str, Any]:
    """Write turns in a format, without a frame; ``json`` counts and reads as ``text``.

    :param max_tokens: how long the answer may be.
    :param window: tokens the model reads and writes at once, if they are known.
    """
    match form:
        case "text" | "json":
            return text.to_text(turns)
        case "markdown":
            return text.to_markdown(turns)
        case "openai" | "azure":
            return providers.to_openai(turns, model)
        case "ollama":
            return providers.to_ollama(turns, model, window)
        case "anthropic":
            return providers.to_anthropic(turns, model, max(1, max_tokens))
    assert_never(form)


def count_turns(turns: Sequence[Turn], form: Format, meter: Meter) -> int:
    """Tokens of turns in the format they are printed in, 4 more for each message."""
    if not turns:
        return 0
    shown = written(turns, form, None, 1)
    if isinstance(shown, str):
        return meter.count(shown, messages=len(turns))
    return sum(meter.count(each, messages=1) for each in providers.words(shown))


def count_frame(form: Format, meter: Meter) -> int:
    """Count the tokens of the frame, which only texts have."""
    return 0 if form in PROVIDERS else meter.count(wrap("") + "\n\n")


def count_framed(turns: Sequence[Turn], form: Format, meter: Meter) -> int:
    """Count the tokens of a whole text in its frame."""
    return meter.count(text.framed(turns, markdown=form == "markdown"), messages=len(turns))
