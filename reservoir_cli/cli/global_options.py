"""The values of the options before the command."""

from pathlib import Path
from typing import NamedTuple

import typer


class Globals(NamedTuple):
    """The options before the command."""

    config: Path | None = None
    db: str | None = None
    offline: bool = False


def globals_of(ctx: typer.Context) -> Globals:
    """Return the global options of this run."""
    return ctx.find_object(Globals) or Globals()
