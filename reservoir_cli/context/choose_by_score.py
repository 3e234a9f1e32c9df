"""Fill the budget by priority: ``order = "score"``. Pure."""

import heapq
from collections.abc import Sequence
from itertools import count

from reservoir_cli.context.add_message_parts import add_parts
from reservoir_cli.context.excerpts import Excerpter
from reservoir_cli.context.layout import Packing
from reservoir_cli.context.message_groups import (
    MessageGroup,
    find_pending,
    merge_groups,
)

#: Once something did not fit and less than the first share of the budget is left, candidates whose
#: priority is below the second share of the last one taken are not tried.
LITTLE_LEFT, _FAR_BELOW = 0.15, 0.75
#: After this many parts of long messages in a row did not fit, no more are tried.
_FAILURES = 256
#: The first part of the best match is ranked at no less than this share of its priority; at the
#: second one if the question is about the user.
BEST_SHARE, BEST_SHARE_ABOUT_USER = 1.0, 0.92
#: The same for the message with the highest cosine.
NEAREST_SHARE = 0.7
#: A standing instruction is ranked at this multiple of its priority.
STANDING_FACTOR = 1.4


def choose_by_score(
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
                tried, fits = add_parts(
                    groups[0].members[0], part, excerpter, packing, budget, reason
                )
                failed, last = (0, -below) if fits else (failed + 1, last)
                missed = missed or not fits
                if part + tried < len(groups[0].members[0].parts):
                    push(groups, part + tried)
            continue
        kept, fits, others = _take_exchange(find_pending(groups, packing), packing, budget, reason)
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
    if packing.add(merge_groups(groups).members, budget, reason):
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
