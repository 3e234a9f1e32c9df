"""``reservoir partitions``: list, rename, merge and delete partitions."""

import shlex
from functools import partial
from typing import Annotated, Any, ClassVar

import typer

from reservoir_cli.cli import console, nothing_found, open_store, options
from reservoir_cli.cli.commands import forget
from reservoir_cli.cli.help import ActionGroup, HelpfulCommand, new_app
from reservoir_cli.cli.options import argument, complete_partitions
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import Scope, check_name
from reservoir_cli.reservoir import ChannelSummary, Reservoir
from reservoir_cli.settings import edit_settings_file
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.projects import TABLE
from reservoir_cli.settings.schema import SETTINGS
from reservoir_cli.settings.setting_keys import dotted_key
from reservoir_cli.util.progress import counted


class _Partitions(ActionGroup):
    other_words: ClassVar = {
        **dict.fromkeys(("remove", "rm"), "delete"),
        **dict.fromkeys(("move", "mv"), "rename"),
        "ls": "list",
    }


partitions = new_app(
    cls=_Partitions,
    invoke_without_command=True,
    help="""List, rename, merge or delete partitions.

    Instances keep their names, except the one named after the partition.
    """,
)
action = partial(partitions.command, cls=HelpfulCommand)


def _name(metavar: str, about: str = "A partition.") -> Any:
    return argument(metavar, about, complete=complete_partitions)


@partitions.callback()
def list_without_action(ctx: typer.Context, as_json: options.Json = False) -> None:
    """List partitions unless an action is named."""
    if not ctx.invoked_subcommand:
        list_(ctx, as_json)


@action("list", epilog="Example: reservoir partitions list --json")
def list_(ctx: typer.Context, as_json: options.Json = False) -> None:
    """List partitions and their instances."""
    with open_store.open_reservoir(ctx) as reservoir:
        _list(reservoir, options.wants_json(ctx, as_json))


