"""The values of the options before the command."""

import os
import shlex
from pathlib import Path
from typing import NamedTuple

import typer

from reservoir_cli.cli import console
from reservoir_cli.settings import paths
from reservoir_cli.settings.locations import is_on_a_server

#: Variables that a program started outside this shell may not have.
_VARIABLES = ("RESERVOIR_HOME", "RESERVOIR_CONFIG", "RESERVOIR_DB")


class Globals(NamedTuple):
    """The options before the command."""

    config: Path | None = None
    db: str | None = None
    offline: bool = False


def globals_of(ctx: typer.Context) -> Globals:
    """Return the global options of this run."""
    return ctx.find_object(Globals) or Globals()


def warn_of_variables(flags: Globals, starter: str, command: str) -> None:
    """Warn if a program that starts us may use other files than this shell, which sets variables.

    :param starter: the program, for the warning.
    :param command: the command to repeat with the paths.
    """
    names = [name for name in _VARIABLES if os.environ.get(name)]
    missing = []
    if flags.config is None and paths.config_file().is_file():
        missing += ["--config", str(paths.config_file())]
    if flags.db is None:
        location = paths.store_location()
        missing += ["--db", "URL" if is_on_a_server(location) else location]
    if names and missing:
        console.warn(
            f"{' and '.join(names)} may not be set where {starter} starts reservoir; "
            f"to include the paths: reservoir {shlex.join(missing)} {command}"
        )
