"""The account of a window that is being filled: what is kept, and what it costs. Pure.

A kept message is printed in one of two places: in the unbroken run of the newest messages as a
turn of history, else as a recalled line. The run grows as gaps in it are filled, so that a
message may change its place after it was kept.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reservoir_cli.context.types import Candidate
from reservoir_cli.messages import Role


@dataclass(frozen=True, slots=True)
class Costs:
    """Tokens of a message by the place it is printed in, all factors included.

    :param recalled: of a message as a recalled line.
    :param history: of a message as a turn.
    :param day: of a line with a date above the recalled messages of that day.
    :param recalled_title: paid once, when anything is recalled.
    :param printed: of recalled messages and history together, as they are printed. The others
        add up to at least this, and are cheaper to ask for; without it they decide alone.
    """

    recalled: Callable[[Candidate], int]
    history: Callable[[Candidate], int]
    day: int
    recalled_title: int
    printed: Callable[[Sequence[Candidate], Sequence[Candidate]], int] | None = None


#: By how much the sum may exceed the printed count for each message, at the most.
_EXCESS = 40

_Layout = tuple[tuple[Candidate, ...], tuple[Candidate, ...], tuple[Candidate, ...]]


@dataclass(slots=True)
class Packing:
    """What is kept so far, and an upper bound of its tokens.

    :param pool: everything that may be kept.
    :param passed: ids of messages that do not end the run although they are not printed.
    :ivar reasons: why each message was kept.
    """

    costs: Costs
    pool: Sequence[Candidate]
    passed: set[int]
    reasons: dict[int, str] = field(default_factory=dict)
    _kept: dict[int, Candidate] = field(default_factory=dict)
    #: The run, newest first, the age it reaches to, and how much of it begins with a question.
    _run: list[Candidate] = field(default_factory=list)
    _reached: int = 0
    _turns: int = 0
    _in_history: set[int] = field(default_factory=set)
    #: Ids of the recalled messages that are printed, and how many of them a day has.
    _lines: set[int] = field(default_factory=set)
    _days: Counter[str] = field(default_factory=Counter)
    _said: set[tuple[str, str]] = field(default_factory=set)
    #: Tokens of single messages, and by how much the sum may be too high.
    _spent: int = 0
    _excess: int = 0
    _by_age: Mapping[int, Candidate] = field(init=False)

    def __post_init__(self) -> None:
        self._by_age = {each.age: each for each in self.pool if each.age is not None}

    def has(self, candidate: Candidate) -> bool:
        """Whether a message is kept."""
        return candidate.message.id in self._kept

    def could_add(self, members: Sequence[Candidate], budget: int) -> bool:
        """Whether messages would fit if nothing else were kept."""
        return Packing(self.costs, self.pool, self.passed).add(members, budget, "")

    def add(self, members: Sequence[Candidate], budget: int, reason: str) -> bool:
        """Keep messages if all of them fit; otherwise nothing changes."""
        fresh = {each.message.id: each for each in members}
        more, reached = self._run_grown_by(fresh)
        asking = (place for place in range(len(more), 0, -1) if _asks(more[place - 1]))
        turns = next((len(self._run) + place for place in asking), self._turns)
        in_history = self._in_history
        if turns > self._turns:
            in_history = ids(_results_behind_calls([*self._run, *more][:turns][::-1]))

        turned = [fresh.get(each) or self._kept[each] for each in in_history - self._in_history]
        unsaid = [
            each
            for number, each in fresh.items()
            if number not in in_history and (not _alone(each) or _said(each) not in self._said)
        ]
        gone = [each for each in turned if each.message.id in self._lines]
        days = Counter(self._days)
        days.update(map(_day, unsaid))
        days.subtract(map(_day, gone))

        spent = self._spent + sum(map(self.costs.history, turned))
        spent += sum(map(self.costs.recalled, unsaid)) - sum(map(self.costs.recalled, gone))
        excess = self._excess + _EXCESS * len(fresh)
        framing = sum(count > 0 for count in days.values()) * self.costs.day
        framing += self.costs.recalled_title if len(self._lines) + len(unsaid) > len(gone) else 0
        if spent + framing > budget:
            if self.costs.printed is None or spent + framing - excess > budget:
                return False
            kept = {**self._kept, **fresh}
            recalled, history, _ = _laid_out(kept, [*self._run, *more][:turns])
            printed = self.costs.printed(recalled, history)
            if printed > budget:
                return False
            spent, excess = printed - framing, 0

        self._kept |= fresh
        self._lines -= ids(gone)
        self._lines |= ids(unsaid)
        self._days, self._in_history = +days, in_history
        self._spent, self._excess, self._reached, self._turns = spent, excess, reached, turns
        self._run += more
        self._said.update(map(_said, (*unsaid, *turned)))
        self.reasons.update((number, reason) for number in fresh)
        return True

    def _run_grown_by(self, fresh: Mapping[int, Candidate]) -> tuple[list[Candidate], int]:
        """What the run gains, newest first, and the age it then reaches to."""
        more = []
        age = self._reached
        while (each := self._by_age.get(age)) is not None:
            number = each.message.id
            kept = fresh.get(number) or self._kept.get(number)
            if kept and not is_system(kept):
                more.append(kept)
            elif not kept and number not in self.passed:
                break
            age += 1
        return more, age

    def lay_out(self) -> _Layout:
        """Recalled messages, history, and recalled messages that say what is said already."""
        return _laid_out(self._kept, self._run[: self._turns])


def _laid_out(kept: Mapping[int, Candidate], run: Sequence[Candidate]) -> _Layout:
    """Where kept messages are printed.

    :param run: the beginning of the run that ends in a question, newest first.
    """
    history = _results_behind_calls(run[::-1])
    in_history = ids(history)
    said = {_said(each) for each in history}
    recalled, duplicates = [], []
    for each in kept.values():  # of copies the first that was kept is printed
        if each.message.id in in_history:
            continue
        if _alone(each) and _said(each) in said:
            duplicates.append(each)
        else:
            said.add(_said(each))
            recalled.append(each)
    return tuple(sorted(recalled, key=by_time)), tuple(history), tuple(duplicates)


def by_time(candidate: Candidate) -> tuple[float, int]:
    """Sorts candidates by time, then id."""
    return candidate.message.created_at.timestamp(), candidate.message.id


def ids(candidates: Iterable[Candidate]) -> set[int]:
    """The ids of candidates."""
    return {each.message.id for each in candidates}


def is_system(candidate: Candidate) -> bool:
    """Whether it is an old system prompt: never an instruction again."""
    return candidate.message.role is Role.SYSTEM


def _results_behind_calls(run: Sequence[Candidate]) -> list[Candidate]:
    """A run in order of time, each tool result right behind the message that called for it.

    A result whose caller is not in the run is left out; it is recalled with its caller.
    """
    results: dict[tuple[str | None, str], list[Candidate]] = {}
    for each in run:
        message = each.message
        if message.role is Role.TOOL:
            key = (message.conversation_id, message.tool_call_id or "")
            results.setdefault(key, []).append(each)
    laid = []
    for each in run:
        if each.message.role is Role.TOOL:
            continue
        laid.append(each)
        for call in each.message.tool_calls:
            key = (each.message.conversation_id, call.id)
            later = [one for one in results.get(key, ()) if by_time(one) > by_time(each)]
            if later:
                laid.append(later[0])
                results[key].remove(later[0])
    return laid


def _asks(candidate: Candidate) -> bool:
    return candidate.message.role is Role.USER


def _alone(candidate: Candidate) -> bool:
    """Whether a message has no part in a tool call, so that a copy of it is worth nothing."""
    return candidate.message.role is not Role.TOOL and not candidate.message.tool_calls


def _said(candidate: Candidate) -> tuple[str, str]:
    return candidate.message.role.value, candidate.message.content.strip()


def _day(candidate: Candidate) -> str:
    return candidate.message.created_at.date().isoformat()
