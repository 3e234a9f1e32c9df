"""Lay out a window while it is being filled, and track its tokens. Pure.

A kept message is printed either as a turn of history, if it belongs to the unbroken run of the
newest messages, or as a recalled line. The run grows when gaps in it are filled, so a message may
move from one to the other after it was kept.

No answer is printed under another question. History holds whole exchanges only, each reply after
its own question with no other question between; incomplete exchanges are recalled. A recalled
reply follows its own question or ``…``, and a recalled question is followed by its answer or by
the number of the answer that was left out.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reservoir_cli.context.candidate import Candidate
from reservoir_cli.context.exchanges import Exchanges
from reservoir_cli.messages import Role
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


#: If the sums leave fewer tokens than this, count the window as printed.
_RECOUNT_BELOW = 200
#: No more windows are tried once those found too large had this many messages in total: counting a
#: large window is slow.
_MOST_TRIED = 20_000


class Layout(NamedTuple):
    """How kept messages are printed: as recalled lines, as turns, or not at all."""

    recalled: tuple[Candidate, ...]
    history: tuple[Candidate, ...]
    duplicates: tuple[Candidate, ...]


class _Step(NamedTuple):
    """The changes that keeping some messages makes.

    :param run: messages added to the run of the newest, newest first.
    :param new_turns: messages that become history.
    :param new_lines: messages that become a recalled line.
    :param old_lines: recalled lines to remove.
    :param printed_copies: for exchanges with equal texts, the one that is printed.
    :param noted: questions that now name the answer that was left out.
    :param unnoted: questions that no longer do.
    :param days: the change in the number of lines of each day.
    """

    added: Mapping[int, Candidate]
    run: Sequence[Candidate]
    reached: int
    new_turns: Sequence[Candidate]
    new_lines: Sequence[Candidate]
    old_lines: Sequence[Candidate]
    printed_copies: Mapping[int, int]
    noted: set[int]
    unnoted: set[int]
    days: Mapping[str, int]


@dataclass(slots=True)
class Packing:
    """The messages kept so far, and an upper bound of their tokens.

    :param by_age: all messages of history's instance that may be kept, by age.
    :param passed: ages of messages that do not end the run although they are not printed.
    :ivar reasons: why each message was kept.
    :ivar most_running: the most tokens that messages of the running session may take.
    """

    costs: Costs
    exchanges: Exchanges
    by_age: Mapping[int, Candidate]
    passed: set[int]
    reasons: dict[int, str] = field(default_factory=dict)
    most_running: float = math.inf
    _kept: dict[int, Candidate] = field(default_factory=dict)
    #: The age that the run reaches, and the number of its questions.
    _reached: int = 0
    _questions: int = 0
    #: Messages of the run whose question it has not reached, with the number of questions so far.
    _waiting: dict[int, list[tuple[Candidate, int]]] = field(default_factory=dict)
    _in_history: set[int] = field(default_factory=set)
    #: Recalled messages that are printed, by exchange; their number, in total and by day.
    _lines: dict[int, dict[int, Candidate]] = field(default_factory=dict)
    _line_count: int = 0
    _days: Counter[str] = field(default_factory=Counter)
    #: For exchanges with equal texts, the one that is printed.
    _printed_copies: dict[int, int] = field(default_factory=dict)
    #: Recalled questions that name the answer that was left out.
    _noted: set[int] = field(default_factory=set)
    #: Tokens of single messages, by how much their sum may be too high, and of title and days.
    _spent: int = 0
    _excess: int = 0
    _frame: int = 0
    _failed: int = 0

    def has(self, candidate: Candidate) -> bool:
        """Return whether a message is kept."""
        return candidate.message.id in self._kept

    def get(self, candidate: Candidate) -> Candidate | None:
        """Return a message in the form in which it is kept."""
        return self._kept.get(candidate.message.id)

    def room(self, budget: int) -> int:
        """Return an upper bound of the tokens left; exact when few may be left."""
        if self.costs.printed and budget - self._spent < _RECOUNT_BELOW:
            self._recount(self.costs.printed)
        return self._least_room(budget) + self._excess

    def has_room(self, tokens: float, budget: int) -> bool:
        """Return whether more than this many tokens are left."""
        least = self._least_room(budget)
        if least <= tokens < least + self._excess and self.costs.printed:
            self._recount(self.costs.printed)
            least = self._least_room(budget)
        return least > tokens

    def _least_room(self, budget: int) -> int:
        return budget - self._spent - self._frame

    def could_add(self, members: Sequence[Candidate], budget: int) -> bool:
        """Return whether messages would fit if nothing else were kept."""
        if self._upper_bound(members) <= budget:
            return True
        empty = Packing(self.costs, self.exchanges, self.by_age, self.passed)
        return empty.add(members, budget, "")

    def add(self, members: Sequence[Candidate], budget: int, reason: str) -> bool:
        """Keep messages if all of them fit; otherwise change nothing."""
        if self.is_hopeless(members, budget):
            return False
        step = self._plan_step({candidate.message.id: candidate for candidate in members})
        if not self._fits(step, budget):
            return False
        self._apply(step)
        self.reasons.update((number, reason) for number in step.added)
        return True

    def exceeds_share(self, members: Sequence[Candidate], tokens: float | None = None) -> bool:
        """Return whether the running session would take more than its share with these messages.

        :param tokens: of the part of a long message that is added; ``None`` for whole messages.
        """
        if math.isinf(self.most_running) or not any(member.running for member in members):
            return False
        running = [candidate for candidate in self._kept.values() if candidate.running]
        if tokens is None:
            tokens = sum(map(self.costs.recalled, members))
        return sum(map(self.costs.recalled, running)) + tokens > self.most_running

    def is_hopeless(self, members: Sequence[Candidate], budget: int) -> bool:
        """Return whether messages that only add recalled lines are certainly too large.

        When little room is left, most are, and this check is ten times as fast as a trial.
        """
        room, costs = self._least_room(budget) + self._excess, self.costs
        for candidate in members:
            if candidate.age is not None:
                return False
            room -= costs.recalled(candidate) - costs.excess(candidate)
        if room >= 0:
            return False
        exchange = self._exchange_of(members[0])
        if exchange in self._lines or self._first_copy(members[0]) in self._printed_copies:
            return False
        return len(members) == 1 or all(self._exchange_of(row) == exchange for row in members)

    def lay_out(self) -> Layout:
        """Return the layout of the window, with answers marked off from other questions."""
        return _lay_out(self._kept, self._in_history, self.exchanges)

    def _plan_step(self, added: Mapping[int, Candidate]) -> _Step:
        run, reached = self._extend_run(added)
        new_turns = self._find_new_turns(run)
        printed_copies = {
            self._first_copy(candidate): self._exchange_of(candidate) for candidate in new_turns
        }
        old_lines = [
            line
            for exchange in {
                *printed_copies.values(),
                *map(self._printed_copies.get, printed_copies),
            }
            for line in self._lines.get(exchange or 0, {}).values()
        ]
        turn_ids = ids(new_turns)
        new_lines = []
        for number, candidate in added.items():
            first_copy, exchange = self._first_copy(candidate), self._exchange_of(candidate)
            printed_exchange = printed_copies.setdefault(
                first_copy, self._printed_copies.get(first_copy, exchange)
            )
            if number not in turn_ids and printed_exchange == exchange:
                new_lines.append(candidate)
            # An excerpt that grows or becomes whole replaces its earlier line.
            earlier = self._lines.get(exchange, {}).get(number)
            if earlier and earlier not in old_lines:
                old_lines.append(earlier)
        days: dict[str, int] = {}
        for lines, change in ((new_lines, 1), (old_lines, -1)):
            for day in map(_day, lines):
                days[day] = days.get(day, 0) + change
        noted, unnoted = self._answers_left_out(added, new_lines, old_lines)
        return _Step(
            added,
            run,
            reached,
            new_turns,
            new_lines,
            old_lines,
            printed_copies,
            noted,
            unnoted,
            days,
        )

    def _answers_left_out(
        self,
        added: Mapping[int, Candidate],
        new_lines: Iterable[Candidate],
        old_lines: Iterable[Candidate],
    ) -> tuple[set[int], set[int]]:
        """Return the questions that now need a line on their answer, and those that do not."""
        answer_of = self.exchanges.answer_of
        noted = {
            line.message.id
            for line in new_lines
            if (answer := answer_of.get(line.message.id)) is not None
            and answer not in added
            and answer not in self._kept
        }
        if not self._noted:
            return noted, set()
        answered = {self.exchanges.exchange_of[number] for number in added}
        answered = {question for question in answered if answer_of.get(question) in added}
        return noted, self._noted & (answered | ids(old_lines))

    def _fits(self, step: _Step, budget: int) -> bool:
        """Return whether the window fits the budget after a step, by sums while they suffice."""
        excess = sum(map(self.costs.excess, step.added.values()))
        total = self._total(step)
        if total <= budget:
            return True
        if self.costs.printed is None or total - self._excess - excess > budget:
            return False
        self._recount(self.costs.printed)
        total = self._total(step)
        if total <= budget:
            return True
        tried = self._failed * len(self._kept)
        if total - excess > budget or self._failed >= self.costs.trials or tried >= _MOST_TRIED:
            return False
        kept = {**self._kept, **step.added}
        layout = _lay_out(kept, self._in_history | ids(step.new_turns), self.exchanges)
        fits = self.costs.printed(layout.recalled, layout.history, budget) <= budget
        self._failed += not fits
        return fits

    def _recount(self, printed: Printed) -> None:
        """Replace the running sum by an exact count of the messages kept."""
        if self._excess:
            layout = self.lay_out()
            counted = printed(layout.recalled, layout.history, math.inf)
            self._spent = counted - self._frame
            self._excess = 0

    def _total(self, step: _Step) -> int:
        """Return an upper bound of the window's tokens after a step."""
        days = len(self._days) + sum(
            (self._days[day] + more > 0) - (self._days[day] > 0) for day, more in step.days.items()
        )
        lines = self._line_count + len(step.new_lines) - len(step.old_lines)
        return self._spent + self._cost(step) + self._framing(days, lines)

    def _framing(self, days: int, lines: int) -> int:
        return days * self.costs.day + (self.costs.recalled_title if lines else 0)

    def _upper_bound(self, members: Sequence[Candidate]) -> int:
        """Return the most tokens that messages may take in an empty window, however printed."""
        costs, tokens = self.costs, self.costs.recalled_title
        for candidate in members:
            most = costs.recalled(candidate)
            if candidate.age is not None:  # without one it is never a turn
                most = max(most, costs.history(candidate))
            answer = self.exchanges.answer_of.get(candidate.message.id)
            tokens += costs.day + most + (0 if answer is None else costs.left_out(answer))
        return tokens

    def _cost(self, step: _Step) -> int:
        answers = self.exchanges.answer_of
        return (
            sum(map(self.costs.history, step.new_turns))
            + sum(map(self.costs.recalled, step.new_lines))
            - sum(map(self.costs.recalled, step.old_lines))
            + sum(self.costs.left_out(answers[question]) for question in step.noted)
            - sum(self.costs.left_out(answers[question]) for question in step.unnoted)
        )

    def _apply(self, step: _Step) -> None:
        self._spent += self._cost(step)
        self._excess += sum(map(self.costs.excess, step.added.values()))
        self._failed = 0
        self._kept |= step.added
        self._grow_run(step.run, step.reached)
        self._in_history |= ids(step.new_turns)
        for line in step.old_lines:
            del self._lines[self._exchange_of(line)][line.message.id]
        for line in step.new_lines:
            self._lines.setdefault(self._exchange_of(line), {})[line.message.id] = line
        self._line_count += len(step.new_lines) - len(step.old_lines)
        for day, more in step.days.items():
            self._days[day] += more
            if not self._days[day]:
                del self._days[day]
        self._frame = self._framing(len(self._days), self._line_count)
        self._printed_copies |= step.printed_copies
        self._noted -= step.unnoted
        self._noted |= step.noted

    def _extend_run(self, added: Mapping[int, Candidate]) -> tuple[list[Candidate], int]:
        """Return the messages added to the run, newest first, and the age it then reaches."""
        gained: list[Candidate] = []
        age = self._reached
        while True:
            candidate = self.by_age.get(age)
            number = candidate.message.id if candidate else 0
            kept = added.get(number) or self._kept.get(number)
            if kept and kept.spans is not None:
                return gained, age
            if kept and not is_system(kept):
                gained.append(kept)
            elif not kept and age not in self.passed:
                return gained, age
            age += 1

    def _find_new_turns(self, run: Sequence[Candidate]) -> list[Candidate]:
        """Return the exchanges that become history because the grown run holds them whole."""
        new_turns: list[Candidate] = []
        questions = self._questions
        waiting: dict[int, list[tuple[Candidate, int]]] = {}
        for candidate in run:
            exchange = self._exchange_of(candidate)
            if not _is_question(candidate):
                waiting.setdefault(exchange, []).append((candidate, questions))
                continue
            replies = [*self._waiting.get(exchange, ()), *waiting.get(exchange, ())]
            if self._is_whole(exchange, replies, questions):
                new_turns += [candidate, *(reply for reply, _ in replies)]
            questions += 1
        return new_turns

    def _is_whole(
        self, question: int, replies: Sequence[tuple[Candidate, int]], questions: int
    ) -> bool:
        """Return whether an exchange has its answer and no other question in between.

        A tool result is printed after its call, wherever it was stored.
        """
        answer = self.exchanges.answer_of.get(question)
        if answer is not None and answer not in {reply.message.id for reply, _ in replies}:
            return False
        return all(
            before == questions or reply.message.role is Role.TOOL for reply, before in replies
        )

    def _grow_run(self, run: Sequence[Candidate], reached: int) -> None:
        for candidate in run:
            if _is_question(candidate):
                self._questions += 1
                self._waiting.pop(self._exchange_of(candidate), None)
            else:
                waiting = self._waiting.setdefault(self._exchange_of(candidate), [])
                waiting.append((candidate, self._questions))
        self._reached = reached

    def _exchange_of(self, candidate: Candidate) -> int:
        return self.exchanges.exchange_of[candidate.message.id]

    def _first_copy(self, candidate: Candidate) -> int:
        """Return the first exchange with the same texts as the candidate's."""
        exchange = self._exchange_of(candidate)
        return self.exchanges.copy_of.get(exchange, exchange)


