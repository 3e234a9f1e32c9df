"""Read names from the store for completion."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from reservoir_cli.cli.filters import read_scope, shown_id
from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import NamedField, Reservoir
from reservoir_cli.util.time_limits import LOCKED_STORE_OF_COMPLETION


def read(
    kind: str, options: Mapping[str, Any], location: str | None, config_file: Path | None
) -> list[str]:
    """Return the names of a kind in :data:`KINDS`; none if the store cannot be read."""
    try:
        with Reservoir.open(
            location, config_file=config_file, create=False, patience=LOCKED_STORE_OF_COMPLETION
        ) as reservoir:
            return KINDS[kind](reservoir, options)
    except ReservoirError:
        return []


def _partitions(reservoir: Reservoir, _: Mapping[str, Any]) -> list[str]:
    return sorted({partition for partition, _, _ in reservoir.lookup.places()})


def _instances(reservoir: Reservoir, options: Mapping[str, Any]) -> list[str]:
    wanted, places = options.get("partition"), reservoir.lookup.places()
    return sorted({instance for partition, instance, _ in places if wanted in (None, partition)})


def _filter_values(
    field: NamedField, reservoir: Reservoir, options: Mapping[str, Any]
) -> list[str]:
    return reservoir.lookup.names(field, _scope(reservoir, options))


def _conversations(reservoir: Reservoir, options: Mapping[str, Any]) -> list[str]:
    scope = _scope(reservoir, options)
    ids = reservoir.lookup.ids("conversation_id", scope)
    return [shown_id(reservoir, identity, scope) for identity in ids]


def _scope(reservoir: Reservoir, options: Mapping[str, Any]) -> Scope:
    return read_scope(
        reservoir,
        options.get("partition"),
        options.get("instance"),
        all_partitions=bool(options.get("all_partitions")),
    )


#: The kinds of names that can be completed.
KINDS: dict[str, Callable[[Reservoir, Mapping[str, Any]], list[str]]] = {
    "partition": _partitions,
    "instance": _instances,
    "source": partial(_filter_values, "source"),
    "project": partial(_filter_values, "project"),
    "tag": partial(_filter_values, "tag"),
    "conversation": _conversations,
}
