"""Fill a window by priority or tier by tier, long messages part by part. Pure."""

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, takewhile

from reservoir_cli.context import window_constants as constants
from reservoir_cli.context.candidate import Candidate
from reservoir_cli.context.excerpts import Excerpter, least_tokens, step_size
from reservoir_cli.context.message_groups import (
    MessageGroup,
    members_by_time,
    merge_groups,
)
from reservoir_cli.context.window_builder import WindowBuilder

_FAILURES = 256  # after this many parts of long messages in a row did not fit, no more are tried
_PRIORITY, _TIER, _EXCERPT = "priority", "tier", "excerpt"  # the reasons for keeping a message


def fill_by_score(
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
    filling = _Filling(window, budget, Excerpter(query), _PRIORITY, standing)
    filling.leading = _minimum_shares([group for groups in exchanges for group in groups])
    for exchange in exchanges:
        filling.push(exchange)
    filling.run(spare)


@dataclass(repr=False, eq=False)
class _Filling:
    """The exchanges that are still to be tried, and what became of the last ones.

    :ivar steps: a heap of exchanges and parts of long messages, by priority.
    :ivar deferred: those that exceed the running session's share.
    :ivar failed: how many parts in a row did not fit.
    """

    window: WindowBuilder
    budget: int
    excerpter: Excerpter
    reason: str
    standing: bool = False
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
            share *= constants.STANDING_FACTOR if self.standing and group.is_standing else 1
        heapq.heappush(self.steps, (group.by_score(share), next(self.ties), groups, part))

    def run(self, spare: float) -> None:
        """Try everything in order while there is room."""
        while (self.steps or self.deferred) and self.window.has_room(0, self.budget):
            if not self.steps:
                self._push_deferred()
            (below, *_), _, groups, part = heapq.heappop(self.steps)
            far_below = self.missed and -below < constants.FAR_BELOW * self.last
            if far_below and not self.window.has_room(spare, self.budget):
                self.steps.clear()
            elif self._exceeds_share(groups):
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
        tried, fits = self.add_parts(message, part)
        self.failed, self.last = (0, priority) if fits else (self.failed + 1, self.last)
        self.missed = self.missed or not fits
        if part + tried < len(message.parts):
            self.push(groups, part + tried)

    def _take_exchange(self, groups: list[MessageGroup], priority: float) -> None:
        is_added, fits, others = self._add_exchange(self.find_pending(groups))
        self.last = priority if is_added else self.last
        self.missed = self.missed or not fits
        for group in others:
            self.push([group])

    def _exceeds_share(self, groups: Sequence[MessageGroup]) -> bool:
        members = merge_groups(groups).members
        if not groups[0].is_long:
            return self.window.exceeds_share(members)
        return self.window.exceeds_share(members, members[0].message.tokens / len(members[0].parts))

    def _add_exchange(
        self, groups: Sequence[MessageGroup]
    ) -> tuple[bool, bool, list[MessageGroup]]:
        """Add an exchange, or its better half if not all of it fits.

        :returns: whether anything was added, whether everything was, and the groups to try later.
        """
        if not groups:
            return False, True, []
        if all(self.window.is_hopeless(group.members, self.budget) for group in groups):
            return False, False, []
        if self.add(merge_groups(groups).members):
            return True, True, []
        better, *others = sorted(groups, key=MessageGroup.by_score)
        return bool(others) and self.add(better.members), False, others

    def add(self, members: Sequence[Candidate]) -> bool:
        """Keep messages if they fit."""
        return self.window.add(members, self.budget, self.reason)

    def find_pending(self, groups: Sequence[MessageGroup]) -> list[MessageGroup]:
        """Return the groups that are not kept yet."""
        kept = self.window.kept
        return [group for group in groups if group.members[0].message.id not in kept]

    def add_all_parts(self, candidate: Candidate) -> bool:
        """Take a long message whole, or the parts before one that does not fit; whether all fit."""
        if candidate.message.id in self.window.kept or self.add((candidate,)):
            return True
        part, fits = 0, True
        while fits and part < len(candidate.parts):
            tried, fits = self.add_parts(candidate, part)
            part += tried
        return fits

    def add_parts(self, candidate: Candidate, part: int) -> tuple[int, bool]:
        """Add the next parts of a long message if they fit, its beginning if the first does not.

        :returns: how many parts were tried, and whether they are in the window.
        """
        window, budget = self.window, self.budget
        earlier = window.kept.get(candidate.message.id)
        if earlier and earlier.spans is None:
            return len(candidate.parts), True
        room, ranked = window.room(budget), self.excerpter.parts(candidate)
        for size in dict.fromkeys((step_size(part), 1)):
            parts = ranked[part : part + size]
            if least_tokens(candidate.message, parts) > room:
                continue
            for grown in self.excerpter.grow(earlier or candidate, parts):
                unchanged = earlier is not None and grown.spans == earlier.spans
                reason = _EXCERPT if grown.spans else self.reason
                if unchanged or window.add((grown,), budget, reason):
                    return size, True
        if part == 0:
            shorter = self.excerpter.shorten(candidate, ranked[part], room)
            any(window.add((excerpt,), budget, _EXCERPT) for excerpt in shorter)
        # A part that does not fit now never will: skip those after it if they are too large too.
        tried = step_size(part)
        rest = (least_tokens(candidate.message, (span,)) > room for span in ranked[part + tried :])
        return tried + sum(1 for _ in takewhile(bool, rest)), False


def _minimum_shares(groups: Sequence[MessageGroup]) -> dict[int, float]:
    """Return the minimum shares of the best match and of the nearest message, by id."""
    embedded = (group for group in groups if group.members[0].scores.embedded)
    about_asker = any(member.about_asker for group in groups for member in group.members)
    by_share = {
        constants.NEAREST_SHARE: max(
            embedded, key=lambda group: group.members[0].scores.cosine, default=None
        ),
        constants.BEST_SHARE_ABOUT_USER if about_asker else constants.BEST_SHARE: max(
            groups, key=lambda group: group.priority, default=None
        ),
    }
    return {group.members[0].message.id: share for share, group in by_share.items() if group}


def fill_by_tier(
    exchanges: Sequence[list[MessageGroup]], window: WindowBuilder, budget: int, query: str
) -> None:
    """Take exchanges by tier up to the first that does not fit; leave out all after it.

    Of that exchange, the half that comes first may be kept if nothing left out precedes it. An
    exchange that does not even fit an empty window is split into its two groups, and a group that
    does not fit an empty window is skipped.
    """
    whole: list[list[MessageGroup]] = []
    filling = _Filling(window, budget, Excerpter(query), _TIER)
    for exchange in exchanges:
        fits = len(exchange) == 1 or window.could_add(members_by_time(exchange), budget)
        whole += [exchange] if fits else [[group] for group in exchange]
    whole.sort(key=lambda groups: merge_groups(groups).by_tier(groups[0].share()))
    for number, groups in enumerate(whole):
        if groups[0].is_long:
            if not filling.add_all_parts(groups[0].members[0]):
                return
            continue
        pending = filling.find_pending(groups)
        if not pending or filling.add(members_by_time(pending)):
            continue
        if len(pending) == 1 and not window.could_add(pending[0].members, budget):
            continue
        first = min(pending, key=MessageGroup.by_tier)
        after = whole[number + 1 : number + 2]
        if len(pending) > 1 and all(
            first.by_tier() <= merge_groups(following).by_tier() for following in after
        ):
            filling.add(first.members)
        return
