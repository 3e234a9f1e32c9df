"""Fill a window, and track its tokens. Pure.

The counts of single messages add up to an upper bound. Only when that does not fit is the window
laid out and counted as it is printed.
"""

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from reservoir_cli.context.candidate import Candidate
from reservoir_cli.context.layout import Exchanges, Layout, find_run, lay_out
from reservoir_cli.util.clock import local_day

#: Counts the tokens of recalled messages and history; exact up to a limit.
Printed = Callable[[Sequence[Candidate], Sequence[Candidate], float], int]


class Costs(NamedTuple):
    """Functions and constants that give tokens as printed, all factors included.

    :param recalled: tokens of a message as a recalled line, with the ``…`` that a reply may need.
    :param history: tokens of a message as a turn.
    :param day: tokens of the date line above the recalled messages of a day.
    :param recalled_title: tokens paid once if anything is recalled.
    :param printed: counts recalled messages and history together as they are printed; exact up to
        the given limit. The other counts add up to at least this and are cheaper; without it they
        decide alone.
    :param left_out: tokens of the line that names an answer that was left out, by its id.
    :param excess: by how much the counts of a message may exceed what it adds to the printed count.
    :param trials: how many windows in a row may be counted as printed and found too large.
    """

    recalled: Callable[[Candidate], int]
    history: Callable[[Candidate], int]
    day: int
    recalled_title: int
    printed: Printed | None = None
    left_out: Callable[[int], int] = lambda _: 0
    excess: Callable[[Candidate], int] = lambda _: 40
    trials: int = 32


_RECOUNT_BELOW = 200  # if the sums leave fewer tokens than this, count the window as printed
_MOST_TRIED = 20_000  # messages of all windows found too large, as counting a large one is slow


