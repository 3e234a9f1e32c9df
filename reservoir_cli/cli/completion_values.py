"""Complete values from settings and store; nothing on errors, and without waiting for locks."""

from collections.abc import Callable, Iterable
from typing import Any

import typer

from reservoir_cli.errors import ReservoirError
from reservoir_cli.settings import config

#: A callback of Typer: it maps the command line so far to possible values.
Completer = Callable[[typer.Context], Iterable[str]]


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


def sync_sources(ctx: typer.Context) -> list[str]:
    """Complete the name of a source in the settings."""
    try:
        return list(config.load(_root_option(ctx, "config_file")).sources)
    except ReservoirError:
        return []


def stored(kind: str) -> Completer:
    """Return a completer for a kind of names that :mod:`.completion_from_store` reads."""

    def complete(ctx: typer.Context) -> list[str]:
        from reservoir_cli.cli import completion_from_store

        place = _root_option(ctx, "db"), _root_option(ctx, "config_file")
        return completion_from_store.read(kind, ctx.params, *place)

    return complete


partitions = stored("partition")
instances = stored("instance")


def _root_option(ctx: typer.Context, name: str) -> Any:
    """Return a global option; during completion the callback that stores them has not run."""
    return ctx.find_root().params.get(name)
