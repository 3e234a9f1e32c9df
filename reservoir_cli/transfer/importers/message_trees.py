"""Conversations whose messages form a tree, of which the branch last seen is read."""

from collections.abc import Callable
from typing import Any

from reservoir_cli.transfer.importers.coerce import objects, text

#: Tells when a node was written.
Time = Callable[[dict[str, Any]], float]


def branch_to(
    nodes: dict[str, Any], current: Any, parent_key: str, time: Time
) -> list[dict[str, Any]]:
    """Return the nodes from the root to the current one. Children are not followed: they fork.

    :param current: the id of a node; without one, the branch ends with the newest leaf.
    :param parent_key: where a node names its parent.
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
    """Return the leaf with the latest time: where to go back from if nothing says so."""
    parents = {
        node[parent_key] for node in objects(list(nodes.values())) if text(node.get(parent_key))
    }
    leaves = [key for key, node in nodes.items() if isinstance(node, dict) and key not in parents]
    return max(leaves, key=lambda key: time(nodes[key]), default=None)
