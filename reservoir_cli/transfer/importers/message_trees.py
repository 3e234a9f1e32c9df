"""Find the current branch of a conversation whose messages form a tree."""

from collections.abc import Callable
from typing import Any

from reservoir_cli.transfer.importers.foreign_values import objects, text

#: Returns when a node was written, in seconds since 1970.
Time = Callable[[dict[str, Any]], float]


def find_branch(
    nodes: dict[str, Any], current: Any, parent_key: str, time: Time
) -> list[dict[str, Any]]:
    """Return the nodes from the root to the current one, following the links to parents.

    :param current: the id of a node; without one, the branch ends at the newest leaf.
    :param parent_key: the key of a node with its parent's id.
    """
    if not isinstance(current, str) or not isinstance(nodes.get(current), dict):
        current = _newest_leaf(nodes, parent_key, time)
    branch: list[dict[str, Any]] = []
    seen = set()
    while isinstance(current, str) and current not in seen:
        seen.add(current)
        node = nodes.get(current)
        if not isinstance(node, dict):
            break
        branch.append(node)
        current = node.get(parent_key)
    return branch[::-1]


def _newest_leaf(nodes: dict[str, Any], parent_key: str, time: Time) -> str | None:
    """Return the id of the leaf with the latest time."""
    parents = {
        node[parent_key] for node in objects(list(nodes.values())) if text(node.get(parent_key))
    }
    leaves = [key for key, node in nodes.items() if isinstance(node, dict) and key not in parents]
    return max(leaves, key=lambda key: time(nodes[key]), default=None)
