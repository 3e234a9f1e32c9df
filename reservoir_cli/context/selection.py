"""Choose the messages that go into the window within the budget. Pure.

Messages are chosen in groups; see ``message_groups``. A long message is added part by part.
``layout`` tracks the tokens.
"""

import heapq
from collections.abc import Iterable, Sequence, Set
from itertools import count, takewhile
from typing import NamedTuple

from reservoir_cli.context.candidate import Candidate, Dropped, Selection, Tier
from reservoir_cli.context.excerpts import Excerpter, least_tokens, step_size
from reservoir_cli.context.exchanges import Exchanges
from reservoir_cli.context.layout import Costs, Packing, ids, is_system
from reservoir_cli.context.message_groups import (
    MessageGroup,
    group_tool_calls,
    join_short_exchanges,
    members_by_time,
    merge_groups,
    remove_foreign_calls,
)
from reservoir_cli.context.pins import keep_pins, kept_pins, mark_pin
from reservoir_cli.messages import Role, StoredMessage

NO_ROOM = "no room"
EXCERPT = "excerpt"
TOO_LARGE = "too large"
DUPLICATE = "duplicate"
QUESTION = "question"
UNLIKE = "below min_cosine"

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
        remove_foreign_calls(candidate)
        for candidate in pool
        if is_printable(candidate.message, query, rules)
    ]
    groups, dropped = group_tool_calls(eligible)
    dropped += [
        Dropped(candidate, QUESTION) for candidate in pool if is_question(candidate.message, query)
    ]
    exchanges = Exchanges.of([candidate.message for candidate in pool])
    by_age = {candidate.age: candidate for candidate in pool if candidate.age is not None}
    # Messages missing from the groups at this point do not end the run of the newest messages.
    packing = Packing(
        costs, exchanges, by_age, _ages_of(pool) - _ages_of(members_by_time(groups)) | unread
    )
    groups, too_large = _separate_too_large(groups, packing, budget)
    packing.passed |= _ages_of(too_large)
    dropped += [Dropped(candidate, TOO_LARGE) for candidate in too_large]
    unlike = members_by_time(group for group in groups if _is_unlike(group, rules.min_cosine))
    dropped += [Dropped(candidate, UNLIKE) for candidate in unlike]
    groups = [group for group in groups if not _is_unlike(group, rules.min_cosine)]

    for group in _newest_groups(groups, rules.min_history_messages):
        if not packing.add(group.members, int(budget * NEWEST_SHARE), "newest"):
            break
    keep_pins(groups, packing, budget)
    exchange_groups = list(join_short_exchanges(groups, exchanges))
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
        for candidate in members_by_time(groups)
        if candidate.message.id not in accounted
    ]
    kept_as_pins = kept_pins(packing)
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
    for exchange in join_short_exchanges(groups, packing.exchanges):
        fits_alone = [
            group.is_long or packing.could_add(group.members, budget) for group in exchange
        ]
        if all(fits_alone) or (
            len(exchange) > 1 and packing.could_add(members_by_time(exchange), budget)
        ):
            fitting += exchange
        else:
            fitting += [group for group, fits in zip(exchange, fits_alone, strict=True) if fits]
            too_large += [
                group for group, fits in zip(exchange, fits_alone, strict=True) if not fits
            ]
    return fitting, members_by_time(too_large)


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
        group = merge_groups(groups)
        share = group.share(part)
        if part == 0:
            share = max(share, leading.get(group.members[0].message.id, 0.0))
            share *= STANDING_FACTOR if standing and group.is_standing else 1
        heapq.heappush(steps, (group.by_score(share), next(ties), groups, part))

    for exchange in exchanges:
        push(exchange)
    while steps and packing.has_room(0, budget):
        (below, *_), _, groups, part = heapq.heappop(steps)
        far_below = missed and -below < _FAR_BELOW * last
        if far_below and not packing.has_room(spare, budget):
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
    if not groups:
        return False, True, []
    if all(packing.is_hopeless(group.members, budget) for group in groups):
        return False, False, []
    if packing.add(members_by_time(groups), budget, reason):
        return True, True, []
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
        fits = len(exchange) == 1 or packing.could_add(members_by_time(exchange), budget)
        whole += [exchange] if fits else [[group] for group in exchange]
    whole.sort(key=lambda groups: merge_groups(groups).by_tier(groups[0].share()))
    for number, groups in enumerate(whole):
        if groups[0].is_long:
            if not _take_all_parts(groups[0].members[0], excerpter, packing, budget):
                return
            continue
        pending = _pending(groups, packing)
        if not pending or packing.add(members_by_time(pending), budget, "tier"):
            continue
        if len(pending) == 1 and not packing.could_add(pending[0].members, budget):
            continue
        first = min(pending, key=MessageGroup.by_tier)
        after = whole[number + 1 : number + 2]
        if len(pending) > 1 and all(
            first.by_tier() <= merge_groups(following).by_tier() for following in after
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


def _is_unlike(group: MessageGroup, least: float) -> bool:
    """Return whether a group has no member that is recent, pinned, similar, or not embedded."""
    return least != 0 and not any(
        member.tier is Tier.RECENT
        or member.pinned
        or not member.scores.embedded
        or member.scores.cosine >= least
        for member in group.members
    )


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
