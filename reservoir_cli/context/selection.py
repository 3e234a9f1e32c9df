"""Spending the budget: which messages go into the window. Pure.

Messages are taken as units: a tool call goes with its results, a question with its reply while
both fit. ``packing`` keeps the account.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from reservoir_cli.context.layout import Costs, Packing, by_time, ids, is_system
from reservoir_cli.context.types import Candidate, Dropped, Selection, Tier
from reservoir_cli.messages import Role, ToolCall

NO_ROOM = "no room"
TOO_LARGE = "too large"
DUPLICATE = "duplicate"
QUESTION = "question"
ORPHAN = "orphan result"
UNANSWERED = "unanswered call"
UNLIKE = "below min_similarity"

_TIERS = list(Tier)


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that choosing goes by.

    :param order: ``score`` or ``tiers``.
    :param min_history_messages: the newest messages that come first, while they take at most a
        quarter of the budget.
    :param min_similarity: on the scale (1 + cosine)/2; 0 is off.
    """

    order: str = "score"
    min_history_messages: int = 2
    min_similarity: float = 0.0
    include_system: bool = False


@dataclass(frozen=True, slots=True)
class Unit:
    """Messages that are kept or dropped together, oldest first."""

    members: tuple[Candidate, ...]

    @property
    def priority(self) -> float:
        """The highest of its members."""
        return max(each.scores.priority for each in self.members)

    @property
    def tier(self) -> int:
        """The place of its best member's tier, 0 for recent."""
        return min(_TIERS.index(each.tier) for each in self.members)

    @property
    def age(self) -> int | None:
        """The place of its newest member in the instance that history comes from."""
        ages = [each.age for each in self.members if each.age is not None]
        return min(ages) if ages else None

    def by_score(self) -> tuple[float, float, int]:
        """Sorts by priority, ties newest first."""
        last = self.members[-1].message
        return (-self.priority, -last.created_at.timestamp(), -last.id)

    def by_tier(self) -> tuple[float, ...]:
        """Sorts by tier; in the recent one newest first, in the others by priority."""
        priority, *newest = self.by_score()
        return (self.tier, *newest) if self.tier == 0 else (self.tier, priority, *newest)


