"""``reservoir tag``, ``untag``, ``pin`` and ``unpin``."""

from collections.abc import Sequence
from typing import Annotated

import typer

from reservoir_cli.cli import console, mistyped_commands, nothing_found, open_store, options
from reservoir_cli.cli.options import argument
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Scope, StoredMessage, check_name
from reservoir_cli.reservoir import Reservoir

Number = Annotated[str, argument("ID", "Message number: 12 or '#12'.")]
Names = Annotated[list[str], argument("NAME...", "Tags.")]


def tag(
    ctx: typer.Context, number: Number, names: Names, partition: options.Partition = None
) -> None:
    """Give a message one or more tags.

    The option --tag of view, search, context, export and conversations filters by tag.
    """
    names = list(map(check_name, names))
    check_order(number, names)
    with open_store.open_reservoir(ctx) as reservoir:
        message = find(reservoir, number, partition)
        _print_tags(reservoir.tag(message.key, *names))


def untag(
    ctx: typer.Context, number: Number, names: Names, partition: options.Partition = None
) -> None:
    """Remove tags from a message."""
    check_order(number, names)
    with open_store.open_reservoir(ctx) as reservoir:
        message = find(reservoir, number, partition)
        _print_tags(reservoir.untag(message.key, *names))
        for name in names:
            if name not in message.tags:
                console.note(f"it had no tag {name}")


def pin(ctx: typer.Context, number: Number, partition: options.Partition = None) -> None:
    """Include a message in every context of its partition.

    Pinned messages use at most a quarter of the budget, as far as they fit; the newest pin comes
    first.
    """
    with open_store.open_reservoir(ctx) as reservoir:
        message = find(reservoir, number, partition)
        if message.pinned_at:
            console.note("it is pinned already")
        reservoir.pin(message.key)


def unpin(ctx: typer.Context, number: Number, partition: options.Partition = None) -> None:
    """Unpin a message."""
    with open_store.open_reservoir(ctx) as reservoir:
        message = find(reservoir, number, partition)
        if not message.pinned_at:
            console.note("it is not pinned")
        reservoir.unpin(message.key)


def check_order(number: str, others: Sequence[str]) -> None:
    """Raise UsageError, with the right order as a hint, if the number is not the first argument."""
    if not options.is_number(number):
        for other in filter(options.is_number, others):
            raise UsageError(
                f"ID: {number!r} is not a message number",
                hint=mistyped_commands.replace_words({number: other, other: number}),
            )


def find(reservoir: Reservoir, typed: str, partition: str | None) -> StoredMessage:
    """Return a message of a partition, or raise ReservoirError; print its preview."""
    number = options.message_number(typed, "ID")
    scope = Scope(reservoir.scope(partition).partition)
    for message in reservoir.messages([number], scope):
        console.aside(options.first_words(message))
        return message
    raise nothing_found.no_message(reservoir, number, scope)


def _print_tags(message: StoredMessage) -> None:
    console.aside(f"tags: {', '.join(message.tags)}" if message.tags else "no tags")