@action(epilog="Example: reservoir partitions rename work acme")
def rename(
    ctx: typer.Context,
    old: Annotated[str, _name("A")],
    new: Annotated[str, _name("B", "Its new name.")],
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """Rename a partition from A to B."""
    with open_store.open_reservoir(ctx) as reservoir:
        if new.startswith("-"):  # probably an option in the wrong place
            raise UsageError(
                f"the new name {new} begins with a hyphen", hint=_command("rename", old, "B")
            )
        sizes = _describe_partitions(reservoir, old, new)
        if new in sizes:
            raise ReservoirError(f"there is a partition {new}", hint=_command("merge", old, new))
        if reservoir.config.partitions.get(new):  # otherwise the settings move along
            _note_lost_settings(reservoir.config, old, new)
        options.confirm(f"rename {old} to {new}, with {sizes[old]}?", yes)
        _move(reservoir, old, new, "renamed")
        _list_as_json(ctx, reservoir, as_json)


@action(epilog="Example: reservoir partitions merge old acme")
def merge(
    ctx: typer.Context,
    old: Annotated[str, _name("A")],
    new: Annotated[str, _name("B")],
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """Move everything from A to B."""
    with open_store.open_reservoir(ctx) as reservoir:
        sizes = _describe_partitions(reservoir, old, new)
        if new not in sizes:
            raise ReservoirError(f"there is no partition {new}", hint=_command("rename", old, new))
        _note_lost_settings(reservoir.config, old, new)
        options.confirm(f"merge {old}, {sizes[old]}, into {new}, {sizes[new]}, for good?", yes)
        _move(reservoir, old, new, "merged")
        _list_as_json(ctx, reservoir, as_json)


@action(epilog="Example: reservoir partitions delete scratch")
def delete(
    ctx: typer.Context,
    name: Annotated[str, _name("P")],
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """Forget everything in P."""
    with open_store.open_reservoir(ctx) as reservoir:
        _describe_partitions(reservoir, name)
        keys = reservoir.find(Scope(name))
        question = f"forget all of {name}, {counted(len(keys), 'message')}, for good?"
        options.require_answer(question, yes)
        if not yes:
            forget.note_later_imports(reservoir, Scope(name))
        options.confirm(question, yes)
        reservoir.forget(keys)
        forget.print_forgotten(len(keys))
        if yes:
            them = options.pronoun(len(keys))
            console.note(f"later imports leave {them} out, unless you add --include-forgotten")
        _say_what_leads_to(reservoir.config, name)
        _list_as_json(ctx, reservoir, as_json)


def _list_as_json(ctx: typer.Context, reservoir: Reservoir, as_json: bool) -> None:
    if options.wants_json(ctx, as_json):
        _list(reservoir, as_json=True)


def _command(verb: str, *names: str) -> str:
    return f"reservoir partitions {options.quote(verb, *names)}"


def _note_lost_settings(config: Config, old: str, new: str) -> None:
    lost = []
    for key in config.partitions.get(old, {}):
        before, after = (config.lookup(key, partition=name)[0] for name in (old, new))
        if before != after:
            replacement = SETTINGS[key].format(after) or "unset"
            lost.append(f"{key}={SETTINGS[key].format(before)} ({replacement} in {new})")
    if lost:
        console.note(f"settings of {old} that will no longer apply: {', '.join(lost)}")


def _describe_partitions(reservoir: Reservoir, old: str, new: str | None = None) -> dict[str, str]:
    if new is not None:
        check_name(new)
    if old == new:
        raise UsageError("the two names are the same", hint="give the old and the new name")
    counts: dict[str, list[int]] = {}
    for partition, _, count in reservoir.lookup.channels():
        counts.setdefault(partition, []).append(count)
    if old not in counts:
        hint = f"partitions are {', '.join(sorted(counts))}" if counts else None
        raise ReservoirError(f"there is no partition {old}", hint=hint)
    return {
        partition: f"{counted(sum(sizes), 'message')} in {counted(len(sizes), 'instance')}"
        for partition, sizes in counts.items()
    }


def _move(reservoir: Reservoir, old: str, new: str, verb: str) -> None:
    moved, duplicates = reservoir.move_partition(old, new)
    to = "into" if verb == "merged" else "to"
    console.aside(f"{verb} {old} {to} {new}: {counted(moved, 'message')}")
    if duplicates:
        console.note(f"{counted(duplicates, 'message')} of {old} were in {new} already")
    config = reservoir.config
    _move_sources(config, old, new)
    _move_default(config, old, new)
    is_renamed = _move_settings(config, old, new, table=verb == "renamed")
    if config.partitions.get(old) and not is_renamed:
        console.note(
            f"[partitions.{old}] stays in {config.path}, but does not apply to the moved messages"
        )


def _move_default(config: Config, old: str, new: str) -> None:
    """Make the new partition the default if the settings file names the old one as that."""
    if config.values.get("partition") == old:
        try:
            edit_settings_file.edit(config.path, {"partition": new})
        except UsageError as problem:
            console.warn(problem.message)
        else:
            console.note(f"the default partition in {config.path} is now {new}")
            return
    if config.lookup("partition")[0] == old:
        command = f"reservoir config set {shlex.quote(f'partition={new}')}"
        console.note(f"{old} is still the default partition: {command}")


def _move_sources(config: Config, old: str, new: str) -> None:
    if not any(table.get("partition") == old for table in config.sources.values()):
        return
    try:
        names = edit_settings_file.move_sources(config.path, old, new)
    except UsageError as problem:
        console.warn(problem.message)
        return
    console.note(f"reservoir sync imports {', '.join(names)} into {new} from now on")


def _move_settings(config: Config, old: str, new: str, *, table: bool) -> bool:
    """Return whether the partition's table was renamed."""
    is_named = old in config.projects.values() or old in config.mcp_partitions
    if not is_named and not (table and config.partitions.get(old)):
        return False
    try:
        renamed = edit_settings_file.rename_partition(config.path, old, new, table=table)
        if is_named:
            console.note(f"[projects] and [mcp] in {config.path} now name {new}")
        if not renamed:
            return False
    except UsageError as problem:
        console.warn(problem.message)
        return False
    console.note(f"[partitions.{old}] in {config.path} is now [partitions.{new}]")
    return True


def _say_what_leads_to(config: Config, name: str) -> None:
    """Say which settings would make a deleted partition again, and how to take them out."""
    folders = [folder for folder, partition in config.projects.items() if partition == name]
    if folders:
        keys = shlex.join(dotted_key(TABLE, "", folder) for folder in folders)
        console.note(
            f"sessions in {', '.join(folders)} still go to {name}: reservoir config unset {keys}"
        )
    synced = [source for source, table in config.sources.items() if table.get("partition") == name]
    if synced:
        console.note(
            f"reservoir sync still brings {', '.join(synced)} to {name}: [sources] in {config.path}"
        )


def _list(reservoir: Reservoir, as_json: bool) -> None:
    summaries = reservoir.partitions()
    if as_json:
        console.document({"partitions": [_row(summary) for summary in summaries]})
        return
    rows = [
        (
            *(summary.partition, summary.instance, f"{summary.messages:,}", f"{summary.bytes:,}"),
            *(moment.isoformat(timespec="seconds") for moment in (summary.first, summary.last)),
        )
        for summary in summaries
    ]
    columns = ("partition", "instance", "messages", "bytes", "first", "last")
    if rows:
        console.table(columns, rows, numeric=("messages", "bytes"))
    else:
        console.note(nothing_found.NOTHING_STORED)


def _row(summary: ChannelSummary) -> dict[str, Any]:
    times = {"first": summary.first.isoformat(), "last": summary.last.isoformat()}
    return summary._asdict() | times
