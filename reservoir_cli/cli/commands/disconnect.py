"""``reservoir disconnect``: undo ``reservoir connect``."""

from typing import Annotated

import typer

from reservoir_cli.agents import connect as agents
from reservoir_cli.agents.connect import client_named
from reservoir_cli.cli import options
from reservoir_cli.cli.commands.connect import DryRun, client_argument, show, showing_snippet


def disconnect(
    ctx: typer.Context,
    client: Annotated[str, client_argument("CLIENT")],
    dry_run: DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Remove reservoir from the settings of an agent or an editor.

    If no other program has changed a settings file since connect, the file is restored byte for
    byte. Otherwise only reservoir's entries are removed from it.
    """
    with showing_snippet(as_json):
        outcome = agents.disconnect(client_named(client), dry_run=dry_run)
    show(outcome, as_json, dry_run, done="disconnected", already="is not connected")