def _lay_out(kept: Mapping[int, Candidate], in_history: set[int], exchanges: Exchanges) -> Layout:
    """Lay out kept messages; of exchanges with equal texts, only the first kept is printed."""

    def order(candidate: Candidate) -> tuple[float, int, int]:
        number = candidate.message.id
        caller, call = exchanges.call_of.get(number, (number, -1))
        return (*by_time(kept[caller]), call)

    history = sorted((kept[number] for number in in_history), key=order)
    copies = exchanges.copy_of
    printed_exchanges = {}
    for number in in_history:
        exchange = exchanges.exchange_of[number]
        printed_exchanges[copies.get(exchange, exchange)] = 0
    recalled: list[Candidate] = []
    duplicates: list[Candidate] = []
    for number, candidate in kept.items():
        if number in in_history:
            continue
        exchange = exchanges.exchange_of[number]
        first = printed_exchanges.setdefault(copies.get(exchange, exchange), exchange)
        (recalled if first == exchange else duplicates).append(candidate)
    recalled.sort(key=by_time)
    return Layout(_mark_gaps(recalled, exchanges), tuple(history), tuple(duplicates))


def _mark_gaps(recalled: Sequence[Candidate], exchanges: Exchanges) -> tuple[Candidate, ...]:
    """Mark recalled messages so that no answer appears under another question."""
    printed_ids = ids(recalled)
    question: int | None = None
    marked = []
    for candidate in recalled:
        number = candidate.message.id
        exchange = exchanges.exchange_of[number]
        if _is_question(candidate):
            question = exchange
            answer = exchanges.answer_of.get(number)
            if answer is not None and answer not in printed_ids:
                candidate = replace(candidate, left_out=answer)
        elif not is_system(candidate) and question not in (None, exchange):
            candidate, question = replace(candidate, after_gap=True), None
        marked.append(candidate)
    return tuple(marked)


def by_time(candidate: Candidate) -> tuple[float, int]:
    """Return a key that sorts candidates by time, then id."""
    return candidate.message.created_at.timestamp(), candidate.message.id


def ids(candidates: Iterable[Candidate]) -> set[int]:
    """Return the ids of candidates."""
    return {candidate.message.id for candidate in candidates}


def is_system(candidate: Candidate) -> bool:
    """Return whether a message is an old system prompt, which is never used as an instruction."""
    return candidate.message.role is Role.SYSTEM


def _is_question(candidate: Candidate) -> bool:
    return candidate.message.role is Role.USER


def _day(candidate: Candidate) -> str:
    return local_day(candidate.message.created_at)
