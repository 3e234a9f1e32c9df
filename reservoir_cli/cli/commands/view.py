"""``reservoir view``: print stored messages."""

from typing import Annotated

import typer

from reservoir_cli.cli import console, filters, nothing_found, open_store, options
from reservoir_cli.cli.options import argument, option
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import LARGEST_ID, Scope, StoredMessage
from reservoir_cli.reservoir import Reservoir


def view(
    ctx: typer.Context,
    count: Annotated[
        int, argument("[COUNT]", "Number of messages; 0 for all.", min=0, max=LARGEST_ID)
    ] = 10,
    partition: options.Partition = None,
    instance: options.ReadInstance = None,
    all_partitions: options.AllPartitions = False,
    ids: options.Ids = None,
    around: Annotated[
        str | None, option("N", "This message and its neighbours, COUNT in all.")
    ] = None,
    trace_id: filters.Trace = None,
    conversation_id: filters.Conversation = None,
    text: filters.Match = None,
    role: filters.Role = None,
    since: filters.Since = None,
    until: filters.Until = None,
    source: filters.Source = None,
    tag: filters.Tag = None,
    pinned: filters.Pinned = False,
    secrets: filters.Secrets = False,
    timestamps: options.Timestamps = False,
    oneline: options.OneLine = False,
    as_json: options.Json = False,
    as_lines: options.JsonLines = False,
) -> None:
    """Print the last messages, oldest first.

    A terminal also shows the number of each message, for use with --id, --around and `forget --id`.
    Trace and conversation ids can be shortened to a unique prefix.
    """
    options.check_one_form(json=as_json, jsonl=as_lines)
    numbers = [options.message_number(text) for text in ids or ()]
    if around is not None:
        numbers.append(options.message_number(around, "--around"))
    if numbers and filters.typed_filters(ctx):
        raise UsageError(
            f"--{'id' if ids else 'around'} contradicts the other filters",
            hint="leave them out: a number names one message",
        )
    if ids and around:
        raise UsageError("choose one of --id and --around", hint="leave --around out")
    count_from = ctx.get_parameter_source("count")
    if ids and count and count_from and count_from.name != "DEFAULT":
        raise UsageError("COUNT contradicts --id", hint="repeat --id for each message")
    with open_store.open_reservoir(ctx) as reservoir:
        scope = filters.read_scope(reservoir, partition, instance, all_partitions)
        if around:
            messages = _find_around(reservoir, scope, numbers[0], count)
        elif numbers:
            messages = _find(reservoir, scope, numbers)
        else:
            where = filters.complete_ids(reservoir, filters.message_filter(ctx), scope)
            messages = reservoir.view(scope, count, where)
            if not messages and (reason := nothing_found.why_nothing(reservoir, scope, where)):
                console.note(reason)
    if as_json:
        console.document({"messages": [message.to_row() for message in messages]})
    elif as_lines:
        console.lines(message.to_row() for message in messages)
    else:
        focus = numbers[0] if around else None
        console.messages(messages, timestamps=timestamps, oneline=oneline, focus=focus)


def _find(reservoir: Reservoir, scope: Scope, numbers: list[int]) -> list[StoredMessage]:
    messages = reservoir.messages(numbers, scope)
    if missing := sorted(set(numbers) - {message.id for message in messages}):
        raise nothing_found.no_message(reservoir, missing[0], scope)
    return messages


def _find_around(
    reservoir: Reservoir, scope: Scope, number: int, count: int
) -> list[StoredMessage]:
    """Return a message with its neighbours; ``count`` 0: the whole conversation."""
    message = _find(reservoir, scope, [number])[0]
    ids = reservoir.lookup.ids_of_conversation(message)
    if count:
        start = min(ids.index(number) - (count - 1) // 2, len(ids) - count)
        ids = ids[max(0, start) : max(0, start) + count]
    return reservoir.messages(ids, Scope(message.partition, message.instance))
