"""``reservoir view``: read what is stored."""

from typing import Annotated

import typer

from reservoir_cli.cli import console, options
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Scope


def view(
    ctx: typer.Context,
    count: Annotated[
        int,
        typer.Argument(
            metavar="[COUNT]",
            min=0,
            max=options.MOST,
            help="How many of the newest; 0 for all.",
        ),
    ] = 10,
    partition: options.Partition = None,
    instance: options.Instance = None,
    all_instances: options.AllInstances = False,
    all_partitions: options.AllPartitions = False,
    ids: Annotated[
        list[int] | None,
        typer.Option(
            "--id",
            metavar="N",
            min=1,
            max=options.MOST,
            help="Only the message of this id; repeatable.",
        ),
    ] = None,
    trace_id: options.TraceId = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this conversation.")
    ] = None,
    role: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE",
            help="Only user, assistant, system or tool.",
            autocompletion=options.a_role,
        ),
    ] = None,
    since: options.Since = None,
    until: options.Until = None,
    secrets: Annotated[
        bool, typer.Option("--secrets", help="Only messages in which secrets were found.")
    ] = False,
    timestamps: Annotated[
        bool, typer.Option("--timestamps", help="Put time and trace id in front.")
    ] = False,
    oneline: Annotated[
        bool, typer.Option("--oneline", help="One message a line; line breaks become \\n.")
    ] = False,
    as_json: options.Json = False,
    as_lines: options.JsonLines = False,
) -> None:
    """Print the last messages, oldest first.

    A terminal also shows the id of each message, which --id and `forget --id` take.
    """
    options.one_form(json=as_json, jsonl=as_lines)
    with options.open_reservoir(ctx) as reservoir:
        scope = options.read_scope(reservoir, partition, instance, all_instances, all_partitions)
        if ids:
            if trace_id or conversation or role or since or until or secrets:
                raise UsageError(
                    "--id contradicts the other filters",
                    hint="leave them out: an id names one message",
                )
            whole = scope if instance else Scope(scope.partition)
            found = reservoir.messages(ids, whole)
            if missing := sorted(set(ids) - {each.id for each in found}):
                raise options.no_message(reservoir, missing[0], whole)
        else:
            where = options.message_filter(
                role=role,
                trace_id=trace_id,
                conversation_id=conversation,
                since=since,
                until=until,
                secrets=secrets,
            )
            found = reservoir.view(scope, count, where)
            if not found and (why_nothing := options.why_nothing(reservoir, scope, where)):
                console.note(why_nothing)
    if as_json:
        console.document({"messages": [each.to_row() for each in found]})
    elif as_lines:
        console.lines(each.to_row() for each in found)
    else:
        console.messages(found, timestamps=timestamps, oneline=oneline)
