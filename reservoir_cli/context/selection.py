"""Choose the messages that go into the window within the budget. Pure.

Messages are chosen in groups: a tool call with its results, and a question with its reply if both
fit. A long message is added part by part. ``layout`` tracks the tokens.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import count, takewhile
from typing import NamedTuple

from reservoir_cli.chat.tool_calls import pair_calls
from reservoir_cli.context.excerpts import Excerpter, discount, least_tokens, step_size
from reservoir_cli.context.exchanges import Exchanges
from reservoir_cli.context.layout import Costs, Packing, by_time, ids, is_system
from reservoir_cli.context.pins import PINNED, PINNED_SHARE, as_pin, latest_pins
from reservoir_cli.context.standing_instructions import is_standing
from reservoir_cli.context.types import Candidate, Dropped, Selection, Tier
from reservoir_cli.messages import Role, StoredMessage

NO_ROOM = "no room"
EXCERPT = "excerpt"
TOO_LARGE = "too large"
DUPLICATE = "duplicate"
QUESTION = "question"
ORPHAN = "orphan result"
UNANSWERED = "unanswered call"
UNLIKE = "below min_cosine"

_TIERS = list(Tier)
#: The newest messages come first while they take at most this share of the budget.
NEWEST_SHARE = 1 / 8
#: Once something did not fit and less than the first share of the budget is left, candidates whose
#: priority is below the second share of the last one taken are not tried.
_LITTLE_LEFT, _FAR_BELOW = 0.15, 0.75
#: After this many parts of long messages in a row did not fit, no more are tried.
_FAILURES = 256
#: The first part of the best match is ranked at no less than this share of its priority; at the
#: second one if the question is about the user.
BEST, BEST_ABOUT_ASKER = 1.0, 0.92
#: The same for the message with the highest cosine.
NEAREST = 0.7
#: A standing instruction is ranked at this multiple of its priority.
STANDING = 1.4


class Rules(NamedTuple):
    """The settings that control the selection.

    :param order: ``score`` or ``tiers``.
    :param min_history_messages: how many of the newest messages come first, while they take at
        most an eighth of the budget.
    :param min_cosine: messages with a lower cosine are not recalled; 0 is off.
    :param standing: try standing instructions sooner.
    :param to_the_last: spend the last tokens even on candidates far below the rest.
    """

    order: str = "score"
    min_history_messages: int = 2
    min_cosine: float = 0.0
    include_system: bool = False
    standing: bool = True
    to_the_last: bool = False


class Unit(NamedTuple):
    """Messages that are kept or dropped together, oldest first."""

    members: tuple[Candidate, ...]

    @property
    def priority(self) -> float:
        """The highest priority of its members."""
        return max(each.scores.priority for each in self.members)

    @property
    def is_long(self) -> bool:
        """Whether it is a single message that is added part by part."""
        return len(self.members) == 1 and bool(self.members[0].parts)

    @property
    def is_standing(self) -> bool:
        """Whether a member is a standing instruction."""
        return any(is_standing(each.message) for each in self.members)

    def share(self, part: int = 0) -> float:
        """Return the share of its priority to rank it by: below 1 for parts of a message."""
        return discount(self.members[0], part) if self.is_long else 1.0

    @property
    def tier(self) -> int:
        """The rank of its best member's tier, 0 for recent."""
        return min(_TIERS.index(each.tier) for each in self.members)

    @property
    def age(self) -> int | None:
        """The age of its newest member in history's instance."""
        ages = [each.age for each in self.members if each.age is not None]
        return min(ages) if ages else None

    def by_score(self, share: float = 1.0) -> tuple[float, float, int]:
        """Return a key that sorts by priority, ties newest first.

        :param share: of the priority, for a part of a long message.
        """
        last = self.members[-1].message
        return (-self.priority * share, -last.created_at.timestamp(), -last.id)

    def by_tier(self, share: float = 1.0) -> tuple[float, ...]:
        """Return a key that sorts by tier: the recent tier newest first, others by priority."""
        priority, *newest = self.by_score(share)
        return (self.tier, *newest) if self.tier == 0 else (self.tier, priority, *newest)


