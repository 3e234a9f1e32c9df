"""Fill the budget tier by tier: ``order = "tiers"``. Pure."""

from collections.abc import Sequence

from reservoir_cli.context.add_message_parts import add_parts
from reservoir_cli.context.candidate import Candidate
from reservoir_cli.context.excerpts import Excerpter
from reservoir_cli.context.message_groups import (
    MessageGroup,
    find_pending,
    members_by_time,
    merge_groups,
)
from reservoir_cli.context.window_builder import WindowBuilder


def choose_by_tier(
    exchanges: Sequence[list[MessageGroup]], window: WindowBuilder, budget: int, query: str
) -> None:
    """Take exchanges by tier up to the first that does not fit; leave out all after it.

    Of that exchange, the half that comes first may be kept if nothing left out precedes it. An
    exchange that does not even fit an empty window is split into its two groups, and a group that
    does not fit an empty window is skipped.
    """
    whole: list[list[MessageGroup]] = []
    excerpter = Excerpter(query)
    for exchange in exchanges:
        fits = len(exchange) == 1 or window.could_add(members_by_time(exchange), budget)
        whole += [exchange] if fits else [[group] for group in exchange]
    whole.sort(key=lambda groups: merge_groups(groups).by_tier(groups[0].share()))
    for number, groups in enumerate(whole):
        if groups[0].is_long:
            if not _add_all_parts(groups[0].members[0], excerpter, window, budget):
                return
            continue
        pending = find_pending(groups, window)
        if not pending or window.add(members_by_time(pending), budget, "tier"):
            continue
        if len(pending) == 1 and not window.could_add(pending[0].members, budget):
            continue
        first = min(pending, key=MessageGroup.by_tier)
        after = whole[number + 1 : number + 2]
        if len(pending) > 1 and all(
            first.by_tier() <= merge_groups(following).by_tier() for following in after
        ):
            window.add(first.members, budget, "tier")
        return


def _add_all_parts(
    candidate: Candidate, excerpter: Excerpter, window: WindowBuilder, budget: int
) -> bool:
    """Take a long message whole, or part by part up to the first that does not fit.

    :returns: whether all of it is in the window.
    """
    if candidate.message.id in window.kept or window.add((candidate,), budget, "tier"):
        return True
    part, fits = 0, True
    while fits and part < len(candidate.parts):
        tried, fits = add_parts(candidate, part, excerpter, window, budget, "tier")
        part += tried
    return fits
