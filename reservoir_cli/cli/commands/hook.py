"""``reservoir hook``: what a client runs when something happens in it."""

from typing import Annotated

import typer

from reservoir_cli.agents import hooks
from reservoir_cli.cli import completion_values
from reservoir_cli.cli.global_options import globals_of

EVENTS = ("user-prompt", "stop", "session-end", "session-start")


def hook(
    ctx: typer.Context,
    event: Annotated[
        str,
        typer.Argument(
            metavar="EVENT",
            help="user-prompt, stop, session-end or session-start.",
            autocompletion=completion_values.among(*EVENTS),
        ),
    ],
    budget: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Tokens of what user-prompt prints (default: 1500)."),
    ] = None,
) -> None:
    """Answer an event of Claude Code, Codex or Gemini CLI, whose JSON is read from stdin.

    At user-prompt it prints what `reservoir recall` finds for the prompt, as JSON that the client
    puts behind it. At the other events an import of the histories is started, and nothing is
    printed. It ends within 2 seconds and always exits with 0; what went wrong is in the log.
    """
    given = globals_of(ctx)
    hooks.answer(event, config_file=given.config, db=given.db, budget=budget)
