"""``reservoir forget``: delete messages for good."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated

import typer

from reservoir_cli.cli import console, filters, nothing_found, open_store, options
from reservoir_cli.cli.options import flag, option
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import EVERYWHERE, Filter, Key, Scope, StoredMessage
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.util.progress import counted

_BATCH = 1_000
_PREVIEWED = 3  # number of messages shown before the confirmation
_WIDER = ("", "--all-partitions")  # how to widen the scope, for notes on where messages are
_COUNTED = 6  # at most this many instances are counted in a question


def forget(
    ctx: typer.Context,
    ids: options.Ids = None,
    trace_id: Annotated[
        str | None, option("ID", "A question and its replies.", "--trace-id")
    ] = None,
    conversation_id: Annotated[
        str | None,
        options.conversation_option("All messages of this conversation.", "--conversation"),
    ] = None,
    text: Annotated[
        str | None, option("TEXT", "Messages that contain this text; case is ignored.", "--match")
    ] = None,
    source: filters.Source = None,
    project: filters.Project = None,
    until: Annotated[
        str | None, option("T", "Messages from before this time: 2026-05-09, 90d.", "--before")
    ] = None,
    expired: Annotated[
        bool, flag("--expired", "Messages older than the setting retention_days.")
    ] = False,
    everything: Annotated[bool, flag("--scope", "All messages in the scope.")] = False,
    partition: options.Partition = None,
    instance: options.Instance = None,
    all_instances: options.EveryInstance = False,
    all_partitions: options.AllPartitions = False,
    dry_run: Annotated[
        bool, flag("--dry-run", "Show what would be deleted; delete nothing.")
    ] = False,
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """Delete messages, and all traces of their text in the store.

    All options but --scope search the whole partition, unless -i names an instance of it.
    Importing a file again does not bring forgotten messages back, unless you add
    --include-forgotten. Backups and exports made earlier still have them. Trace and conversation
    ids can be shortened to a unique prefix.
    """
    numbers = tuple(map(options.message_number, ids or ()))
    _require_one(numbers, expired, everything, *filters.typed_filters(ctx))
    with open_store.open_reservoir(ctx) as reservoir:
        scope = filters.read_scope(
            reservoir,
            partition,
            instance,
            all_partitions,
            all_instances=all_instances,
            one_instance=everything,
        )
        choice = _Choice(numbers, _filter(ctx, reservoir, scope), expired, everything)
        keys = choice.find(reservoir, scope)
        count = counted(len(keys or ()), "message")
        instances = _count_instances(reservoir, scope, keys or ())
        question = f"forget {count} in {nothing_found.name_scope(scope)}{instances} for good?"
        if keys is not None:
            options.require_answer(question, yes or dry_run)
        if not keys:
            _explain_nothing(reservoir, scope, choice, keys, yes)
        if keys and dry_run:
            print_found(reservoir, keys, as_json)
            console.aside(f"would forget {count}")
        elif keys:
            lines = preview(reservoir, keys)
            if not yes:
                print_lines(lines)
            if not yes and choice.scope:
                note_later_imports(reservoir, scope)
            options.confirm(question, yes)
            reservoir.forget(keys)
            if yes and choice.ids:
                print_lines(lines)
            print_forgotten(len(keys))
        if keys:
            _note_others(reservoir, scope, choice)
    if as_json:
        forgotten = [key.id for key in keys or ()]
        console.document({"forgotten": len(forgotten), "ids": forgotten, "dry_run": dry_run})


def _require_one(*options: object) -> None:
    if sum(map(bool, options)) != 1:
        raise UsageError(
            "choose the messages to forget by exactly one option",
            hint="--id, --trace-id, --conversation, --match, --source, --project, --before, "
            "--expired or --scope",
        )


def _read(reservoir: Reservoir, keys: Sequence[Key]) -> Iterator[StoredMessage]:
    for start in range(0, len(keys), _BATCH):
        yield from reservoir.messages(keys[start : start + _BATCH])


def _count_instances(reservoir: Reservoir, scope: Scope, keys: Sequence[Key]) -> str:
    counts = Counter(
        message.instance if scope.partition else f"{message.partition}/{message.instance}"
        for message in _read(reservoir, keys)
    )
    if len(counts) < 2:
        return ""
    named = [f"{name} {count:,}" for name, count in counts.most_common(_COUNTED)]
    more = [f"{len(counts) - _COUNTED:,} others"] if len(counts) > _COUNTED else []
    return f" ({', '.join([*named, *more])})"


@dataclass(frozen=True, slots=True)
class _Choice:
    """The option that selects the messages to forget."""

    ids: tuple[int, ...]
    where: Filter  # for the other options it matches everything
    expired: bool
    scope: bool

    def wider(self) -> tuple[str | None, str]:
        return (None, "") if self.scope else _WIDER

    def channels(self, reservoir: Reservoir, scope: Scope) -> list[tuple[str, str, int]] | None:
        """``None``: see :meth:`~reservoir_cli.retrieval.lookup.Lookup.elsewhere`."""
        if not self.expired:
            return reservoir.lookup.elsewhere(scope, self.where)
        keys = reservoir.lookup.expired(reservoir.config, EVERYWHERE) or ()
        counts = Counter((row.partition, row.instance) for row in _read(reservoir, keys))
        return [(*channel, count) for channel, count in counts.items()]

    def find(self, reservoir: Reservoir, scope: Scope) -> Sequence[Key] | None:
        """Return the keys of the chosen messages; ``None`` if messages never expire."""
        if self.expired:
            return reservoir.lookup.expired(reservoir.config, scope)
        if not self.ids:
            return reservoir.find(scope, self.where)
        return nothing_found.keys_of(reservoir, self.ids, scope)


def _filter(ctx: typer.Context, reservoir: Reservoir, scope: Scope) -> Filter:
    where = filters.complete_ids(reservoir, filters.message_filter(ctx), scope, note=True)
    if where.until:
        where = replace(where, until=where.until - timedelta(milliseconds=1))
    return where


def _explain_nothing(
    reservoir: Reservoir, scope: Scope, choice: _Choice, keys: Sequence[Key] | None, yes: bool
) -> None:
    """Say where matching messages are; never name an option that would delete other messages."""
    if keys is None:
        console.note("messages never expire: the setting retention_days is unset")
        return
    channels = reservoir.lookup.elsewhere(scope)
    others = choice.channels(reservoir, scope)
    fails = yes and bool(others)
    if channels and (missing := nothing_found.describe_missing_partition(scope, channels)):
        named = others and not choice.scope and nothing_found.name_partitions(others)
        hint = f"matching elsewhere: {named}" if named else None
        nothing_found.fail_or_warn(missing, hint, fails=fails)
    elif others:
        elsewhere = nothing_found.describe_elsewhere(scope, others, *choice.wider())
        nothing_found.fail_or_warn(elsewhere, fails=fails)
    else:
        nothing = f"nothing to forget in {nothing_found.name_scope(scope)}"
        console.note(nothing_found.NOTHING_STORED if channels == [] else nothing)
        if choice.where.conversation_id and reservoir.view(scope, 1):
            words = ["reservoir", "conversations", "--match", choice.where.conversation_id]
            words += ["-p", scope.partition] if scope.partition else ["--all-partitions"]
            console.note(f"{shlex.join(words)} searches titles and messages")


def _note_others(reservoir: Reservoir, scope: Scope, choice: _Choice) -> None:
    where = choice.where
    if (where.text, where.source, where.project, where.until) == (None,) * 4:
        return
    channels = reservoir.lookup.elsewhere(scope, where)
    if others := nothing_found.describe_others(scope, channels, *choice.wider()):
        console.note(f"matching and not forgotten: {others}")


def preview(reservoir: Reservoir, keys: Sequence[Key]) -> list[str]:
    """Return a line for each of the first messages that will be deleted."""
    lines = [options.first_words(message) for message in reservoir.messages(keys[:_PREVIEWED])]
    if len(keys) > _PREVIEWED:
        lines.append(f"and {counted(len(keys) - _PREVIEWED, 'message')} more")
    return lines


def print_lines(lines: Iterable[str]) -> None:
    """Print lines to stderr."""
    for line in lines:
        console.aside(line)


def print_found(reservoir: Reservoir, keys: Sequence[Key], as_json: bool) -> None:
    """Print the messages that a dry run found, as a table unless the output is JSON."""
    if not as_json:
        for start in range(0, len(keys), _BATCH):
            console.table(
                ("id", "time", "place", "message"),
                [
                    (
                        str(message.id),
                        message.created_at.isoformat(timespec="seconds"),
                        f"{message.partition}/{message.instance}",
                        console.message_line(message, False, True),
                    )
                    for message in reservoir.messages(keys[start : start + _BATCH])
                ],
            )


def note_later_imports(reservoir: Reservoir, scope: Scope) -> None:
    """Say that no import brings a scope back; name the command that moves a partition instead."""
    note = "later imports, into any partition, will leave these messages out"
    channels = reservoir.lookup.channels()
    instances = {instance for partition, instance, _ in channels if partition == scope.partition}
    if instances and (scope.instance is None or instances == {scope.instance}):
        has_others = any(partition != scope.partition for partition, _, _ in channels)
        verb = "merge" if has_others else "rename"
        command = f"reservoir partitions {options.quote(verb, str(scope.partition), 'RIGHT')}"
        note = f"{note}; to move them to the partition RIGHT instead: {command}"
    console.note(note)


def print_forgotten(count: int) -> None:
    """Print how many messages were deleted, and that older copies still have them."""
    console.aside(f"forgot {counted(count, 'message')}")
    console.note(f"backups and exports made earlier still have {options.pronoun(count)}")
