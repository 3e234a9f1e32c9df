"""Select messages from the pool until the printed selection fits the budget."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from reservoir_cli.context.budget import Meter, TokenBudget
from reservoir_cli.context.candidate import Candidate, Selection
from reservoir_cli.context.choose import SelectionOptions, cut_after_last_question, select
from reservoir_cli.context.costs import build_costs, count_printed
from reservoir_cli.context.finished_window import all_turns
from reservoir_cli.context.layout import by_time, ids
from reservoir_cli.context.message_groups import group_tool_calls
from reservoir_cli.context.render.formats import render
from reservoir_cli.context.render.quote_recalled import Quote, cache_quotes
from reservoir_cli.context.request import PROVIDERS, ContextRequest
from reservoir_cli.context.window_builder import Costs
from reservoir_cli.messages import Role
from reservoir_cli.tokens import AnthropicCounter

#: Requests to a provider that counts, the share of the budget to aim at, and the one that suffices.
_MOST_REQUESTS, _TARGET_SHARE, _ENOUGH_SHARE = 3, 0.98, 0.95


@dataclass(frozen=True, repr=False, eq=False)
class Chooser:
    """Selects from one pool, counting tokens as they are printed."""

    request: ContextRequest
    pool: Sequence[Candidate]
    budget: TokenBudget
    options: SelectionOptions
    meter: Meter
    not_reached: int
    passed: set[int]

    def choose(self) -> tuple[Selection, int, tuple[str, ...]]:
        """Return the selection, the tokens of the printed window, and notes for the user."""
        if isinstance(self.meter.counter, AnthropicCounter):
            return self._select_by_requests(self.meter.counter)
        return (*self._select_by_sums(self.budget.history), ())

    def add_excerpt_note(
        self, request: ContextRequest, selection: Selection, used: int
    ) -> tuple[ContextRequest, int]:
        """Add the line that explains excerpts if it fits, and count again."""
        counted_here = not isinstance(self.meter.counter, AnthropicCounter)
        if not counted_here or all(message.spans is None for message in selection.recalled):
            return request, used
        with_note = request._replace(excerpts_explained=True)
        tokens = self.count_printed(with_note, selection)
        return (with_note, tokens) if tokens <= self.budget.history else (request, used)

    @cached_property
    def _costs(self) -> Costs:
        """Count each message once, however often messages are selected."""
        return build_costs(self.request, self.budget, self.meter, self._quote)

    @cached_property
    def _quote(self) -> Quote:
        """Quote each message once, however often the window is counted."""
        return cache_quotes(numbered=self.request.recall_only)

    def _select_by_sums(self, room: int) -> tuple[Selection, int]:
        """Select by sums of single messages, then with less room if what is printed exceeds it."""
        target = room
        while True:
            selection = self._select_within(room)
            used = self.count_printed(self.request, selection)
            if used <= target or room <= 0:
                return selection, used
            room = max(0, room - (used - target))

    def count_printed(self, request: ContextRequest, selection: Selection) -> int:
        """Count the tokens of a selection as it is printed."""
        recalled, history = selection.recalled, selection.history
        return count_printed(request, recalled, history, self.budget, self.meter, self._quote)

    def _select_within(self, room: int) -> Selection:
        selection = select(
            self.pool,
            query=self.request.query,
            budget=room,
            costs=self._costs,
            options=self.options,
            not_reached=self.not_reached,
            passed=self.passed,
        )
        if self.request.format in PROVIDERS and not self.request.query.strip():
            selection = cut_after_last_question(selection)
        return selection

    def _select_by_requests(
        self, counter: AnthropicCounter
    ) -> tuple[Selection, int, tuple[str, ...]]:
        """Select by the provider's counts; each one corrects the local estimate."""
        fixed = sum(self.budget.sections.values())
        limit = fixed + self.budget.history
        selection, estimate = self._select_by_sums(self.budget.history)
        attempts: list[tuple[int, Selection]] = []
        points = [(0.0, 0.0)]
        while True:
            # The provider counts nothing smaller, and refuses a request without messages.
            body = render(all_turns(self.request, selection), "anthropic", None, 1)
            assert isinstance(body, dict)
            counted = counter.count_request(body) if body["messages"] else fixed + estimate
            attempts.append((counted, selection))
            if len(attempts) == _MOST_REQUESTS or self._is_close_enough(counted, limit, selection):
                break
            points.append((float(counted), float(fixed + estimate)))
            room = round(_interpolate(points, _TARGET_SHARE * limit)) - fixed
            selection, estimate = self._select_by_sums(max(0, room))
        fitting = [attempt for attempt in attempts if attempt[0] <= limit]
        best = max if fitting else min
        counted, selection = best(fitting or attempts, key=lambda attempt: attempt[0])
        excess = f"the provider counts {counted:,} tokens, {counted - limit:,} more than the budget"
        return selection, max(0, counted - fixed), (excess,) if counted > limit else ()

    def _is_close_enough(self, counted: int, limit: int, selection: Selection) -> bool:
        if counted > limit:
            return not (selection.recalled or selection.history)
        everything = not self.not_reached and not any(_left_out_for_room(selection))
        return everything or counted >= _ENOUGH_SHARE * limit

    def note_best_left_out(self, selection: Selection) -> tuple[str, ...]:
        """Return a note on the best match if none of it fits, with what it would add if printed."""
        best = max(_left_out_for_room(selection), key=_rank, default=None)
        best_kept = max(map(_rank, (*selection.recalled, *selection.history)), default=(0.0, 0))
        if best is None or best.scores.similarity <= 0 or _rank(best) < best_kept:
            return ()
        together = self._together(best)
        used = self.count_printed(self.request, selection)
        printed = {candidate.message.id for candidate in (*selection.recalled, *selection.history)}
        missing = [member for member in together if member.message.id not in printed]
        with_best = sorted((*selection.recalled, *missing), key=by_time)
        whole = selection._replace(recalled=tuple(with_best))
        tokens = self.count_printed(self.request, whole) - used
        partner = "call" if best.message.role is Role.TOOL else "results"
        words = f" with its {partner}" if len(together) > 1 else ""
        behind = self.options.order == "tiers" and tokens <= self.budget.history - used
        why = "comes after a message that does not fit" if behind else "does not fit"
        return (f"the best match, #{best.message.id}{words} ({tokens:,} tokens), {why}",)

    def _together(self, candidate: Candidate) -> tuple[Candidate, ...]:
        """Return a message with its results, or with its call and all results of that."""
        groups, _ = group_tool_calls(sorted(self.pool, key=by_time))
        number = candidate.message.id
        members = (group.members for group in groups if number in ids(group.members))
        return next(members, (candidate,))


def _left_out_for_room(selection: Selection) -> Iterator[Candidate]:
    left_out = (*selection.dropped, *selection.passed_over)
    return (drop.candidate for drop in left_out if drop.for_room)


def _rank(candidate: Candidate) -> tuple[float, int]:
    return candidate.scores.priority, candidate.message.id


def _interpolate(points: Sequence[tuple[float, float]], aim: float) -> float:
    """Return the local estimate at which the provider would count this many tokens.

    :param points: the provider's count and the local estimate of each window, starting at (0, 0).
    """
    below = max(point for point in points if point[0] <= aim)
    above = min((point for point in points if point[0] > aim), default=None)
    if above is None:
        return below[1] * aim / below[0] if below[0] else aim
    share = (aim - below[0]) / (above[0] - below[0])
    return below[1] + share * (above[1] - below[1])
