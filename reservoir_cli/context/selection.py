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
from reservoir_cli.context.pins import PINNED, PINNED_SHARE, mark_pin, pin_sort_key
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
BEST_SHARE, BEST_SHARE_ABOUT_USER = 1.0, 0.92
#: The same for the message with the highest cosine.
NEAREST_SHARE = 0.7
#: A standing instruction is ranked at this multiple of its priority.
STANDING_FACTOR = 1.4


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


class MessageGroup(NamedTuple):
    """Messages that are kept or dropped together, oldest first."""

    members: tuple[Candidate, ...]

    @property
    def priority(self) -> float:
        """The highest priority of its members."""
        return max(member.scores.priority for member in self.members)

    @property
    def is_long(self) -> bool:
        """Whether it is a single message that is added part by part."""
        return len(self.members) == 1 and bool(self.members[0].parts)

    @property
    def is_standing(self) -> bool:
        """Whether a member is a standing instruction."""
        return any(is_standing(member.message) for member in self.members)

    def share(self, part: int = 0) -> float:
        """Return the share of its priority to rank it by: below 1 for parts of a message."""
        return discount(self.members[0], part) if self.is_long else 1.0

    @property
    def tier(self) -> int:
        """The rank of its best member's tier, 0 for recent."""
        return min(_TIERS.index(member.tier) for member in self.members)

    @property
    def age(self) -> int | None:
        """The age of its newest member in history's instance."""
        ages = [member.age for member in self.members if member.age is not None]
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
    eligible = [
        _remove_foreign_calls(candidate)
        for candidate in pool
        if is_printable(candidate.message, query, rules)
    ]
    groups, dropped = _group_tool_calls(eligible)
    dropped += [
        Dropped(candidate, QUESTION) for candidate in pool if is_question(candidate.message, query)
    ]
    exchanges = Exchanges.of([candidate.message for candidate in pool])
    by_age = {candidate.age: candidate for candidate in pool if candidate.age is not None}
    # Messages missing from the groups at this point do not end the run of the newest messages.
    packing = Packing(
        costs, exchanges, by_age, _ages_of(pool) - _ages_of(_members(groups)) | unread
    )
    groups, too_large = _separate_too_large(groups, packing, budget)
    packing.passed |= _ages_of(too_large)
    dropped += [Dropped(candidate, TOO_LARGE) for candidate in too_large]
    unlike = _members(group for group in groups if _is_unlike(group, rules.min_cosine))
    dropped += [Dropped(candidate, UNLIKE) for candidate in unlike]
    groups = [group for group in groups if not _is_unlike(group, rules.min_cosine)]

    for group in _newest_groups(groups, rules.min_history_messages):
        if not packing.add(group.members, int(budget * NEWEST_SHARE), "newest"):
            break
    pinned_groups = [group for group in groups if pin_sort_key(group.members)]
    for group in sorted(pinned_groups, key=lambda group: pin_sort_key(group.members)):
        packing.add(group.members, int(budget * PINNED_SHARE), PINNED)
    exchange_groups = list(_join_short_exchanges(groups, exchanges))
    if rules.order == "tiers":
        _take_by_tier(exchange_groups, packing, budget, query)
    else:
        spare = 0.0 if rules.to_the_last else _LITTLE_LEFT * budget
        _take_by_score(exchange_groups, packing, budget, query, spare, rules.standing)

    layout = packing.lay_out()
    dropped += [Dropped(candidate, DUPLICATE) for candidate in layout.duplicates]
    accounted = ids([*layout.recalled, *layout.history]) | ids(drop.candidate for drop in dropped)
    dropped += [
        Dropped(candidate, NO_ROOM)
        for candidate in _members(groups)
        if candidate.message.id not in accounted
    ]
    kept_as_pins = {number for number, reason in packing.reasons.items() if reason == PINNED}
    dropped = [drop._replace(candidate=mark_pin(drop.candidate)) for drop in dropped]
    return Selection(
        tuple(mark_pin(candidate, kept_as_pins) for candidate in layout.recalled),
        tuple(mark_pin(candidate, kept_as_pins) for candidate in layout.history),
        tuple(drop for drop in dropped if not drop.candidate.filler),
        tuple(drop for drop in dropped if drop.candidate.filler),
        packing.reasons,
        not_reached,
    )


