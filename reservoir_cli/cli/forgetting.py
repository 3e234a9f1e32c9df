"""What ``forget`` and ``partitions delete`` print before and after they delete messages."""

import shlex

from reservoir_cli.cli import console, options
from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import Reservoir


def note_later_imports(reservoir: Reservoir, scope: Scope) -> None:
    """Say before the question that no import brings the messages of a whole scope back.

    If the scope is a partition, name the command that moves its messages instead.
    """
    note = "later imports, into any partition, will leave these messages out"
    places = reservoir.lookup.places()
    instances = {instance for partition, instance, _ in places if partition == scope.partition}
    if instances and (scope.instance is None or instances == {scope.instance}):
        has_others = any(partition != scope.partition for partition, _, _ in places)
        verb = "merge" if has_others else "rename"
        command = shlex.join(["reservoir", "partitions", verb, str(scope.partition), "RIGHT"])
        note = f"{note}; to move them to the partition RIGHT instead: {command}"
    console.note(note)


def print_forgotten(count: int) -> None:
    """Print how many messages were deleted, and that older copies still have them."""
    console.aside(f"forgot {options.counted(count, 'message')}")
    pronoun = "it" if count == 1 else "them"
    console.note(f"backups and exports made earlier still have {pronoun}")
