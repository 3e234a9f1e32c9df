"""The account of a window that is being filled: what is kept, and what it costs. Pure.

A kept message is printed in one of two places: in the unbroken run of the newest messages as a
turn of history, else as a recalled line. The run grows as gaps in it are filled, so that a
message may change its place after it was kept.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reservoir_cli.messages import Role
from reservoir_cli.window import Candidate


@dataclass(frozen=True, slots=True)
class Costs:
    """Tokens of a message by the place it is printed in, all factors included.

    :param recalled: of a message as a recalled line.
    :param history: of a message as a turn.
    :param day: of a line with a date above the recalled messages of that day.
    :param recalled_title: paid once, when anything is recalled.
    """

    recalled: Callable[[Candidate], int]
    history: Callable[[Candidate], int]
    day: int
    recalled_title: int


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
    _spent: int = 0
    _kept: dict[int, Candidate] = field(default_factory=dict)
    _days: set[str] = field(default_factory=set)
    #: The run, newest first, the age it reaches to, and how much of it begins with a question.
    _run: list[Candidate] = field(default_factory=list)
    _reached: int = 0
    _turns: int = 0
    _by_age: Mapping[int, Candidate] = field(init=False)

    def __post_init__(self) -> None:
        self._by_age = {each.age: each for each in self.pool if each.age is not None}

    def has(self, candidate: Candidate) -> bool:
        """Whether a message is kept."""
        return candidate.message.id in self._kept

    def add(self, members: Sequence[Candidate], budget: int, reason: str) -> bool:
        """Keep messages if all of them fit; otherwise nothing changes."""
        fresh = {each.message.id: each for each in members}
        more, reached = self._run_grown_by(fresh)
        asking = (place for place in range(len(more), 0, -1) if _asks(more[place - 1]))
        turns = next((len(self._run) + place for place in asking), self._turns)
        run = [*self._run[self._turns :], *more][: turns - self._turns]
        turned = {each.message.id: each for each in run}

        lines = [each for number, each in fresh.items() if number not in turned]
        days = {_day(each) for each in lines} - self._days
        spent = self._spent + sum(map(self.costs.recalled, lines)) + len(days) * self.costs.day
        spent += self.costs.recalled_title if lines and not self._days else 0
        for number, each in turned.items():
            spent += self.costs.history(each)
            spent -= self.costs.recalled(each) if number in self._kept else 0
        if spent > budget:
            return False

        self._spent, self._reached, self._turns = spent, reached, turns
        self._run += more
        self._kept |= fresh
        self._days |= days
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

    def lay_out(
        self,
    ) -> tuple[tuple[Candidate, ...], tuple[Candidate, ...], tuple[Candidate, ...]]:
        """Recalled messages, history, and recalled messages that say what is said already."""
        history = _results_behind_calls(self._run[: self._turns][::-1])
        in_history = ids(history)
        said = {_said(each) for each in history}
        recalled, duplicates = [], []
        for each in sorted(self._kept.values(), key=by_time):
            if each.message.id in in_history:
                continue
            alone = each.message.role is not Role.TOOL and not each.message.tool_calls
            if alone and _said(each) in said:
                duplicates.append(each)
            else:
                said.add(_said(each))
                recalled.append(each)
        return tuple(recalled), tuple(history), tuple(duplicates)


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
    results: dict[str, list[Candidate]] = {}
    for each in run:
        if each.message.role is Role.TOOL:
            results.setdefault(each.message.tool_call_id or "", []).append(each)
    laid = []
    for each in run:
        if each.message.role is Role.TOOL:
            continue
        laid.append(each)
        for call in each.message.tool_calls:
            later = [one for one in results.get(call.id, ()) if by_time(one) > by_time(each)]
            if later:
                laid.append(later[0])
                results[call.id].remove(later[0])
    return laid


def _asks(candidate: Candidate) -> bool:
    return candidate.message.role is Role.USER


def _said(candidate: Candidate) -> tuple[str, str]:
    return candidate.message.role.value, candidate.message.content.strip()


def _day(candidate: Candidate) -> str:
    return candidate.message.created_at.date().isoformat()