def _separate_too_large(
    groups: Sequence[MessageGroup], packing: Packing, budget: int
) -> tuple[list[MessageGroup], tuple[Candidate, ...]]:
    """Return the groups that fit alone or with their exchange, and the messages of the others.

    A long message counts as fitting: its parts are tried when its turn comes.
    """
    fitting, too_large = [], []
    for exchange in _join_short_exchanges(groups, packing.exchanges):
        fits_alone = [
            group.is_long or packing.could_add(group.members, budget) for group in exchange
        ]
        if all(fits_alone) or (len(exchange) > 1 and packing.could_add(_members(exchange), budget)):
            fitting += exchange
        else:
            fitting += [group for group, fits in zip(exchange, fits_alone, strict=True) if fits]
            too_large += [
                group for group, fits in zip(exchange, fits_alone, strict=True) if not fits
            ]
    return fitting, _members(too_large)


def _take_by_score(
    exchanges: Sequence[list[MessageGroup]],
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
    ties, excerpter, reason, failed = count(), Excerpter(query), "priority", 0
    last, missed = 0.0, False
    leading = _minimum_shares([group for groups in exchanges for group in groups])
    steps: list[tuple[tuple[float, ...], int, list[MessageGroup], int]] = []

    def push(groups: list[MessageGroup], part: int = 0) -> None:
        group = _merge(groups)
        share = group.share(part)
        if part == 0:
            share = max(share, leading.get(group.members[0].message.id, 0.0))
            share *= STANDING_FACTOR if standing and group.is_standing else 1
        heapq.heappush(steps, (group.by_score(share), next(ties), groups, part))

    for exchange in exchanges:
        push(exchange)
    while steps and packing.room(budget) > 0:
        (below, *_), _, groups, part = heapq.heappop(steps)
        far_below = missed and -below < _FAR_BELOW * last
        if far_below and packing.room(budget) < spare:
            return
        if groups[0].is_long:
            if failed < _FAILURES:
                tried, fits = _take_parts(
                    groups[0].members[0], part, excerpter, packing, budget, reason
                )
                failed, last = (0, -below) if fits else (failed + 1, last)
                missed = missed or not fits
                if part + tried < len(groups[0].members[0].parts):
                    push(groups, part + tried)
            continue
        kept, fits, others = _take_exchange(_pending(groups, packing), packing, budget, reason)
        last, missed = -below if kept else last, missed or not fits
        for group in others:
            push([group])


def _take_exchange(
    groups: Sequence[MessageGroup], packing: Packing, budget: int, reason: str
) -> tuple[bool, bool, list[MessageGroup]]:
    """Add an exchange, or its better half if not all of it fits.

    :returns: whether anything was added, whether everything was, and the groups to try later.
    """
    if not groups or packing.add(_members(groups), budget, reason):
        return bool(groups), True, []
    better, *others = sorted(groups, key=MessageGroup.by_score)
    return bool(others) and packing.add(better.members, budget, reason), False, others


def _minimum_shares(groups: Sequence[MessageGroup]) -> dict[int, float]:
    """Return the minimum shares of the best match and of the nearest message, by id."""
    embedded = (group for group in groups if group.members[0].scores.embedded)
    about_asker = any(member.about_asker for group in groups for member in group.members)
    by_share = {
        NEAREST_SHARE: max(
            embedded, key=lambda group: group.members[0].scores.cosine, default=None
        ),
        BEST_SHARE_ABOUT_USER if about_asker else BEST_SHARE: max(
            groups, key=lambda group: group.priority, default=None
        ),
    }
    return {group.members[0].message.id: share for share, group in by_share.items() if group}


def _take_parts(
    candidate: Candidate,
    part: int,
    excerpter: Excerpter,
    packing: Packing,
    budget: int,
    reason: str,
) -> tuple[int, bool]:
    """Add the next parts of a long message if they fit.

    A fenced block is included whole if that fits, else up to one of its lines. If nothing of the
    message is printed yet and the first part does not fit, its beginning is added.

    :returns: how many parts were tried, and whether they are in the window.
    """
    earlier = packing.get(candidate)
    if earlier and earlier.spans is None:
        return len(candidate.parts), True
    room, ranked = packing.room(budget), excerpter.parts(candidate)
    for size in dict.fromkeys((step_size(part), 1)):
        parts = ranked[part : part + size]
        if least_tokens(candidate.message, parts) > room:
            continue
        for grown in excerpter.grow(earlier or candidate, parts):
            unchanged = earlier is not None and grown.spans == earlier.spans
            if unchanged or packing.add((grown,), budget, EXCERPT if grown.spans else reason):
                return size, True
    if part == 0:
        shorter = excerpter.shorten(candidate, ranked[part], room)
        any(packing.add((excerpt,), budget, EXCERPT) for excerpt in shorter)
    # A part that does not fit now never will: skip those that follow if they are too large too.
    tried = step_size(part)
    rest = (least_tokens(candidate.message, (span,)) > room for span in ranked[part + tried :])
    return tried + sum(1 for _ in takewhile(bool, rest)), False


def _take_by_tier(
    exchanges: Sequence[list[MessageGroup]], packing: Packing, budget: int, query: str
) -> None:
    """Take exchanges by tier up to the first that does not fit; leave out all after it.

    Of that exchange, the half that comes first may be kept if nothing left out precedes it. An
    exchange that does not even fit an empty window is split into its two groups, and a group that
    does not fit an empty window is skipped.
    """
    whole: list[list[MessageGroup]] = []
    excerpter = Excerpter(query)
    for exchange in exchanges:
        fits = len(exchange) == 1 or packing.could_add(_members(exchange), budget)
        whole += [exchange] if fits else [[group] for group in exchange]
    whole.sort(key=lambda groups: _merge(groups).by_tier(groups[0].share()))
    for number, groups in enumerate(whole):
        if groups[0].is_long:
            if not _take_all_parts(groups[0].members[0], excerpter, packing, budget):
                return
            continue
        pending = _pending(groups, packing)
        if not pending or packing.add(_members(pending), budget, "tier"):
            continue
        if len(pending) == 1 and not packing.could_add(pending[0].members, budget):
            continue
        first = min(pending, key=MessageGroup.by_tier)
        after = whole[number + 1 : number + 2]
        if len(pending) > 1 and all(
            first.by_tier() <= _merge(following).by_tier() for following in after
        ):
            packing.add(first.members, budget, "tier")
        return


def _take_all_parts(
    candidate: Candidate, excerpter: Excerpter, packing: Packing, budget: int
) -> bool:
    """Take a long message whole, or part by part up to the first that does not fit.

    :returns: whether all of it is in the window.
    """
    if packing.has(candidate) or packing.add((candidate,), budget, "tier"):
        return True
    part, fits = 0, True
    while fits and part < len(candidate.parts):
        tried, fits = _take_parts(candidate, part, excerpter, packing, budget, "tier")
        part += tried
    return fits


def _pending(groups: Sequence[MessageGroup], packing: Packing) -> list[MessageGroup]:
    """Return the groups that are not kept yet."""
    return [group for group in groups if not packing.has(group.members[0])]


def is_question(message: StoredMessage, query: str) -> bool:
    """Return whether a message repeats the question."""
    return bool(query.strip()) and message.content.strip() == query.strip()


def is_printable(message: StoredMessage, query: str, rules: Rules) -> bool:
    """Return whether a message on its own may be printed if there is room."""
    if is_question(message, query):
        return False
    if message.role is Role.SYSTEM:
        return rules.include_system
    if message.role is Role.TOOL:
        return True
    calls = message.role is Role.ASSISTANT and message.tool_calls
    return bool(message.content.strip() or calls)


def _remove_foreign_calls(candidate: Candidate) -> Candidate:
    """Remove tool calls from messages of other roles, as some imports have them."""
    message = candidate.message
    if message.role is Role.ASSISTANT or not message.tool_calls:
        return candidate
    return replace(candidate, message=replace(message, tool_calls=()))


def _is_unlike(group: MessageGroup, least: float) -> bool:
    """Return whether a group has no member that is recent, pinned, similar, or not embedded."""
    return least != 0 and not any(
        member.tier is Tier.RECENT
        or member.pinned
        or not member.scores.embedded
        or member.scores.cosine >= least
        for member in group.members
    )


def _members(groups: Iterable[MessageGroup]) -> tuple[Candidate, ...]:
    return tuple(sorted((member for group in groups for member in group.members), key=by_time))


def _merge(exchange: Sequence[MessageGroup]) -> MessageGroup:
    return exchange[0] if len(exchange) == 1 else MessageGroup(_members(exchange))


def _group_tool_calls(
    candidates: Sequence[Candidate],
) -> tuple[list[MessageGroup], list[Dropped]]:
    """Join calls with their results; remove calls without results and results without calls."""
    pairs = pair_calls([candidate.message for candidate in candidates])
    results: dict[int, dict[int, Candidate]] = {}
    for index, (caller, call) in pairs.items():
        results.setdefault(caller, {})[call] = candidates[index]
    groups, dropped = [], []
    for index, candidate in enumerate(candidates):
        message = candidate.message
        if message.role is Role.TOOL:
            if index not in pairs:
                dropped.append(Dropped(candidate, ORPHAN))
            continue
        answered = results.get(index, {})
        if message.tool_calls and not answered and not message.content.strip():
            dropped.append(Dropped(candidate, UNANSWERED))
            continue
        if len(answered) < len(message.tool_calls):
            calls = tuple(message.tool_calls[call] for call in sorted(answered))
            candidate = replace(candidate, message=replace(message, tool_calls=calls))
        groups.append(MessageGroup((candidate, *sorted(answered.values(), key=by_time))))
    return groups, dropped


def _join_answers(
    groups: Sequence[MessageGroup], exchanges: Exchanges
) -> Iterator[list[MessageGroup]]:
    """Join each question with its answer; other groups stay single."""
    by_first = {group.members[0].message.id: group for group in groups}
    joined = {
        question: by_first[answer]
        for question, answer in exchanges.answer_of.items()
        if question in by_first and answer in by_first
    }
    answers = {group.members[0].message.id for group in joined.values()}
    for number, group in by_first.items():
        if number not in answers:
            yield [group, joined[number]] if number in joined else [group]


def _join_short_exchanges(
    groups: Sequence[MessageGroup], exchanges: Exchanges
) -> Iterator[list[MessageGroup]]:
    """Join each question with its answer, except for long messages, which are added in parts."""
    for exchange in _join_answers(groups, exchanges):
        if any(group.is_long for group in exchange):
            yield from ([group] for group in exchange)
        else:
            yield exchange


def _ages_of(candidates: Iterable[Candidate]) -> set[int]:
    return {candidate.age for candidate in candidates if candidate.age is not None}


def _newest_groups(groups: Sequence[MessageGroup], count: int) -> list[MessageGroup]:
    """Return the groups with the newest messages of history's instance."""
    own_groups = [
        group for group in groups if group.age is not None and not is_system(group.members[0])
    ]
    chosen: list[MessageGroup] = []
    for group in sorted(own_groups, key=lambda group: group.age or 0):
        if sum(len(group.members) for group in chosen) >= count:
            break
        chosen.append(group)
    return chosen
