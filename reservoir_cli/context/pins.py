"""Pinned messages: they are kept before all but the newest, in a part of the budget. Pure."""

from collections.abc import Iterable, Set
from dataclasses import replace

from reservoir_cli.context.types import Candidate, Tier

#: The reason for which they are kept.
PINNED = "pinned"
#: The part of the budget that they have together with the newest.
PINNED_SHARE = 1 / 4


def latest_pins(members: Iterable[Candidate]) -> list[tuple[float, int]]:
    """Return what groups with pinned messages are sorted by; nothing for a group without one."""
    pinned = (each.message for each in members if each.pinned)
    return sorted((-each.pinned_at.timestamp(), -each.id) for each in pinned if each.pinned_at)


def as_pin(candidate: Candidate, numbers: Set[int] | None = None) -> Candidate:
    """Return a pinned message with that tier.

    :param numbers: only those that were kept as pins.
    """
    is_pin = candidate.pinned and (numbers is None or candidate.message.id in numbers)
    return replace(candidate, tier=Tier.PINNED) if is_pin else candidate
