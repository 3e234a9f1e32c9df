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

from reservoir_cli.context.exchanges import Exchanges
from reservoir_cli.context.types import Candidate
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
    :param trials: how many windows in a row may be counted as printed and found too large.
    """

    recalled: Callable[[Candidate], int]
    history: Callable[[Candidate], int]
    day: int
    recalled_title: int
    printed: Printed | None = None
    left_out: Callable[[int], int] = lambda _: 0
    trials: int = 32


#: The most by which the sum may exceed the printed count, for each message.
_EXCESS = 40
#: If the sums leave fewer tokens than this, count the window as printed.
_LITTLE = 200
#: How many messages the windows that are found too large may hold together: counting a large
#: window is slow.
_TRIED = 20_000


class Layout(NamedTuple):
    """How kept messages are printed: as recalled lines, as turns, or not at all."""

    recalled: tuple[Candidate, ...]
    history: tuple[Candidate, ...]
    duplicates: tuple[Candidate, ...]


class _Step(NamedTuple):
    """The changes that keeping some messages makes.

    :param run: messages added to the run of the newest, newest first.
    :param turned: messages that become history.
    :param lines: messages that become a recalled line.
    :param gone: recalled lines to remove.
    :param shown: for exchanges with equal texts, the one that is printed.
    :param told: questions that now name the answer that was left out.
    :param untold: questions that no longer do.
    :param days: the change in the number of lines of each day.
    """

    fresh: Mapping[int, Candidate]
    run: Sequence[Candidate]
    reached: int
    turned: Sequence[Candidate]
    lines: Sequence[Candidate]
    gone: Sequence[Candidate]
    shown: Mapping[int, int]
    told: set[int]
    untold: set[int]
    days: Mapping[str, int]


@dataclass(slots=True)
class Packing:
    """The messages kept so far, and an upper bound of their tokens.

    :param by_age: all messages of history's instance that may be kept, by age.
    :param passed: ages of messages that do not end the run although they are not printed.
    :ivar reasons: why each message was kept.
    """

    costs: Costs
    exchanges: Exchanges
    by_age: Mapping[int, Candidate]
    passed: set[int]
    reasons: dict[int, str] = field(default_factory=dict)
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
    _shown: dict[int, int] = field(default_factory=dict)
    #: Recalled questions that name the answer that was left out.
    _told: set[int] = field(default_factory=set)
    #: Tokens of single messages, and by how much their sum may be too high.
    _spent: int = 0
    _excess: int = 0
    _failed: int = 0

    def has(self, candidate: Candidate) -> bool:
        """Return whether a message is kept."""
        return candidate.message.id in self._kept

    def kept(self, candidate: Candidate) -> Candidate | None:
        """Return a message in the form in which it is kept."""
        return self._kept.get(candidate.message.id)

    def room(self, budget: int) -> int:
        """Return an upper bound of the tokens left; exact when few may be left."""
        if self.costs.printed and budget - self._spent < _LITTLE:
            self._recount(self.costs.printed)
        framing = self._framing(len(self._days), self._line_count)
        return budget - self._spent - framing + self._excess

    def could_add(self, members: Sequence[Candidate], budget: int) -> bool:
        """Return whether messages would fit if nothing else were kept."""
        if self._at_most(members) <= budget:
            return True
        empty = Packing(self.costs, self.exchanges, self.by_age, self.passed)
        return empty.add(members, budget, "")

    def add(self, members: Sequence[Candidate], budget: int, reason: str) -> bool:
        """Keep messages if all of them fit; otherwise change nothing."""
        if self._is_hopeless(members, budget):
            return False
        step = self._step({each.message.id: each for each in members})
        if not self._fits(step, budget):
            return False
        self._take(step)
        self.reasons.update((number, reason) for number in step.fresh)
        return True

    def _is_hopeless(self, members: Sequence[Candidate], budget: int) -> bool:
        """Return whether messages that only add recalled lines are certainly too large.

        When little room is left, most are, and this check is ten times as fast as a trial.
        """
        if any(message.age is not None for message in members):
            return False
        exchanges = {self._exchange(message) for message in members}
        saying = self._saying(members[0])
        if len(exchanges) > 1 or saying in self._shown or exchanges & self._lines.keys():
            return False
        least = sum(map(self.costs.recalled, members)) - _EXCESS * len(members) - self._excess
        spent = self._spent + self._framing(len(self._days), self._line_count)
        return spent + least > budget

    def lay_out(self) -> Layout:
        """Return the layout of the window, with answers marked off from other questions."""
        return _laid_out(self._kept, self._in_history, self.exchanges)

    def _step(self, fresh: Mapping[int, Candidate]) -> _Step:
        run, reached = self._run_grown_by(fresh)
        turned = self._turned_by(run)
        shown = {self._saying(each): self._exchange(each) for each in turned}
        gone = [
            line
            for exchange in {*shown.values(), *(self._shown.get(saying) for saying in shown)}
            for line in self._lines.get(exchange or 0, {}).values()
        ]
        turns = ids(turned)
        lines = []
        for number, each in fresh.items():
            saying, exchange = self._saying(each), self._exchange(each)
            printed = shown.setdefault(saying, self._shown.get(saying, exchange))
            if number not in turns and printed == exchange:
                lines.append(each)
            # An excerpt that grows or becomes whole replaces its earlier line.
            before = self._lines.get(exchange, {}).get(number)
            if before and before not in gone:
                gone.append(before)
        days = Counter(map(_day, lines))
        days.subtract(map(_day, gone))
        told, untold = self._answers_left_out(fresh, lines, gone)
        return _Step(fresh, run, reached, turned, lines, gone, shown, told, untold, days)

    def _answers_left_out(
        self, fresh: Mapping[int, Candidate], lines: Iterable[Candidate], gone: Iterable[Candidate]
    ) -> tuple[set[int], set[int]]:
        """Return the questions that now need a line on their answer, and those that do not."""
        answer_of = self.exchanges.answer_of
        told = {
            number
            for number in ids(lines)
            if number in answer_of
            and answer_of[number] not in fresh
            and answer_of[number] not in self._kept
        }
        answered = {self.exchanges.exchange_of[number] for number in fresh}
        answered = {each for each in answered if answer_of.get(each) in fresh}
        return told, self._told & (answered | ids(gone))

    def _fits(self, step: _Step, budget: int) -> bool:
        """Return whether the window fits the budget after a step, by sums while they suffice."""
        unsure = _EXCESS * len(step.fresh)
        total = self._total(step)
        if total <= budget:
            return True
        if self.costs.printed is None or total - self._excess - unsure > budget:
            return False
        self._recount(self.costs.printed)
        total = self._total(step)
        if total <= budget:
            return True
        tried = self._failed * len(self._kept)
        if total - unsure > budget or self._failed >= self.costs.trials or tried >= _TRIED:
            return False
        kept = {**self._kept, **step.fresh}
        layout = _laid_out(kept, self._in_history | ids(step.turned), self.exchanges)
        fits = self.costs.printed(layout.recalled, layout.history, budget) <= budget
        self._failed += not fits
        return fits

    def _recount(self, printed: Printed) -> None:
        """Replace the running sum by an exact count of the messages kept."""
        if self._excess:
            layout = self.lay_out()
            counted = printed(layout.recalled, layout.history, math.inf)
            self._spent = counted - self._framing(len(self._days), self._line_count)
            self._excess = 0

    def _total(self, step: _Step) -> int:
        """Return an upper bound of the window's tokens after a step."""
        days = len(self._days) + sum(
            (self._days[day] + more > 0) - (self._days[day] > 0) for day, more in step.days.items()
        )
        lines = self._line_count + len(step.lines) - len(step.gone)
        return self._spent + self._cost(step) + self._framing(days, lines)

    def _framing(self, days: int, lines: int) -> int:
        return days * self.costs.day + (self.costs.recalled_title if lines else 0)

    def _at_most(self, members: Sequence[Candidate]) -> int:
        """Return the most tokens that messages may take in an empty window, however printed."""
        costs, answers = self.costs, self.exchanges.answer_of
        return costs.recalled_title + sum(
            costs.day
            + self._at_most_alone(message)
            + (costs.left_out(answers[number]) if number in answers else 0)
            for message in members
            for number in (message.message.id,)
        )

    def _at_most_alone(self, message: Candidate) -> int:
        """Return the most tokens a message may take; without an age it is never a turn."""
        recalled = self.costs.recalled(message)
        return recalled if message.age is None else max(recalled, self.costs.history(message))

    def _cost(self, step: _Step) -> int:
        answers = self.exchanges.answer_of
        return (
            sum(map(self.costs.history, step.turned))
            + sum(map(self.costs.recalled, step.lines))
            - sum(map(self.costs.recalled, step.gone))
            + sum(self.costs.left_out(answers[each]) for each in step.told)
            - sum(self.costs.left_out(answers[each]) for each in step.untold)
        )

    def _take(self, step: _Step) -> None:
        self._spent += self._cost(step)
        self._excess += _EXCESS * len(step.fresh)
        self._failed = 0
        self._kept |= step.fresh
        self._grow_run(step.run, step.reached)
        self._in_history |= ids(step.turned)
        for line in step.gone:
            del self._lines[self._exchange(line)][line.message.id]
        for line in step.lines:
            self._lines.setdefault(self._exchange(line), {})[line.message.id] = line
        self._line_count += len(step.lines) - len(step.gone)
        for day, more in step.days.items():
            self._days[day] += more
            if not self._days[day]:
                del self._days[day]
        self._shown |= step.shown
        self._told -= step.untold
        self._told |= step.told

    def _run_grown_by(self, fresh: Mapping[int, Candidate]) -> tuple[list[Candidate], int]:
        """Return the messages added to the run, newest first, and the age it then reaches."""
        more: list[Candidate] = []
        age = self._reached
        while True:
            candidate = self.by_age.get(age)
            number = candidate.message.id if candidate else 0
            kept = fresh.get(number) or self._kept.get(number)
            if kept and kept.spans is not None:
                return more, age
            if kept and not is_system(kept):
                more.append(kept)
            elif not kept and age not in self.passed:
                return more, age
            age += 1

    def _turned_by(self, run: Sequence[Candidate]) -> list[Candidate]:
        """Return the exchanges that become history because the grown run holds them whole."""
        turned: list[Candidate] = []
        questions = self._questions
        waiting: dict[int, list[tuple[Candidate, int]]] = {}
        for each in run:
            exchange = self._exchange(each)
            if not _asks(each):
                waiting.setdefault(exchange, []).append((each, questions))
                continue
            replies = [*self._waiting.get(exchange, ()), *waiting.get(exchange, ())]
            if self._is_whole(exchange, replies, questions):
                turned += [each, *(reply for reply, _ in replies)]
            questions += 1
        return turned

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
        for each in run:
            if _asks(each):
                self._questions += 1
                self._waiting.pop(self._exchange(each), None)
            else:
                waiting = self._waiting.setdefault(self._exchange(each), [])
                waiting.append((each, self._questions))
        self._reached = reached

    def _exchange(self, candidate: Candidate) -> int:
        return self.exchanges.exchange_of[candidate.message.id]

    def _saying(self, candidate: Candidate) -> int:
        """Return the first exchange with the same texts as the candidate's."""
        exchange = self._exchange(candidate)
        return self.exchanges.copy_of.get(exchange, exchange)


