"""``reservoir hook``: handle the hook events of agents."""

from typing import Annotated

import typer

from reservoir_cli.agents import hooks
from reservoir_cli.cli.global_options import globals_of
from reservoir_cli.cli.options import argument, option
from reservoir_cli.settings.schema import RECALL_BUDGET

EVENTS = ("user-prompt", "stop", "session-end", "session-start")


def hook(
    ctx: typer.Context,
    event: Annotated[
        str, argument("EVENT", "user-prompt, stop, session-end or session-start.", choices=EVENTS)
    ],
    budget: Annotated[
        int | None,
        option(
            "N",
            f"user-prompt prints at most a third of this many tokens (default: {RECALL_BUDGET}).",
            min=1,
        ),
    ] = None,
) -> None:
    """Handle an event of Claude Code, Codex or Gemini CLI.

    The event is JSON on stdin. On user-prompt it prints what `reservoir recall` finds for the
    prompt, as JSON that the client adds to the prompt. On the other events it starts an import of
    the histories and prints nothing. It ends within 2 seconds and always exits with 0; errors are
    written to the log.
    """
    flags = globals_of(ctx)
    hooks.answer(event, config_file=flags.config, db=flags.db, budget=budget)
