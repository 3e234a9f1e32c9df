"""Declare the options and arguments of commands, and complete their values.

A panel is a section whose options are rare. Completion offers nothing on errors, and waits for no
locks.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import typer

from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import clean_text
from reservoir_cli.settings import config
from reservoir_cli.util.unicode_text import plain_number

#: A callback of Typer: it maps the command line so far to possible values.
Completer = Callable[[typer.Context], Iterable[str]]


def flag(name: str, about: str, panel: str | None = None) -> Any:
    """Return an option without a value; ``--x/--no-x`` declares two."""
    return typer.Option(name, help=about, rich_help_panel=panel)


def option(
    metavar: str,
    about: str,
    *names: str,
    panel: str | None = None,
    choices: Sequence[str] = (),
    complete: Completer | None = None,
    **checks: Any,
) -> Any:
    """Return an option, named like its parameter without names; ``choices`` are completed.

    :param checks: ``min``, ``max`` or ``callback``.
    """
    complete = complete_among(*choices) if choices else complete
    return typer.Option(
        *names,
        metavar=metavar,
        help=about,
        rich_help_panel=panel,
        autocompletion=complete,
        **checks,
    )


def argument(
    metavar: str,
    about: str,
    *,
    choices: Sequence[str] = (),
    complete: Completer | None = None,
    **checks: Any,
) -> Any:
    """Return a positional argument, with the values and checks of :func:`option`."""
    complete = complete_among(*choices) if choices else complete
    return typer.Argument(metavar=metavar, help=about, autocompletion=complete, **checks)


def name_option(
    about: str,
    *names: str,
    metavar: str = "NAME",
    complete: Completer | None = None,
    panel: str | None = None,
) -> Any:
    """Return an option that takes a name or an id, which must not be empty."""
    return option(
        metavar, about, *names, panel=panel, complete=complete, callback=_check_typed_name
    )


def _check_typed_name(param: typer.CallbackParam, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise UsageError(f"{param.opts[-1]} cannot be empty", hint="leave the option out")
    return clean_text(value) if value else None


def tokens_option(about: str, *names: str, least: int | None = 0, panel: str | None = None) -> Any:
    """Return an option for a number of tokens, such as 150,000; ``least=None`` allows any."""

    def parse(value: str | int) -> int:
        try:
            tokens = int(plain_number(str(value)))
        except ValueError:
            # Worded like Typer's own errors, which mistyped_commands rewords.
            raise typer.BadParameter(f"{value!r} is not a valid int.") from None
        if least is not None and tokens < least:
            raise typer.BadParameter(f"{tokens} is not in the range x>={least}.")
        return tokens

    return typer.Option(*names, metavar="N", help=about, parser=parse, rich_help_panel=panel)


def complete_among(*values: str) -> Completer:
    """Return a completer for a fixed set of values."""

    def complete(ctx: typer.Context) -> list[str]:
        return list(values)

    return complete


def complete_models(ctx: typer.Context) -> list[str]:
    """Complete the name of a model."""
    try:
        known = config.load(_root_option(ctx, "config_file")).known_models()
    except ReservoirError:
        return []
    return [model.name for model in known]


def complete_sources(ctx: typer.Context) -> list[str]:
    """Complete the name of a source in the settings."""
    try:
        return list(config.load(_root_option(ctx, "config_file")).sources)
    except ReservoirError:
        return []


def complete_stored(kind: str) -> Completer:
    """Return a completer for a kind of names that :mod:`.completion_from_store` reads."""

    def complete(ctx: typer.Context) -> list[str]:
        from reservoir_cli.cli import completion_from_store

        place = _root_option(ctx, "db"), _root_option(ctx, "config_file")
        return completion_from_store.read(kind, ctx.params, *place)

    return complete


complete_partitions = complete_stored("partition")
complete_instances = complete_stored("instance")


def _root_option(ctx: typer.Context, name: str) -> Any:
    """Return a global option; during completion the callback that stores them has not run."""
    return ctx.find_root().params.get(name)
