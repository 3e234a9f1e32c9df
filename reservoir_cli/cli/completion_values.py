"""What the Tab key offers for the value of an option.

It answers from the settings and the store, within moments, and says nothing when it cannot.
"""

from collections.abc import Callable, Iterable
from typing import Any

import typer

from reservoir_cli.errors import ReservoirError
from reservoir_cli.settings import config

#: What Typer takes: from the command so far to the values it may go on with.
Completer = Callable[[typer.Context], Iterable[str]]
#: Seconds to wait for others; a Tab that hangs is worse than one that offers nothing.
_PATIENCE = 0.1


def among(*values: str) -> Completer:
    """Offer these."""

    def offered(ctx: typer.Context) -> list[str]:
        return list(values)

    return offered


def models(ctx: typer.Context) -> list[str]:
    """Offer the models that are known."""
    try:
        return [each.name for each in config.load(_given(ctx, "config_file")).known_models()]
    except ReservoirError:
        return []


def partitions(ctx: typer.Context) -> list[str]:
    """Offer the partitions of the store."""
    return sorted({partition for partition, _, _ in _places(ctx)})


def partition_words(ctx: typer.Context) -> list[str]:
    """Offer what can be done with partitions, and then their names."""
    return partitions(ctx) if ctx.params.get("words") else ["list", "rename", "merge", "delete"]


def instances(ctx: typer.Context) -> list[str]:
    """Offer the instances of the partition that is named, or of all."""
    named = ctx.params.get("partition")
    return sorted({name for partition, name, _ in _places(ctx) if named in (None, partition)})


def _places(ctx: typer.Context) -> list[tuple[str, str, int]]:
    from reservoir_cli.reservoir import Reservoir

    try:
        with Reservoir.open(
            _given(ctx, "db"),
            config_file=_given(ctx, "config_file"),
            create=False,
            patience=_PATIENCE,
        ) as reservoir:
            return reservoir.lookup.places()
    except ReservoirError:
        return []


def _given(ctx: typer.Context, name: str) -> Any:
    """Apply an option before the command; a shell that asks has not run its callback."""
    return ctx.find_root().params.get(name)