def select(
    pool: Sequence[Candidate],
    *,
    query: str,
    budget: int,
    costs: Costs,
    rules: Rules,
    not_reached: int,
) -> Selection:
    """Choose messages for a budget.

    :param pool: candidates with all that belongs to them, in order of time.
    :param budget: tokens for recalled messages and history.
    :param not_reached: messages of the scope that are not in the pool.
    """
    eligible = [_only_own_calls(each) for each in pool if _eligible(each, query, rules)]
    units, dropped = _tool_units(eligible)
    dropped += [Dropped(each, QUESTION) for each in pool if _is_question(each, query)]
    large = [each for each in units if sum(map(costs.recalled, each.members)) > budget]
    dropped += [Dropped(each, TOO_LARGE) for each in _members(large)]
    units = [each for each in units if each not in large] if large else units
    # What is missing from the units here does not end the run of the newest messages.
    packing = Packing(costs, pool, ids(pool) - ids(_members(units)))
    unlike = [each for each in units if _unlike(each, rules.min_similarity)]
    dropped += [Dropped(each, UNLIKE) for each in _members(unlike)]
    units = [each for each in units if each not in unlike] if unlike else units

    for unit in _newest(units, rules.min_history_messages):
        if not packing.add(unit.members, budget // 4, "newest"):
            break
    if rules.order == "tiers":
        _take_by_tier(units, packing, budget)
    else:
        _take_by_score(units, packing, budget)

    recalled, history, duplicates = packing.lay_out()
    dropped += [Dropped(each, DUPLICATE) for each in duplicates]
    named = ids([*recalled, *history]) | ids(each.candidate for each in dropped)
    dropped += [Dropped(each, NO_ROOM) for each in _members(units) if each.message.id not in named]
    return Selection(
        recalled,
        history,
        tuple(each for each in dropped if not each.candidate.filler),
        tuple(each for each in dropped if each.candidate.filler),
        packing.reasons,
        not_reached,
    )


def _take_by_score(units: Sequence[Unit], packing: Packing, budget: int) -> None:
    """Try every exchange by priority; what does not fit is skipped."""
    for exchange in sorted(_exchanges(units), key=lambda each: _joined(each).by_score()):
        _take(exchange, packing, budget, "priority")


def _take_by_tier(units: Sequence[Unit], packing: Packing, budget: int) -> None:
    """Take exchanges by tier up to the first that does not fit; everything after it goes.

    One that would not fit into an empty window is no reason to stop.
    """
    for exchange in sorted(_exchanges(units), key=lambda each: _joined(each).by_tier()):
        fits = packing.could_add(_members(exchange), budget)
        if not _take(exchange, packing, budget, "tier") and fits:
            return


def _take(exchange: Sequence[Unit], packing: Packing, budget: int, reason: str) -> bool:
    """Keep what is left of an exchange; if not all of it fits, its higher-scored unit alone.

    :returns: whether all of it was kept.
    """
    left = [each for each in exchange if not packing.has(each.members[0])]
    if not left or packing.add(_members(left), budget, reason):
        return True
    if len(left) > 1:
        packing.add(min(left, key=Unit.by_score).members, budget, reason)
    return False


def _is_question(candidate: Candidate, query: str) -> bool:
    return bool(query.strip()) and candidate.message.content.strip() == query.strip()


def _eligible(candidate: Candidate, query: str, rules: Rules) -> bool:
    message = candidate.message
    if _is_question(candidate, query):
        return False
    if is_system(candidate):
        return rules.include_system
    if message.role is Role.TOOL:
        return True
    calls = message.role is Role.ASSISTANT and message.tool_calls
    return bool(message.content.strip() or calls)


def _only_own_calls(candidate: Candidate) -> Candidate:
    """Only an assistant calls tools; what an import says of others is not printed."""
    message = candidate.message
    if message.role is Role.ASSISTANT or not message.tool_calls:
        return candidate
    return replace(candidate, message=replace(message, tool_calls=()))


def _unlike(unit: Unit, least: float) -> bool:
    """Whether nothing in a unit is recent, alike enough, or without a vector."""
    return least > 0 and not any(
        each.tier is Tier.RECENT
        or not each.scores.embedded
        or (1 + each.scores.cosine) / 2 >= least
        for each in unit.members
    )


def _members(units: Iterable[Unit]) -> tuple[Candidate, ...]:
    return tuple(sorted((each for unit in units for each in unit.members), key=by_time))


def _joined(exchange: Sequence[Unit]) -> Unit:
    return exchange[0] if len(exchange) == 1 else Unit(_members(exchange))


def _tool_units(candidates: Sequence[Candidate]) -> tuple[list[Unit], list[Dropped]]:
    """Join calls and their results; take off calls without one, drop results without a call."""
    results, dropped = _results_by_caller(candidates)
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


def _results_by_caller(
    candidates: Sequence[Candidate],
) -> tuple[dict[int, list[Candidate]], list[Dropped]]:
    """Tool results by the id of the message that called; the first result of a call counts."""
    results: dict[int, list[Candidate]] = {}
    open_calls: dict[tuple[str, str | None, str], int] = {}
    orphans = []
    for each in candidates:
        message = each.message
        thread = (message.instance, message.conversation_id)
        for call in message.tool_calls:
            open_calls[(*thread, call.id)] = message.id
        if message.role is Role.TOOL:
            caller = open_calls.pop((*thread, message.tool_call_id or ""), None)
            if caller is None:
                orphans.append(Dropped(each, ORPHAN))
            else:
                results.setdefault(caller, []).append(each)
    return results, orphans


def _answered(calls: tuple[ToolCall, ...], results: Sequence[Candidate]) -> tuple[ToolCall, ...]:
    """The calls that have a result; of calls with one id, the last."""
    found = {each.message.tool_call_id or "" for each in results}
    last = {call.id: call for call in calls if call.id in found}
    return tuple(last.values())


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
    """The units that hold the newest messages of the instance that history comes from."""
    own = [each for each in units if each.age is not None and not is_system(each.members[0])]
    chosen: list[Unit] = []
    for unit in sorted(own, key=lambda each: each.age or 0):
        if sum(len(each.members) for each in chosen) >= count:
            break
        chosen.append(unit)
    return chosen