def _laid_out(kept: Mapping[int, Candidate], in_history: set[int], exchanges: Exchanges) -> Layout:
    """Lay out kept messages; of exchanges with equal texts, only the first kept is printed."""

    def order(candidate: Candidate) -> tuple[float, int, int]:
        number = candidate.message.id
        caller, call = exchanges.call_of.get(number, (number, -1))
        return (*by_time(kept[caller]), call)

    history = sorted((kept[number] for number in in_history), key=order)
    copies = exchanges.copy_of
    shown = {}
    for number in in_history:
        exchange = exchanges.exchange_of[number]
        shown[copies.get(exchange, exchange)] = 0
    recalled: list[Candidate] = []
    duplicates: list[Candidate] = []
    for number, each in kept.items():
        if number in in_history:
            continue
        exchange = exchanges.exchange_of[number]
        first = shown.setdefault(copies.get(exchange, exchange), exchange)
        (recalled if first == exchange else duplicates).append(each)
    recalled.sort(key=by_time)
    return Layout(_told_apart(recalled, exchanges), tuple(history), tuple(duplicates))


def _told_apart(recalled: Sequence[Candidate], exchanges: Exchanges) -> tuple[Candidate, ...]:
    """Mark recalled messages so that no answer appears under another question."""
    printed = ids(recalled)
    question: int | None = None
    marked = []
    for each in recalled:
        number = each.message.id
        exchange = exchanges.exchange_of[number]
        if _asks(each):
            question = exchange
            answer = exchanges.answer_of.get(number)
            if answer is not None and answer not in printed:
                each = replace(each, left_out=answer)
        elif not is_system(each) and question not in (None, exchange):
            each, question = replace(each, after_gap=True), None
        marked.append(each)
    return tuple(marked)


def by_time(candidate: Candidate) -> tuple[float, int]:
    """Return a key that sorts candidates by time, then id."""
    return candidate.message.created_at.timestamp(), candidate.message.id


def ids(candidates: Iterable[Candidate]) -> set[int]:
    """Return the ids of candidates."""
    return {each.message.id for each in candidates}


def is_system(candidate: Candidate) -> bool:
    """Return whether a message is an old system prompt, which is never used as an instruction."""
    return candidate.message.role is Role.SYSTEM


def _asks(candidate: Candidate) -> bool:
    return candidate.message.role is Role.USER


def _day(candidate: Candidate) -> str:
    return local_day(candidate.message.created_at)
