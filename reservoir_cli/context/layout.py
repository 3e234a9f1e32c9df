"""The account of a window that is being filled: what is kept, and what it costs. Pure.

A kept message is printed in one of two places: as a turn of history, in the unbroken run of the
newest messages, else as a recalled line. The run grows as gaps in it are filled, so that a
message may change its place after it was kept.

No answer is printed under a question that is not its own. History holds whole exchanges only,
each reply behind its own question with no other question between; what is not whole is recalled.
Above a recalled reply stands its own question or ``…``, and below a recalled question its answer
or the number of the answer that was left out.
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

#: Returns the tokens of recalled messages and history, exact up to a limit.
Printed = Callable[[Sequence[Candidate], Sequence[Candidate], float], int]


class Costs(NamedTuple):
    """Tokens of a message by the place it is printed in, all factors included.

    :param recalled: of a message as a recalled line, with the ``…`` that a reply may need.
    :param history: of a message as a turn.
    :param day: of a line with a date above the recalled messages of that day.
    :param recalled_title: paid once, when anything is recalled.
    :param printed: of recalled messages and history together, as they are printed; exact up to
        the limit given. The others add up to at least this, and are cheaper to ask for; without
        it they decide alone.
    :param left_out: of the line that names an answer that was left out, by its id.
    :param trials: how many windows in a row are counted as they are printed, and found too large.
    """

    recalled: Callable[[Candidate], int]
    history: Callable[[Candidate], int]
    day: int
    recalled_title: int
    printed: Printed | None = None
    left_out: Callable[[int], int] = lambda _: 0
    trials: int = 32


#: By how much the sum may exceed the printed count for each message, at the most.
_EXCESS = 40
#: When the sums leave fewer tokens than this, what is printed is counted.
_LITTLE = 200
#: How many messages the windows may hold together that are found too large: counting a large
#: window takes long.
_TRIED = 20_000


class Layout(NamedTuple):
    """Where kept messages are printed: recalled, or as turns, or not at all."""

    recalled: tuple[Candidate, ...]
    history: tuple[Candidate, ...]
    duplicates: tuple[Candidate, ...]


class _Step(NamedTuple):
    """What changes when messages are kept.

    :param run: what the run of the newest gains, newest first.
    :param turned: what becomes history.
    :param lines: what becomes a recalled line.
    :param gone: what is a recalled line no longer.
    :param shown: of copies the exchange that is printed, by what they say.
    :param told: questions that name the answer that was left out.
    :param untold: questions that do so no longer.
    :param days: by how many lines each day changes.
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
    """What is kept so far, and an upper bound of its tokens.

    :param by_age: everything of history's instance that may be kept, by age.
    :param passed: ages of messages that do not end the run although they are not printed.
    :ivar reasons: why each message was kept.
    """

    costs: Costs
    exchanges: Exchanges
    by_age: Mapping[int, Candidate]
    passed: set[int]
    reasons: dict[int, str] = field(default_factory=dict)
    _kept: dict[int, Candidate] = field(default_factory=dict)
    #: The age the run reaches to, and its questions.
    _reached: int = 0
    _questions: int = 0
    #: Messages of the run whose question it has not reached, with the questions before them.
    _waiting: dict[int, list[tuple[Candidate, int]]] = field(default_factory=dict)
    _in_history: set[int] = field(default_factory=set)
    #: Recalled messages that are printed, by exchange; how many, and how many of each day.
    _lines: dict[int, dict[int, Candidate]] = field(default_factory=dict)
    _line_count: int = 0
    _days: Counter[str] = field(default_factory=Counter)
    #: Of exchanges that say the same, the one that is printed.
    _shown: dict[int, int] = field(default_factory=dict)
    #: Recalled questions that name the answer that was left out.
    _told: set[int] = field(default_factory=set)
    #: Tokens of single messages, and by how much the sum may be too high.
    _spent: int = 0
    _excess: int = 0
    _failed: int = 0

    def has(self, candidate: Candidate) -> bool:
        """Whether a message is kept."""
        return candidate.message.id in self._kept

    def kept(self, candidate: Candidate) -> Candidate | None:
        """Return a message as it is kept."""
        return self._kept.get(candidate.message.id)

    def room(self, budget: int) -> int:
        """Return an upper bound of the tokens that are left; exact when that may be little."""
        if self.costs.printed and budget - self._spent < _LITTLE:
            self._recount(self.costs.printed)
        framing = self._framing(len(self._days), self._line_count)
        return budget - self._spent - framing + self._excess

    def could_add(self, members: Sequence[Candidate], budget: int) -> bool:
        """Whether messages would fit if nothing else were kept."""
        if self._at_most(members) <= budget:
            return True
        empty = Packing(self.costs, self.exchanges, self.by_age, self.passed)
        return empty.add(members, budget, "")

    def add(self, members: Sequence[Candidate], budget: int, reason: str) -> bool:
        """Keep messages if all of them fit; otherwise nothing changes."""
        if self._is_hopeless(members, budget):
            return False
        step = self._step({each.message.id: each for each in members})
        if not self._fits(step, budget):
            return False
        self._take(step)
        self.reasons.update((number, reason) for number in step.fresh)
        return True

    def _is_hopeless(self, members: Sequence[Candidate], budget: int) -> bool:
        """Return whether messages that are new lines, and nothing else, are too large for certain.

        When little room is left that is most of them, and it takes a tenth of the time to see.
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
        """Return the printed window, with lines that keep answers apart from other questions."""
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
            # An excerpt that grows, or becomes whole, takes the place of what was printed of it.
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
        """Questions that need a line about their answer, and those that no longer do."""
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
        """Whether the window with a step is within the budget, by sums as long as they tell."""
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
        """Set the account right by one exact count of what is kept."""
        if self._excess:
            layout = self.lay_out()
            counted = printed(layout.recalled, layout.history, math.inf)
            self._spent = counted - self._framing(len(self._days), self._line_count)
            self._excess = 0

    def _total(self, step: _Step) -> int:
        """Return an upper bound of the tokens of the window after a step."""
        days = len(self._days) + sum(
            (self._days[day] + more > 0) - (self._days[day] > 0) for day, more in step.days.items()
        )
        lines = self._line_count + len(step.lines) - len(step.gone)
        return self._spent + self._cost(step) + self._framing(days, lines)

    def _framing(self, days: int, lines: int) -> int:
        return days * self.costs.day + (self.costs.recalled_title if lines else 0)

    def _at_most(self, members: Sequence[Candidate]) -> int:
        """Return what messages may cost in an empty window, wherever they are printed."""
        costs, answers = self.costs, self.exchanges.answer_of
        return costs.recalled_title + sum(
            costs.day
            + self._at_most_alone(message)
            + (costs.left_out(answers[number]) if number in answers else 0)
            for message in members
            for number in (message.message.id,)
        )

    def _at_most_alone(self, message: Candidate) -> int:
        """Return what a message may cost in either place; one without an age is never a turn."""
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
        """Return the messages that the run gains, newest first, and how far back it reaches."""
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
        """Return the exchanges that become history when the run grows to hold them whole."""
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
        """Whether an exchange has its answer, and no other question stands within it.

        A tool result is printed behind its call, wherever it was stored.
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
        """Return the first exchange that says the same as the candidate's."""
        exchange = self._exchange(candidate)
        return self.exchanges.copy_of.get(exchange, exchange)


def _laid_out(kept: Mapping[int, Candidate], in_history: set[int], exchanges: Exchanges) -> Layout:
    """Where kept messages are printed; of copies, the first exchange that was kept."""

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
    """Recalled messages with what keeps each answer apart from other questions."""
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
    """Sorts candidates by time, then id."""
    return candidate.message.created_at.timestamp(), candidate.message.id


def ids(candidates: Iterable[Candidate]) -> set[int]:
    """Return the ids of candidates."""
    return {each.message.id for each in candidates}


def is_system(candidate: Candidate) -> bool:
    """Whether it is an old system prompt: never an instruction again."""
    return candidate.message.role is Role.SYSTEM


def _asks(candidate: Candidate) -> bool:
    return candidate.message.role is Role.USER


def _day(candidate: Candidate) -> str:
    return local_day(candidate.message.created_at)