@dataclass(slots=True, repr=False, eq=False)
class WindowBuilder:
    """The messages kept so far in their printed form, by id, and an upper bound of their tokens."""

    costs: Costs
    exchanges: Exchanges
    by_age: Mapping[int, Candidate]  # all messages of history's instance that may be kept, by age
    passed: Set[int]  # ages of messages that do not end the run although they are not printed
    kept: dict[int, Candidate] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    most_running: float = math.inf  # the most tokens that messages of the running session may take
    #: An upper bound of the tokens, by how much it may be too high, and by how much it may grow: a
    #: title if nothing is recalled yet, recalled lines that become turns.
    _spent: int = 0
    _excess: int = 0
    _growth: int = 0
    #: Days that have a line, and exchanges, each by its first copy.
    _days: set[str] = field(default_factory=set)
    _exchanges: set[int] = field(default_factory=set)
    _failed: int = 0

    def __post_init__(self) -> None:
        self._growth = self.costs.recalled_title

    def room(self, budget: int) -> int:
        """Return an upper bound of the tokens left; exact when few may be left."""
        if budget - self._spent < _RECOUNT_BELOW:
            self._recount()
        return budget - self._spent + self._excess

    def has_room(self, tokens: float, budget: int) -> bool:
        """Return whether more than this many tokens are left."""
        if budget - self._spent <= tokens < budget - self._spent + self._excess:
            self._recount()
        return budget - self._spent > tokens

    def could_add(self, members: Sequence[Candidate], budget: int) -> bool:
        """Return whether messages would fit if nothing else were kept."""
        empty = WindowBuilder(self.costs, self.exchanges, self.by_age, self.passed)
        fits = empty._growth + empty._most_tokens(members) <= budget
        return fits or empty.add(members, budget, "")

    def add(self, members: Sequence[Candidate], budget: int, reason: str) -> bool:
        """Keep messages if all of them fit; otherwise change nothing."""
        least = self._least_tokens(members)
        if self._spent - self._excess + least > budget:
            return False
        added = {candidate.message.id: candidate for candidate in members}
        most = self._most_tokens(members)
        if self._spent + self._growth + most > budget:
            self._recount()
            most = self._most_tokens(members)
        if self._spent + self._growth + most <= budget:
            self._spent += most
            self._excess += most - least
            self.kept |= added
            self._days |= set(map(_day, members))
        elif not self._keep_as_printed(added, budget):
            return False
        self._failed = 0
        self._exchanges |= {self._first_copy(candidate) for candidate in members}
        self.reasons.update((number, reason) for number in added)
        return True

    def exceeds_share(self, members: Sequence[Candidate], tokens: float | None = None) -> bool:
        """Return whether the running session takes too much with messages, or tokens of a part."""
        if math.isinf(self.most_running) or not any(member.running for member in members):
            return False
        running = [candidate for candidate in self.kept.values() if candidate.running]
        if tokens is None:
            tokens = sum(map(self.costs.recalled, members))
        return sum(map(self.costs.recalled, running)) + tokens > self.most_running

    def is_hopeless(self, members: Sequence[Candidate], budget: int) -> bool:
        """Return whether messages are certainly too large: ten times as fast as a trial."""
        return self._spent - self._excess + self._least_tokens(members) > budget

    def lay_out(self) -> Layout:
        """Return the layout of the window, with answers marked off from other questions."""
        return self._lay_out(self.kept)

    def _lay_out(self, candidates: Mapping[int, Candidate]) -> Layout:
        return lay_out(candidates, find_run(candidates, self.by_age, self.passed), self.exchanges)

    def _most_tokens(self, members: Sequence[Candidate]) -> int:
        costs, answers = self.costs, self.exchanges.answer_of
        tokens = len(set(map(_day, members)) - self._days) * costs.day
        for candidate in members:
            earlier = self.kept.get(candidate.message.id)
            tokens += max(self._forms(candidate))
            if earlier:
                tokens -= min(self._forms(earlier))
            elif (answer := answers.get(candidate.message.id)) is not None:
                tokens += costs.left_out(answer)
        return tokens

    def _least_tokens(self, members: Sequence[Candidate]) -> int:
        costs, tokens = self.costs, 0
        for candidate in members:
            earlier = self.kept.get(candidate.message.id)
            if earlier:
                tokens += min(self._forms(candidate)) - max(self._forms(earlier))
            elif self._first_copy(candidate) not in self._exchanges:
                tokens += min(self._forms(candidate))
            else:  # it may be a copy, or replace a line that says that it was left out
                continue
            tokens -= costs.excess(candidate)
        return tokens

    def _forms(self, candidate: Candidate) -> tuple[int, ...]:
        """Return the tokens of a message as a recalled line, and as a turn if it may become one."""
        recalled = self.costs.recalled(candidate)
        if candidate.age is None or candidate.spans is not None:
            return (recalled,)
        return recalled, self.costs.history(candidate)

    def _keep_as_printed(self, added: Mapping[int, Candidate], budget: int) -> bool:
        tried = self._failed * len(self.kept)
        if self._failed >= self.costs.trials or tried >= _MOST_TRIED:
            return False
        candidates = {**self.kept, **added}
        layout = self._lay_out(candidates)
        tokens = self._count(layout, budget)
        if tokens > budget:
            self._failed += 1
            return False
        self.kept = candidates
        self._note_count(tokens, layout)
        return True

    def _recount(self) -> None:
        """Replace the running sum by an exact count of the messages kept."""
        if self._excess:
            layout = self.lay_out()
            self._note_count(self._count(layout, math.inf), layout)

    def _note_count(self, tokens: int, layout: Layout) -> None:
        turning = sum(max(forms) - forms[0] for forms in map(self._forms, layout.recalled))
        printed = {candidate.message.id for candidate in (*layout.recalled, *layout.history)}
        # Copies are left out where they would be recalled; as turns, all are printed.
        copies = [row for number, row in self.kept.items() if number not in printed]
        turning += sum(max(forms) for forms in map(self._forms, copies) if len(forms) > 1)
        self._spent, self._excess = tokens, 0
        self._growth = turning + (0 if layout.recalled else self.costs.recalled_title)
        self._days = set(map(_day, layout.recalled))

    def _count(self, layout: Layout, limit: float) -> int:
        """Return the tokens of the window as printed; exact up to a limit."""
        costs, (recalled, history, _) = self.costs, layout
        if costs.printed:
            return costs.printed(recalled, history, limit)
        return (
            sum(map(costs.recalled, recalled))
            + sum(map(costs.history, history))
            + sum(costs.left_out(row.left_out) for row in recalled if row.left_out is not None)
            + len(set(map(_day, recalled))) * costs.day
            + (costs.recalled_title if recalled else 0)
        )

    def _first_copy(self, candidate: Candidate) -> int:
        exchange = self.exchanges.exchange_of[candidate.message.id]
        return self.exchanges.copy_of.get(exchange, exchange)


def _day(candidate: Candidate) -> str:
    return local_day(candidate.message.created_at)
