"""Fill the budget by priority: ``order = "score"``. Pure."""

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from reservoir_cli.context.add_message_parts import add_parts
from reservoir_cli.context.excerpts import Excerpter
from reservoir_cli.context.message_groups import (
    MessageGroup,
    find_pending,
    merge_groups,
)
from reservoir_cli.context.window_builder import WindowBuilder

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
_REASON = "priority"
#: A standing instruction is ranked at this multiple of its priority.
STANDING_FACTOR = 1.4


def choose_by_score(
    exchanges: Sequence[list[MessageGroup]],
    window: WindowBuilder,
    budget: int,
    query: str,
    spare: float,
    standing: bool,
) -> None:
    """Try every exchange by priority, long messages part by part; skip those that do not fit.

    If an exchange does not fit whole, its better half is tried, and the other one at its own place
    in the order. Messages of the running session beyond its share are tried after everything else.

    :param spare: when fewer tokens are left, candidates far below the rest are not tried.
    :param standing: try standing instructions sooner.
    """
    filling = _Filling(window, budget, Excerpter(query), standing)
    filling.leading = _minimum_shares([group for groups in exchanges for group in groups])
    for exchange in exchanges:
        filling.push(exchange)
    filling.run(spare)


@dataclass
class _Filling:
    """The exchanges that are still to be tried, and what became of the last ones.

    :ivar steps: a heap of exchanges and parts of long messages, by priority.
    :ivar deferred: those that exceed the running session's share.
    :ivar last: the priority of the last one taken.
    :ivar missed: whether anything did not fit.
    :ivar failed: how many parts in a row did not fit.
    """

    window: WindowBuilder
    budget: int
    excerpter: Excerpter
    standing: bool
    leading: Mapping[int, float] = field(default_factory=dict)
    steps: list[tuple[tuple[float, ...], int, list[MessageGroup], int]] = field(
        default_factory=list
    )
    deferred: list[tuple[list[MessageGroup], int]] = field(default_factory=list)
    ties: Iterator[int] = field(default_factory=count)
    last: float = 0.0
    missed: bool = False
    failed: int = 0

    def push(self, groups: list[MessageGroup], part: int = 0) -> None:
        """Add an exchange, or a part of a long message."""
        group = merge_groups(groups)
        share = group.share(part)
        if part == 0:
            share = max(share, self.leading.get(group.members[0].message.id, 0.0))
            share *= STANDING_FACTOR if self.standing and group.is_standing else 1
        heapq.heappush(self.steps, (group.by_score(share), next(self.ties), groups, part))

    def run(self, spare: float) -> None:
        """Try everything in order while there is room."""
        while (self.steps or self.deferred) and self.window.has_room(0, self.budget):
            if not self.steps:
                self._push_deferred()
            (below, *_), _, groups, part = heapq.heappop(self.steps)
            far_below = self.missed and -below < _FAR_BELOW * self.last
            if far_below and not self.window.has_room(spare, self.budget):
                self.steps.clear()
            elif _exceeds_share(groups, self.window):
                self.deferred.append((groups, part))
            elif groups[0].is_long:
                self._take_parts(groups, part, -below)
            else:
                self._take_exchange(groups, -below)

    def _push_deferred(self) -> None:
        self.window.most_running = math.inf
        for groups, part in self.deferred:
            self.push(groups, part)
        self.deferred.clear()

    def _take_parts(self, groups: list[MessageGroup], part: int, priority: float) -> None:
        if self.failed >= _FAILURES:
            return
        message = groups[0].members[0]
        tried, fits = add_parts(message, part, self.excerpter, self.window, self.budget, _REASON)
        self.failed, self.last = (0, priority) if fits else (self.failed + 1, self.last)
        self.missed = self.missed or not fits
        if part + tried < len(message.parts):
            self.push(groups, part + tried)

    def _take_exchange(self, groups: list[MessageGroup], priority: float) -> None:
        pending = find_pending(groups, self.window)
        kept, fits, others = _take_exchange(pending, self.window, self.budget, _REASON)
        self.last = priority if kept else self.last
        self.missed = self.missed or not fits
        for group in others:
            self.push([group])


def _exceeds_share(groups: Sequence[MessageGroup], window: WindowBuilder) -> bool:
    """Return whether the running session would take more than its share with an exchange."""
    members = merge_groups(groups).members
    if not groups[0].is_long:
        return window.exceeds_share(members)
    return window.exceeds_share(members, members[0].message.tokens / len(members[0].parts))


def _take_exchange(
    groups: Sequence[MessageGroup], window: WindowBuilder, budget: int, reason: str
) -> tuple[bool, bool, list[MessageGroup]]:
    """Add an exchange, or its better half if not all of it fits.

    :returns: whether anything was added, whether everything was, and the groups to try later.
    """
    if not groups:
        return False, True, []
    if all(window.is_hopeless(group.members, budget) for group in groups):
        return False, False, []
    if window.add(merge_groups(groups).members, budget, reason):
        return True, True, []
    better, *others = sorted(groups, key=MessageGroup.by_score)
    return bool(others) and window.add(better.members, budget, reason), False, others


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