def select(
    pool: Sequence[Candidate],
    *,
    query: str,
    budget: int,
    costs: Costs,
    rules: Rules,
    not_reached: int,
    unread: Set[int] = frozenset(),
) -> Selection:
    """Choose messages for a budget.

    :param pool: candidates with the messages that belong to them, in order of time.
    :param budget: tokens for recalled messages and history.
    :param not_reached: how many messages of the scope are not in the pool.
    :param unread: ages of messages that are too large to be in the pool.
    """
    eligible = [_only_own_calls(each) for each in pool if printable(each.message, query, rules)]
    units, dropped = _tool_units(eligible)
    dropped += [Dropped(each, QUESTION) for each in pool if is_question(each.message, query)]
    exchanges = Exchanges.of([each.message for each in pool])
    by_age = {each.age: each for each in pool if each.age is not None}
    # Messages missing from the groups at this point do not end the run of the newest messages.
    packing = Packing(costs, exchanges, by_age, _ages(pool) - _ages(_members(units)) | unread)
    units, large = _without_too_large(units, packing, budget)
    packing.passed |= _ages(large)
    dropped += [Dropped(each, TOO_LARGE) for each in large]
    unlike = _members(each for each in units if _unlike(each, rules.min_cosine))
    dropped += [Dropped(each, UNLIKE) for each in unlike]
    units = [each for each in units if not _unlike(each, rules.min_cosine)]

    for unit in _newest(units, rules.min_history_messages):
        if not packing.add(unit.members, int(budget * NEWEST_SHARE), "newest"):
            break
    with_pins = [unit for unit in units if latest_pins(unit.members)]
    for unit in sorted(with_pins, key=lambda unit: latest_pins(unit.members)):
        packing.add(unit.members, int(budget * PINNED_SHARE), PINNED)
    together = list(_together(units, exchanges))
    if rules.order == "tiers":
        _take_by_tier(together, packing, budget, query)
    else:
        spare = 0.0 if rules.to_the_last else _LITTLE_LEFT * budget
        _take_by_score(together, packing, budget, query, spare, rules.standing)

    layout = packing.lay_out()
    dropped += [Dropped(each, DUPLICATE) for each in layout.duplicates]
    named = ids([*layout.recalled, *layout.history]) | ids(each.candidate for each in dropped)
    dropped += [Dropped(each, NO_ROOM) for each in _members(units) if each.message.id not in named]
    kept_as_pins = {number for number, reason in packing.reasons.items() if reason == PINNED}
    dropped = [each._replace(candidate=as_pin(each.candidate)) for each in dropped]
    return Selection(
        tuple(as_pin(each, kept_as_pins) for each in layout.recalled),
        tuple(as_pin(each, kept_as_pins) for each in layout.history),
        tuple(each for each in dropped if not each.candidate.filler),
        tuple(each for each in dropped if each.candidate.filler),
        packing.reasons,
        not_reached,
    )


def _without_too_large(
    units: Sequence[Unit], packing: Packing, budget: int
) -> tuple[list[Unit], tuple[Candidate, ...]]:
    """Return the groups that fit alone or with their exchange, and the messages of the others.

    A long message counts as fitting: its parts are tried when its turn comes.
    """
    fitting, large = [], []
    for exchange in _together(units, packing.exchanges):
        alone = [unit.is_long or packing.could_add(unit.members, budget) for unit in exchange]
        if all(alone) or (len(exchange) > 1 and packing.could_add(_members(exchange), budget)):
            fitting += exchange
        else:
            fitting += [unit for unit, fits in zip(exchange, alone, strict=True) if fits]
            large += [unit for unit, fits in zip(exchange, alone, strict=True) if not fits]
    return fitting, _members(large)


def _take_by_score(
    exchanges: Sequence[list[Unit]],
    packing: Packing,
    budget: int,
    query: str,
    spare: float,
    standing: bool,
) -> None:
    """Try every exchange by priority, long messages part by part; skip those that do not fit.

    If an exchange does not fit whole, its better half is tried, and the other one at its own place
    in the order.

    :param spare: when fewer tokens are left, candidates far below the rest are not tried.
    :param standing: try standing instructions sooner.
    """
    ties, cutter, reason, failed = count(), Excerpter(query), "priority", 0
    last, missed = 0.0, False
    leading = _leading([unit for units in exchanges for unit in units])
    steps: list[tuple[tuple[float, ...], int, list[Unit], int]] = []

    def push(units: list[Unit], part: int = 0) -> None:
        unit = _joined(units)
        share = unit.share(part)
        if part == 0:
            share = max(share, leading.get(unit.members[0].message.id, 0.0))
            share *= STANDING if standing and unit.is_standing else 1
        heapq.heappush(steps, (unit.by_score(share), next(ties), units, part))

    for exchange in exchanges:
        push(exchange)
    while steps and packing.room(budget) > 0:
        (below, *_), _, units, part = heapq.heappop(steps)
        far_below = missed and -below < _FAR_BELOW * last
        if far_below and packing.room(budget) < spare:
            return
        if units[0].is_long:
            if failed < _FAILURES:
                done, fits = _take_parts(units[0].members[0], part, cutter, packing, budget, reason)
                failed, last = (0, -below) if fits else (failed + 1, last)
                missed = missed or not fits
                if part + done < len(units[0].members[0].parts):
                    push(units, part + done)
            continue
        kept, fits, others = _take_exchange(_left(units, packing), packing, budget, reason)
        last, missed = -below if kept else last, missed or not fits
        for unit in others:
            push([unit])


