"""Pinned messages: kept before all but the newest, within a share of the budget. Pure."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from reservoir_cli.context.candidate import Candidate, Tier
from reservoir_cli.context.message_groups import MessageGroup
from reservoir_cli.context.window_builder import WindowBuilder

#: The share of the budget for pinned and newest messages together.
PINNED_SHARE = 1 / 4
#: The reason given for keeping them.
_PINNED = "pinned"


def keep_pins(groups: Sequence[MessageGroup], window: WindowBuilder, budget: int) -> None:
    """Keep the groups with pinned messages that fit, the newest pin first."""
    pinned = [group for group in groups if any(member.pinned for member in group.members)]
    for group in sorted(pinned, key=lambda group: _sort_key(group.members)):
        window.add(group.members, int(budget * PINNED_SHARE), _PINNED)


def kept_pins(window: WindowBuilder) -> set[int]:
    """Return the ids of the messages that were kept as pins or with them."""
    return {number for number, reason in window.reasons.items() if reason == _PINNED}


def mark_pin(candidate: Candidate, numbers: Set[int] | None = None) -> Candidate:
    """Return a pinned message with the tier for pins, any other message unchanged.

    :param numbers: ids of the messages that were kept as pins; ``None`` for all.
    """
    is_pin = candidate.pinned and (numbers is None or candidate.message.id in numbers)
    return replace(candidate, tier=Tier.PINNED) if is_pin else candidate


def _sort_key(members: Iterable[Candidate]) -> list[tuple[float, int]]:
    """Return the sort key of a group with pinned messages; empty for a group without any."""
    pins = (candidate.message for candidate in members if candidate.pinned)
    return sorted((-pin.pinned_at.timestamp(), -pin.id) for pin in pins if pin.pinned_at)
