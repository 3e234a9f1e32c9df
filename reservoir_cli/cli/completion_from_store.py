"""Read names from the store for completion."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import EVERYWHERE, Scope
from reservoir_cli.reservoir import NamedField, Reservoir
from reservoir_cli.util.timeouts import LOCKED_STORE_OF_COMPLETION


def read(
    kind: str, options: Mapping[str, Any], location: str | None, config_file: Path | None
) -> list[str]:
    """Return the names of a kind in the store; none if it cannot be read.

    :param kind: ``partition``, ``instance``, ``conversation``, or a field of the messages.
    """
    try:
        with Reservoir.open(
            location, config_file=config_file, create=False, patience=LOCKED_STORE_OF_COMPLETION
        ) as reservoir:
            return _names(kind, reservoir, options)
    except ReservoirError:
        return []


def _names(kind: str, reservoir: Reservoir, options: Mapping[str, Any]) -> list[str]:
    partition, lookup = options.get("partition"), reservoir.lookup
    if kind == "partition":
        return sorted({row[0] for row in lookup.channels()})
    if kind == "instance":
        return sorted({row[1] for row in lookup.channels() if partition in (None, row[0])})
    scope = Scope(reservoir.scope(partition).partition, options.get("instance"))
    if options.get("all_partitions"):
        scope = EVERYWHERE
    if kind == "conversation":
        ids = lookup.ids("conversation_id", scope)
        return [reservoir.redactor.id(scope.partition, identity) for identity in ids]
    return lookup.names(cast(NamedField, kind), scope)
