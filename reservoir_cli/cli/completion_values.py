"""Complete option values from the settings and the store.

Errors give an empty list, and a locked store is not waited for.
"""

from collections.abc import Callable, Iterable
from typing import Any

import typer

from reservoir_cli.errors import ReservoirError
from reservoir_cli.settings import config

#: A callback of Typer: it maps the command line so far to possible values.
Completer = Callable[[typer.Context], Iterable[str]]
#: Seconds to wait for a locked store: no completions are better than a hanging shell.
_PATIENCE = 0.1


def among(*values: str) -> Completer:
    """Return a completer for a fixed set of values."""

    def complete(ctx: typer.Context) -> list[str]:
        return list(values)

    return complete


def models(ctx: typer.Context) -> list[str]:
    """Complete the name of a model."""
    try:
        known = config.load(_root_option(ctx, "config_file")).known_models()
    except ReservoirError:
        return []
    return [model.name for model in known]


def partitions(ctx: typer.Context) -> list[str]:
    """Complete the name of a partition."""
    return sorted({partition for partition, _, _ in _places(ctx)})


def partition_words(ctx: typer.Context) -> list[str]:
    """Complete the action of ``reservoir partitions``, then partition names."""
    return partitions(ctx) if ctx.params.get("words") else ["list", "rename", "merge", "delete"]


def instances(ctx: typer.Context) -> list[str]:
    """Complete the name of an instance, of the partition given with ``-p`` or of any."""
    wanted = ctx.params.get("partition")
    return sorted({name for partition, name, _ in _places(ctx) if wanted in (None, partition)})


def _places(ctx: typer.Context) -> list[tuple[str, str, int]]:
    from reservoir_cli.reservoir import Reservoir

    try:
        with Reservoir.open(
            _root_option(ctx, "db"),
            config_file=_root_option(ctx, "config_file"),
            create=False,
            patience=_PATIENCE,
        ) as reservoir:
            return reservoir.lookup.places()
    except ReservoirError:
        return []


def _root_option(ctx: typer.Context, name: str) -> Any:
    """Return a global option; during completion the callback that stores them has not run."""
    return ctx.find_root().params.get(name)
