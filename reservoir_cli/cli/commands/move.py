"""``reservoir move``: move messages to another partition."""

import re
import shlex
from collections.abc import Sequence
from typing import Annotated

import typer

from reservoir_cli.cli import console, filters, nothing_found, open_store, options
from reservoir_cli.cli.commands.forget import preview, print_found, print_lines
from reservoir_cli.cli.options import flag, option
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Filter, Key, Scope, check_name
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.util.progress import counted

#: A partition and perhaps an instance; a backslash escapes a slash or another backslash.
_CHANNEL = re.compile(r"((?:\\[\\/]|\\(?![\\/])|[^/\\])+)(?:/(.*(?:[^/]|\\/)))?", re.S)
_NAMED = 12  # at most this many messages are named by number in the command that moves them back


def move(
    ctx: typer.Context,
    to: Annotated[
        str,
        option(
            "PARTITION[/INSTANCE]",
            r"Where to; instances keep their names. \/ is a slash in a name.",
            "--to",
        ),
    ],
    ids: options.Ids = None,
    conversation_id: filters.Conversation = None,
    project: filters.Project = None,
    text: filters.Match = None,
    since: filters.Since = None,
    until: filters.Until = None,
    source: filters.Source = None,
    tag: filters.Tag = None,
    partition: options.Partition = None,
    instance: options.ReadInstance = None,
    all_partitions: options.AllPartitions = False,
    dry_run: Annotated[bool, flag("--dry-run", "Show what would be moved; move nothing.")] = False,
    yes: options.Yes = False,
    no_embed: options.NoEmbed = False,
    as_json: options.Json = False,
) -> None:
    """Move messages and their conversations to another partition.

    Choose them by number or by filters. They keep their times, tags and origins: later imports know
    them, and later turns of their conversations follow them. Moving them back undoes it. For all
    messages of a partition: reservoir partitions merge.
    """
    numbers = tuple(map(options.message_number, ids or ()))
    if bool(numbers) == bool(filters.typed_filters(ctx)):
        raise UsageError(
            "choose the messages to move by --id or by filters",
            hint="--id, or --conversation, --project, --match, --since, --until, --source, --tag",
        )
    target, within = _split_channel(to)
    with open_store.open_reservoir(ctx) as reservoir:
        scope = filters.read_scope(reservoir, partition, instance, all_partitions)
        where = filters.complete_ids(reservoir, filters.message_filter(ctx), scope, note=True)
        keys = (
            nothing_found.keys_of(reservoir, numbers, scope)
            if numbers
            else reservoir.find(scope, where)
        )
        count = counted(len(keys), "message")
        question = f"move {count} of {nothing_found.name_scope(scope)} to {to}?"
        moved: list[Key] = []
        merged = 0
        if not keys:
            _explain_nothing(reservoir, scope, where, yes)
        elif dry_run:
            print_found(reservoir, keys, as_json)
            console.aside(f"would move {count} to {to}")
        else:
            options.require_answer(question, yes)
            if not yes:
                print_lines(preview(reservoir, keys))
            options.confirm(question, yes)
            origins = {(row.partition, row.instance) for row in reservoir.messages(keys)}
            moved, merged = reservoir.move(keys, target, within)
            _print_moved(moved, merged, to, origins)
            if moved and not no_embed:
                reservoir.indexer.embed_if_possible()
    if as_json:
        chosen = keys if dry_run else moved
        counts = {"moved": len(chosen), "ids": [key.id for key in chosen], "merged": merged}
        console.document({**counts, "to": to, "dry_run": dry_run})


def _split_channel(to: str) -> tuple[str, str | None]:
    r"""Return a partition, and an instance if one is named; a slash in a name is typed as \/.

    :raises UsageError: one of them is empty or not a name.
    """
    parts = _CHANNEL.fullmatch(to)
    if not parts:
        raise UsageError("--to needs a partition", hint="--to work, or --to work/claude-code")
    target, within = (part and re.sub(r"\\([\\/])", r"\1", part) for part in parts.groups())
    check_name(target)
    if within:
        check_name(within)
    return target, within


def _quote(partition: str, instance: str) -> str:
    """Write a partition and an instance as ``--to`` reads them."""
    return "/".join(re.sub(r"[\\/]", r"\\\g<0>", name) for name in (partition, instance))


def _print_moved(moved: Sequence[Key], merged: int, to: str, origins: set[tuple[str, str]]) -> None:
    console.aside(f"moved {counted(len(moved), 'message')} to {to}")
    if merged:
        verb = "was" if merged == 1 else "were"
        console.note(f"{counted(merged, 'message')} {verb} in {to} already")
    if len(origins) == 1 and 0 < len(moved) <= _NAMED:
        [(partition, instance)] = origins
        numbers = [word for key in moved for word in ("--id", str(key.id))]
        words = ["reservoir", "move", *numbers, "-p", moved[0].partition]
        console.note(f"to undo: {shlex.join([*words, '--to', _quote(partition, instance)])}")


def _explain_nothing(reservoir: Reservoir, scope: Scope, where: Filter, yes: bool) -> None:
    if others := reservoir.lookup.elsewhere(scope, where):
        elsewhere = nothing_found.describe_elsewhere(scope, others, "", "--all-partitions")
        nothing_found.fail_or_warn(elsewhere, fails=yes)
    else:
        console.note(f"nothing to move in {nothing_found.name_scope(scope)}")
