"""What stands before the command."""

from pathlib import Path
from typing import NamedTuple

import typer


class Globals(NamedTuple):
    """What was given before the command."""

    config: Path | None = None
    db: str | None = None
    offline: bool = False


def globals_of(ctx: typer.Context) -> Globals:
    """Return the global options of this run."""
    found = ctx.find_object(Globals)
    return found if found is not None else Globals()
