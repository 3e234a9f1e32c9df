"""``reservoir recall``: print the stored messages that help an agent with a question."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from reservoir_cli.cli import console, nothing_found, open_store, options
from reservoir_cli.cli.filters import complete_session
from reservoir_cli.cli.options import argument, flag, option, tokens_option
from reservoir_cli.cli.show_injections import show_injections
from reservoir_cli.context.recall import Reason, Recall, Skipped
from reservoir_cli.errors import UsageError
from reservoir_cli.reservoir import Filter, Reservoir
from reservoir_cli.settings.schema import RECALL_BUDGET
from reservoir_cli.util.parse_time_options import parse_time


def recall(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        argument("[QUESTION]...", "The question; read from stdin if omitted or -."),
    ] = None,
    budget: Annotated[
        int | None,
        tokens_option(f"Tokens for everything printed (default: {RECALL_BUDGET}).", least=1),
    ] = None,
    partition: options.Partition = None,
    since: options.Since = None,
    exclude_conversation: Annotated[
        str | None, option("ID", "Leave out this conversation.")
    ] = None,
    last: Annotated[bool, flag("--last", "Print what agents were given last.")] = False,
    client: Annotated[str | None, option("NAME", "With --last, only this client.")] = None,
    as_json: options.Json = False,
) -> None:
    """Print the stored messages that help an agent with a question.

    An agent has its own history, so only recalled messages are printed: quoted, numbered, and with
    secrets masked unless the setting redact is off. Prints nothing if no message is relevant, or if
    the text does not ask anything.

    With --last, print when hooks, the MCP server and the proxy last gave each client messages, and
    which. The setting recall, the variable RESERVOIR_RECALL=off, a file .reservoir-off in a folder,
    and --no-recall as the first word of a prompt switch agents' recalls off, not this command.
    """
    if last:
        if words or any(value is not None for value in (budget, since, exclude_conversation)):
            raise UsageError(
                "--last takes no question", hint="reservoir recall --last [--client NAME] [-p NAME]"
            )
        show_injections(ctx, client, partition, as_json=as_json)
        return
    if client is not None:
        raise UsageError("--client needs --last", hint="reservoir recall --last --client NAME")
    question = options.question_of(words, "recall")
    moment = parse_time(since, datetime.now(UTC)) if since is not None else None
    with open_store.open_reservoir(ctx) as reservoir:
        session = complete_session(reservoir, exclude_conversation, partition)
        outcome = reservoir.recall(
            question, partition=partition, budget=budget, exclude_conversation=session, since=moment
        )
        _print_notes(outcome, reservoir, partition)
    row = outcome.to_row()
    if as_json:
        console.document(row)
    elif row["text"]:
        console.window_text(row["text"])


def _print_notes(outcome: Recall | Skipped, reservoir: Reservoir, partition: str | None) -> None:
    for note in outcome.notes:
        console.note(note)
    if isinstance(outcome, Skipped):
        console.note(f"nothing recalled: {outcome.explanation}")
        if outcome.reason is Reason.EMPTY:
            scope = reservoir.scope(partition)
            nothing_found.say_elsewhere(reservoir, str(scope.partition), None, Filter())