def _take_exchange(
    units: Sequence[Unit], packing: Packing, budget: int, reason: str
) -> tuple[bool, bool, list[Unit]]:
    """Add an exchange, or its better half if not all of it fits.

    :returns: whether anything was added, whether everything was, and the groups to try later.
    """
    if not units or packing.add(_members(units), budget, reason):
        return bool(units), True, []
    better, *others = sorted(units, key=Unit.by_score)
    return bool(others) and packing.add(better.members, budget, reason), False, others


def _leading(units: Sequence[Unit]) -> dict[int, float]:
    """Return the minimum shares of the best match and of the nearest message, by id."""
    embedded = (unit for unit in units if unit.members[0].scores.embedded)
    about_asker = any(member.about_asker for unit in units for member in unit.members)
    by_share = {
        NEAREST: max(embedded, key=lambda unit: unit.members[0].scores.cosine, default=None),
        BEST_ABOUT_ASKER if about_asker else BEST: max(
            units, key=lambda unit: unit.priority, default=None
        ),
    }
    return {unit.members[0].message.id: share for share, unit in by_share.items() if unit}


def _take_parts(
    candidate: Candidate,
    part: int,
    cutter: Excerpter,
    packing: Packing,
    budget: int,
    reason: str,
) -> tuple[int, bool]:
    """Add the next parts of a long message if they fit.

    A fenced block is included whole if that fits, else up to one of its lines. If nothing of the
    message is printed yet and the first part does not fit, its beginning is added.

    :returns: how many parts were tried, and whether they are in the window.
    """
    before = packing.kept(candidate)
    if before and before.spans is None:
        return len(candidate.parts), True
    room, ranked = packing.room(budget), cutter.parts(candidate)
    for size in dict.fromkeys((step_size(part), 1)):
        parts = ranked[part : part + size]
        if least_tokens(candidate.message, parts) > room:
            continue
        for grown in cutter.ways(before or candidate, parts):
            unchanged = before is not None and grown.spans == before.spans
            if unchanged or packing.add((grown,), budget, EXCERPT if grown.spans else reason):
                return size, True
    if part == 0:
        shorter = cutter.shortened(candidate, ranked[part], room)
        any(packing.add((excerpt,), budget, EXCERPT) for excerpt in shorter)
    # A part that does not fit now never will: skip those that follow if they are too large too.
    done = step_size(part)
    rest = (least_tokens(candidate.message, (each,)) > room for each in ranked[part + done :])
    return done + sum(1 for _ in takewhile(bool, rest)), False


def _take_by_tier(
    exchanges: Sequence[list[Unit]], packing: Packing, budget: int, query: str
) -> None:
    """Take exchanges by tier up to the first that does not fit; leave out all after it.

    Of that exchange, the half that comes first may be kept if nothing left out precedes it. An
    exchange that does not even fit an empty window is split into its two groups, and a group that
    does not fit an empty window is skipped.
    """
    whole: list[list[Unit]] = []
    cutter = Excerpter(query)
    for exchange in exchanges:
        together = len(exchange) == 1 or packing.could_add(_members(exchange), budget)
        whole += [exchange] if together else [[unit] for unit in exchange]
    whole.sort(key=lambda each: _joined(each).by_tier(each[0].share()))
    for number, units in enumerate(whole):
        if units[0].is_long:
            if not _take_all_parts(units[0].members[0], cutter, packing, budget):
                return
            continue
        left = _left(units, packing)
        if not left or packing.add(_members(left), budget, "tier"):
            continue
        if len(left) == 1 and not packing.could_add(left[0].members, budget):
            continue
        first = min(left, key=Unit.by_tier)
        after = whole[number + 1 : number + 2]
        if len(left) > 1 and all(first.by_tier() <= _joined(each).by_tier() for each in after):
            packing.add(first.members, budget, "tier")
        return


