"""Find the current branch of a conversation whose messages form a tree."""

from collections.abc import Callable
from typing import Any

from reservoir_cli.transfer.reading.foreign_values import obj, objects, text
from reservoir_cli.transfer.reading.times import seconds

Time = Callable[[dict[str, Any]], float]  # returns when a node was written, in seconds since 1970
#: Returns whether a node holds a message that is displayed.
HasMessage = Callable[[dict[str, Any]], bool]


def time_at(key: str) -> Time:
    """Return a function that reads the time of a node at a key."""
    return lambda node: seconds(node.get(key))


def find_branch(
    nodes: dict[str, Any],
    current: Any,
    parent_key: str,
    time: Time,
    children_key: str | None = None,
    has_message: HasMessage = bool,
) -> list[Any]:
    """Return the nodes from the root to the current one, following the links to parents.

    :param current: without an id, or if its branch holds no message, the newest leaf that does.
    :param children_key: the key of a node with its children, which lead past a damaged node or
        parent's id. A damaged node on the branch is returned as it is.
    """
    listed_by = _listed_by(nodes, children_key)
    branch = _branch_to(nodes, current, parent_key, listed_by)
    if any(isinstance(node, dict) and has_message(node) for node in branch):
        return branch
    full = {key: node for key, node in nodes.items() if has_message(obj(node))}
    newest = _newest_leaf(full or nodes, parent_key, time)
    return _branch_to(nodes, newest, parent_key, listed_by) if full or not branch else branch


def _branch_to(
    nodes: dict[str, Any], current: Any, parent_key: str, listed_by: dict[str, str]
) -> list[Any]:
    branch: list[Any] = []
    seen = set()
    while isinstance(current, str) and current not in seen:
        seen.add(current)
        node = nodes.get(current)
        parent = node.get(parent_key) if isinstance(node, dict) else None
        if current in nodes:
            branch.append(node)
        is_known = isinstance(parent, str) and (parent in nodes or parent in listed_by)
        current = parent if is_known else listed_by.get(current)
    return branch[::-1]


def _listed_by(nodes: dict[str, Any], children_key: str | None) -> dict[str, str]:
    if children_key is None:
        return {}
    return {
        child: key
        for key, node in nodes.items()
        if isinstance(node, dict) and isinstance(children := node.get(children_key), list)
        for child in children
        if isinstance(child, str)
    }


def _newest_leaf(nodes: dict[str, Any], parent_key: str, time: Time) -> str | None:
    """Return the id of the leaf with the latest time; if links form a circle, of any node."""
    parents = {
        node[parent_key] for node in objects(list(nodes.values())) if text(node.get(parent_key))
    }
    keys = [key for key, node in nodes.items() if isinstance(node, dict)]
    leaves = [key for key in keys if key not in parents]
    return max(leaves or keys, key=lambda key: time(nodes[key]), default=None)


class LineTree:
    """The entries of a file as a tree, in which each is written after its parent.

    An entry whose parent cannot be read, as of a damaged line, continues the entry before it.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, Any] = {}
        self._last: str | None = None
        self.has_links = False

    def add(
        self, identity: str, parent: str | None, *, has_message: bool, leaf: str | None = None
    ) -> None:
        """Add an entry.

        :param leaf: the id of the entry that the entry makes the current one.
        """
        self.has_links = self.has_links or parent is not None
        if parent is not None and parent not in self._nodes:
            parent = self._last
        number = len(self._nodes)
        self._nodes[identity] = {
            "id": identity,
            "parent": parent,
            "number": number,
            "full": has_message,
        }
        self._last = leaf or identity

    def branch(self) -> set[str]:
        """Return the ids of the entries up to the current one."""
        nodes = find_branch(
            self._nodes,
            self._last,
            "parent",
            lambda node: float(node["number"]),
            has_message=lambda node: bool(node.get("full")),
        )
        return {node["id"] for node in nodes}
