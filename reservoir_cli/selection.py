"""Spending the budget: which messages go into the window. Pure.

Messages are taken as units: a tool call goes with its results, a question with its reply while
both fit. Units are tried by priority; what does not fit is skipped and the next is tried.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reservoir_cli.messages import Role, ToolCall
from reservoir_cli.window import Candidate, Dropped, Selection

NO_ROOM = "no room"
TOO_LARGE = "too large"
DUPLICATE = "duplicate"
ORPHAN = "orphan result"
UNANSWERED = "unanswered call"

#: Tokens of a message when it is printed as a recalled line, or as a turn of history.
Cost = Callable[[Candidate], int]


@dataclass(frozen=True, slots=True)
class Costs:
    """Tokens of a message by the place it is printed in, all factors included.

    :param day: a line with a date above the recalled messages of that day.
    :param recalled_title: paid once, when anything is recalled.
    """

    recalled: Cost
    history: Cost
    day: int
    recalled_title: int


@dataclass(frozen=True, slots=True)
class Unit:
    """Messages that are kept or dropped together, oldest first."""

    members: tuple[Candidate, ...]

    @property
    def priority(self) -> float:
        """The highest of its members."""
        return max(each.scores.priority for each in self.members)

    @property
    def order(self) -> tuple[float, float, int]:
        """Sorts units by priority, ties newest first."""
        last = self.members[-1].message
        return (-self.priority, -last.created_at.timestamp(), -last.id)


def select(
    pool: Sequence[Candidate],
    *,
    query: str,
    budget: int,
    costs: Costs,
    min_history_messages: int,
    not_reached: int,
) -> Selection:
    """Choose messages for a budget.

    :param pool: candidates with all that belongs to them, in order of time.
    :param budget: tokens for recalled messages and history.
    :param min_history_messages: the newest messages that come first, while they take at most
        a quarter of the budget.
    :param not_reached: messages of the scope that are not in the pool.
    """
    allowed = [each for each in pool if not _is_question(each, query)]
    allowed = [each for each in allowed if each.message.role is not Role.SYSTEM]
    tool_units, dropped = _tool_units(allowed)
    large = [unit for unit in tool_units if sum(map(costs.recalled, unit.members)) > budget]
    dropped += [Dropped(each, TOO_LARGE) for each in _members(large)]
    tool_units = [unit for unit in tool_units if unit not in large] if large else tool_units
    packing = _Packing(costs, pool, _ids(pool) - _ids(_members(tool_units)))
    for unit in _newest(tool_units, min_history_messages):
        if not packing.add(unit, budget // 4):
            break
    for exchange in sorted(_exchanges(tool_units), key=lambda each: Unit(_members(each)).order):
        left = [unit for unit in exchange if not packing.has(unit)]
        if left and not packing.add(Unit(_members(left)), budget):
            # Not both fit: the higher-scored alone, else the other.
            any(packing.add(unit, budget) for unit in sorted(left, key=lambda each: each.order))
    recalled, history, duplicates = packing.lay_out()
    kept = {each.message.id for each in (*recalled, *history)}
    dropped += [Dropped(each, DUPLICATE) for each in duplicates]
    named = kept | {each.candidate.message.id for each in dropped}
    dropped += [
        Dropped(each, NO_ROOM) for each in _members(tool_units) if each.message.id not in named
    ]
    counted = [each for each in dropped if not each.candidate.filler]
    passed_over = len(dropped) - len(counted)
    return Selection(recalled, history, tuple(counted), not_reached + passed_over)


def _is_question(candidate: Candidate, query: str) -> bool:
    return bool(query.strip()) and candidate.message.content.strip() == query.strip()


def _ids(candidates: Iterable[Candidate]) -> set[int]:
    return {each.message.id for each in candidates}


def _members(units: Iterable[Unit]) -> tuple[Candidate, ...]:
    found = [each for unit in units for each in unit.members]
    return tuple(sorted(found, key=lambda each: (each.message.created_at, each.message.id)))


def _tool_units(candidates: Sequence[Candidate]) -> tuple[list[Unit], list[Dropped]]:
    """Join calls and their results; take off calls without one, drop results without a call."""
    results: dict[int, list[Candidate]] = {}
    open_calls: dict[tuple[str, str | None, str], int] = {}
    dropped = []
    for each in candidates:
        message = each.message
        thread = (message.instance, message.conversation_id)
        for call in message.tool_calls:
            open_calls[(*thread, call.id)] = message.id
        if message.role is Role.TOOL:
            caller = open_calls.pop((*thread, message.tool_call_id or ""), None)
            if caller is None:
                dropped.append(Dropped(each, ORPHAN))
            else:
                results.setdefault(caller, []).append(each)
    units = []
    for each in candidates:
        message = each.message
        if message.role is Role.TOOL:
            continue
        own = results.get(message.id, [])
        answered = _answered(message.tool_calls, own)
        if message.tool_calls and not answered and not message.content.strip():
            dropped.append(Dropped(each, UNANSWERED))
            continue
        if len(answered) < len(message.tool_calls):
            each = replace(each, message=replace(message, tool_calls=answered))
        units.append(Unit((each, *own)))
    return units, dropped


def _answered(calls: tuple[ToolCall, ...], results: Sequence[Candidate]) -> tuple[ToolCall, ...]:
    found = {each.message.tool_call_id for each in results}
    return tuple(call for call in calls if call.id in found)


def _exchanges(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    """Join each question with the reply of its trace; all other units stay by themselves."""
    replies: dict[int, Unit] = {}
    asked: dict[tuple[str, str], int] = {}
    for unit in units:
        message = unit.members[0].message
        trace = (message.instance, message.trace_id)
        if message.role is Role.USER:
            asked[trace] = message.id
        elif message.role is Role.ASSISTANT and not message.tool_calls and trace in asked:
            replies[asked[trace]] = unit
    answering = {unit.members[0].message.id for unit in replies.values()}
    for unit in units:
        number = unit.members[0].message.id
        if number not in answering:
            yield [unit, replies[number]] if number in replies else [unit]


def _newest(units: Sequence[Unit], count: int) -> list[Unit]:
    """The units of the newest messages of the instance that history comes from."""
    own = [(unit.members[-1].age, unit) for unit in units]
    ordered = sorted(
        ((age, unit) for age, unit in own if age is not None), key=lambda each: each[0]
    )
    newest: list[Unit] = []
    messages = 0
    for _, unit in ordered:
        if messages >= count:
            break
        newest.append(unit)
        messages += len(unit.members)
    return newest


@dataclass(slots=True)
class _Packing:
    """What is kept so far, and an upper bound of what it costs.

    The run of the newest messages grows as gaps in it are filled; a message that it reaches
    turns from a recalled line into a turn of history, unless no user message stands before it.

    :param passed: messages that do not end the run although they are not kept.
    """

    costs: Costs
    pool: Sequence[Candidate]
    passed: set[int]
    spent: int = 0
    kept: dict[int, Candidate] = field(default_factory=dict)
    days: set[str] = field(default_factory=set)
    run: list[Candidate] = field(default_factory=list)
    reached: int = 0
    turns: int = 0
    by_age: Mapping[int, Candidate] = field(init=False)

    def __post_init__(self) -> None:
        self.by_age = {each.age: each for each in self.pool if each.age is not None}

    def has(self, unit: Unit) -> bool:
        return unit.members[0].message.id in self.kept

    def add(self, unit: Unit, budget: int) -> bool:
        """Keep a unit if all of it fits; otherwise nothing changes."""
        fresh = {each.message.id: each for each in unit.members}
        more, reached = self._run_grown_by(fresh)
        run = self.run + more
        users = (place for place in range(len(more), 0, -1) if _asks(more[place - 1]))
        turns = next((len(self.run) + place for place in users), self.turns)
        turned = {each.message.id: each for each in run[self.turns : turns]}
        lines = [each for number, each in fresh.items() if number not in turned]
        days = {_day(each) for each in lines} - self.days
        spent = self.spent + sum(self.costs.recalled(each) for each in lines)
        spent += len(days) * self.costs.day
        spent += self.costs.recalled_title if lines and not self.days else 0
        for number, each in turned.items():
            spent += self.costs.history(each)
            spent -= self.costs.recalled(each) if number in self.kept else 0
        if spent > budget:
            return False
        self.spent, self.run, self.reached, self.turns = spent, run, reached, turns
        self.kept |= fresh
        self.days |= days
        return True

    def _run_grown_by(self, fresh: Mapping[int, Candidate]) -> tuple[list[Candidate], int]:
        """What the run gains, newest first, and the age it then reaches to."""
        more = []
        age = self.reached
        while (each := self.by_age.get(age)) is not None:
            number = each.message.id
            if kept := fresh.get(number) or self.kept.get(number):
                more.append(kept)
            elif number not in self.passed:
                break
            age += 1
        return more, age

    def lay_out(self) -> tuple[tuple[Candidate, ...], tuple[Candidate, ...], list[Candidate]]:
        """Recalled messages, history, and what was said twice."""
        turned = self.run[: self.turns]
        history = _results_behind_calls(turned[::-1])
        in_history = _ids(history)
        said = {_said(each) for each in history}
        recalled, duplicates = [], []
        for each in sorted(self.kept.values(), key=_time):
            if each.message.id in in_history:
                continue
            if _said(each) in said and not each.message.tool_calls:
                duplicates.append(each)
                continue
            said.add(_said(each))
            recalled.append(each)
        return tuple(recalled), tuple(history), duplicates


def _results_behind_calls(run: Sequence[Candidate]) -> list[Candidate]:
    """A run in order of time, each tool result right behind the message that called for it."""
    laid: list[Candidate] = []
    results = [each for each in run if each.message.role is Role.TOOL]
    for each in run:
        if each.message.role is Role.TOOL:
            continue
        laid.append(each)
        for call in each.message.tool_calls:
            for result in results:
                if result.message.tool_call_id == call.id and _time(result) > _time(each):
                    results.remove(result)
                    laid.append(result)
                    break
    return laid


def _asks(candidate: Candidate) -> bool:
    return candidate.message.role is Role.USER


def _said(candidate: Candidate) -> tuple[str, str]:
    return candidate.message.role.value, candidate.message.content.strip()


def _day(candidate: Candidate) -> str:
    return candidate.message.created_at.date().isoformat()


def _time(candidate: Candidate) -> tuple[float, int]:
    return candidate.message.created_at.timestamp(), candidate.message.id
