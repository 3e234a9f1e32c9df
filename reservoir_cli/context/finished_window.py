"""The finished window: its messages, its tokens, and the messages left out. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reservoir_cli.context.budget import Meter, TokenBudget
from reservoir_cli.context.candidate import Candidate, Selection, Tier
from reservoir_cli.context.request import ContextRequest


@dataclass(frozen=True, slots=True)
class FinishedWindow:
    """The messages chosen for a model, within a budget, before they are rendered.

    :param scope: where history comes from, and where messages are recalled from.
    :param history_used: tokens of the recalled messages and the history as printed.
    :param pieces_left_out: how many pieces of knowledge and episodes exceeded their caps.
    :param notes: user-facing notes about this window.
    :param relevance: how well the question fits the best message of the scope.
    :param floor: the relevance below which nothing is recalled.
    :param nothing_found: whether the relevance is below the floor.
    :param hints: user-facing suggestions.
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
        """How many messages of the scope filling left out because the budget was spent."""
        passed_over = sum(drop.for_room for drop in self.selection.passed_over)
        return self.selection.not_reached + passed_over

    @property
    def truncations(self) -> int:
        """How many messages and pieces were left out or cut for lack of room.

        A window whose sections and question alone exceed the budget counts as one more.
        """
        dropped = sum(drop.for_room for drop in self.selection.dropped)
        cut = sum(candidate.cut for candidate in self.kept)
        return dropped + self.pieces_left_out + cut + self.budget.overfull

    @property
    def excerpts(self) -> int:
        """How many messages are printed as excerpts."""
        return sum(candidate.spans is not None for candidate in self.kept)

    @property
    def truncated(self) -> bool:
        """Whether anything was left out or cut for lack of room."""
        return self.truncations > 0

    @property
    def _history_source(self) -> str:
        """The instance of history, if it is neither the requested nor the partition's own."""
        instance = self.scope["instance"]
        usual = (self.request.instance, self.request.partition)
        return "" if instance in usual else f" (of {self.scope['partition']}/{instance})"

    def summary(self) -> str:
        """Return a one-line summary of the run for users."""
        share = 100 * self.used / self.budget.available
        pinned = sum(candidate.tier is Tier.PINNED for candidate in self.kept)
        history = sum(candidate.tier is not Tier.PINNED for candidate in self.selection.history)
        parts = [
            f"{self.meter.mark}{self.used:,} of {self.budget.available:,} tokens ({share:.0f}%)",
            f"{history} recent{self._history_source}",
            *([f"{pinned} pinned"] if pinned else []),
            f"{len(self.kept) - history - pinned} recalled",
            *([f"{self.excerpts} by excerpts"] if self.excerpts else []),
            f"{len(self.selection.dropped)} dropped",
            *([f"{self.budget.overflow:,} too many"] if self.budget.overfull else []),
            f"reserve {self.budget.reserve:,}",
            *([self.request.model] if self.request.model else []),
        ]
        return " · ".join(parts)
