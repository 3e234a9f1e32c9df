"""The newest messages: kept before all others, within a share of the budget. Pure."""

from collections.abc import Sequence

from reservoir_cli.context.layout import is_system
from reservoir_cli.context.message_groups import MessageGroup
from reservoir_cli.context.window_builder import WindowBuilder

#: The share of the budget that they take at most.
NEWEST_SHARE = 1 / 8


def keep_newest(
    groups: Sequence[MessageGroup], window: WindowBuilder, budget: int, count: int
) -> None:
    """Keep the groups with the newest messages, up to the first that does not fit.

    :param count: how many messages to keep.
    """
    for group in _newest_groups(groups, count):
        if not window.add(group.members, int(budget * NEWEST_SHARE), "newest"):
            break


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
