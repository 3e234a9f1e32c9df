"""``reservoir summarize``: summarise conversations, for use in contexts."""

from typing import Annotated, Any

import typer

from reservoir_cli.cli import console, nothing_found, open_store, options
from reservoir_cli.cli.options import flag, option
from reservoir_cli.maintenance.summarize import Outcome
from reservoir_cli.messages import Scope
from reservoir_cli.redaction import Redactor
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.util.clock import local_day
from reservoir_cli.util.progress import counted


def summarize(
    ctx: typer.Context,
    partition: options.Partition = None,
    command: Annotated[
        str | None,
        option(
            "COMMAND",
            "Command that reads a conversation on stdin and prints its summary.",
            "--with",
        ),
    ] = None,
    dry_run: Annotated[
        bool, flag("--dry-run", "List the conversations; summarise nothing.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Summarise conversations that are new or have grown.

    Without --with, a summary consists of sentences of the conversation, chosen by the embedding
    model, and summaries by a command stay unless their conversation has grown. With --with,
    summaries that another command, the same with other arguments, or no command wrote are
    replaced. Contexts include summaries if the setting episodes is auto.
    """
    outcomes: list[Outcome] = []
    with open_store.open_reservoir(ctx, change=True) as reservoir:
        for outcome in reservoir.summarize(partition, command=command, dry_run=dry_run):
            outcomes.append(outcome)
            name = outcome.conversation.conversation.id
            if outcome.reason:
                console.warn(
                    f"{reservoir.redactor.id(outcome.conversation.partition, name)} skipped: "
                    f"{outcome.reason}"
                )
        rows = [_row(outcome, reservoir.redactor) for outcome in outcomes]
        if not outcomes:
            console.note(_why_nothing(reservoir, Scope(reservoir.scope(partition).partition)))
    if as_json:
        console.document({"summaries": rows, "dry_run": dry_run})
    else:
        for row in rows:
            if row["skipped"] is None:
                text = f": {row['text']}" if row["text"] else ""
                console.write(f"{row['date']} {row['conversation_id']}{text}\n")
    verb = "to summarise" if dry_run else "summarised"
    succeeded = [outcome for outcome in outcomes if outcome.reason is None]
    console.aside(f"{counted(len(succeeded), 'conversation')} {verb}")
    if len(succeeded) < len(outcomes):
        raise typer.Exit(1)


def _why_nothing(reservoir: Reservoir, scope: Scope) -> str:
    if not reservoir.view(scope, 1):
        return nothing_found.describe_elsewhere(scope, reservoir.lookup.elsewhere(scope))
    if not reservoir.conversations(scope):
        return f"no message of {scope.partition} is in a conversation"
    return (
        f"the conversations of {scope.partition} have summaries already, or no sentences to quote"
    )


def _row(outcome: Outcome, redactor: Redactor) -> dict[str, Any]:
    conversation, summary = outcome.conversation, outcome.summary
    return {
        "partition": conversation.partition,
        "instance": conversation.instance,
        "conversation_id": redactor.id(conversation.partition, conversation.conversation.id),
        "date": local_day(conversation.first),
        "text": redactor.text(conversation.partition, summary.text) if summary else None,
        "made_by": summary.made_by if summary else None,
        "skipped": outcome.reason,
    }