def _take_all_parts(candidate: Candidate, cutter: Excerpter, packing: Packing, budget: int) -> bool:
    """Take a long message whole, or part by part up to the first that does not fit.

    :returns: whether all of it is in the window.
    """
    if packing.has(candidate) or packing.add((candidate,), budget, "tier"):
        return True
    part, fits = 0, True
    while fits and part < len(candidate.parts):
        done, fits = _take_parts(candidate, part, cutter, packing, budget, "tier")
        part += done
    return fits


def _left(units: Sequence[Unit], packing: Packing) -> list[Unit]:
    """Return the groups that are not kept yet."""
    return [each for each in units if not packing.has(each.members[0])]


def is_question(message: StoredMessage, query: str) -> bool:
    """Return whether a message repeats the question."""
    return bool(query.strip()) and message.content.strip() == query.strip()


def printable(message: StoredMessage, query: str, rules: Rules) -> bool:
    """Return whether a message on its own may be printed if there is room."""
    if is_question(message, query):
        return False
    if message.role is Role.SYSTEM:
        return rules.include_system
    if message.role is Role.TOOL:
        return True
    calls = message.role is Role.ASSISTANT and message.tool_calls
    return bool(message.content.strip() or calls)


def _only_own_calls(candidate: Candidate) -> Candidate:
    """Remove tool calls from messages of other roles, as some imports have them."""
    message = candidate.message
    if message.role is Role.ASSISTANT or not message.tool_calls:
        return candidate
    return replace(candidate, message=replace(message, tool_calls=()))


def _unlike(unit: Unit, least: float) -> bool:
    """Return whether a group has no member that is recent, pinned, similar, or not embedded."""
    return least != 0 and not any(
        each.tier is Tier.RECENT
        or each.pinned
        or not each.scores.embedded
        or each.scores.cosine >= least
        for each in unit.members
    )


def _members(units: Iterable[Unit]) -> tuple[Candidate, ...]:
    return tuple(sorted((each for unit in units for each in unit.members), key=by_time))


def _joined(exchange: Sequence[Unit]) -> Unit:
    return exchange[0] if len(exchange) == 1 else Unit(_members(exchange))


def _tool_units(candidates: Sequence[Candidate]) -> tuple[list[Unit], list[Dropped]]:
    """Join calls with their results; remove calls without results and results without calls."""
    pairs = pair_calls([each.message for each in candidates])
    results: dict[int, dict[int, Candidate]] = {}
    for index, (caller, call) in pairs.items():
        results.setdefault(caller, {})[call] = candidates[index]
    units, dropped = [], []
    for index, each in enumerate(candidates):
        message = each.message
        if message.role is Role.TOOL:
            if index not in pairs:
                dropped.append(Dropped(each, ORPHAN))
            continue
        answered = results.get(index, {})
        if message.tool_calls and not answered and not message.content.strip():
            dropped.append(Dropped(each, UNANSWERED))
            continue
        if len(answered) < len(message.tool_calls):
            calls = tuple(message.tool_calls[call] for call in sorted(answered))
            each = replace(each, message=replace(message, tool_calls=calls))
        units.append(Unit((each, *sorted(answered.values(), key=by_time))))
    return units, dropped


def _exchanges(units: Sequence[Unit], exchanges: Exchanges) -> Iterator[list[Unit]]:
    """Join each question with its answer; other groups stay single."""
    by_first = {unit.members[0].message.id: unit for unit in units}
    joined = {
        question: by_first[answer]
        for question, answer in exchanges.answer_of.items()
        if question in by_first and answer in by_first
    }
    answers = {unit.members[0].message.id for unit in joined.values()}
    for number, unit in by_first.items():
        if number not in answers:
            yield [unit, joined[number]] if number in joined else [unit]


def _together(units: Sequence[Unit], exchanges: Exchanges) -> Iterator[list[Unit]]:
    """Join each question with its answer, except for long messages, which are added in parts."""
    for exchange in _exchanges(units, exchanges):
        if any(unit.is_long for unit in exchange):
            yield from ([unit] for unit in exchange)
        else:
            yield exchange


def _ages(candidates: Iterable[Candidate]) -> set[int]:
    return {each.age for each in candidates if each.age is not None}


def _newest(units: Sequence[Unit], count: int) -> list[Unit]:
    """Return the groups with the newest messages of history's instance."""
    own = [each for each in units if each.age is not None and not is_system(each.members[0])]
    chosen: list[Unit] = []
    for unit in sorted(own, key=lambda each: each.age or 0):
        if sum(len(each.members) for each in chosen) >= count:
            break
        chosen.append(unit)
    return chosen
