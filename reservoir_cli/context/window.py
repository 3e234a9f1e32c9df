"""The finished window: what is in it, what it takes, and what was left out. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reservoir_cli.context.budget import Meter
from reservoir_cli.context.types import Candidate, ContextRequest, Selection, Tier, TokenBudget


@dataclass(frozen=True, slots=True)
class FinishedWindow:
    """What was chosen for a model, inside a budget, before it is written in a format.

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
