"""``reservoir partitions``: what lies where, and moving or deleting it."""

import shlex
from typing import Annotated

import typer

from reservoir_cli.cli import completion_values, console, nothing_found, open_store, options
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import Scope, check_name
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings import edit_file
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.keys import dotted_key
from reservoir_cli.settings.projects import TABLE
from reservoir_cli.settings.setting_values import format_value

#: What can be done, with how many names.
_VERBS = {"list": 0, "rename": 2, "merge": 2, "delete": 1}
#: Verbs of other programs, each with ours.
_OTHER_VERBS = {"remove": "delete", "rm": "delete", "move": "rename", "mv": "rename", "ls": "list"}
_USAGE = "reservoir partitions [list | rename A B | merge A B | delete P]"


def partitions(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[list | rename A B | merge A B | delete P]",
            help="What to do; nothing lists them.",
            autocompletion=completion_values.partition_words,
        ),
    ] = None,
    rename: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", hidden=True, autocompletion=completion_values.partitions),
    ] = None,
    merge: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", hidden=True, autocompletion=completion_values.partitions),
    ] = None,
    delete: Annotated[
        str | None,
        typer.Option(metavar="P", hidden=True, autocompletion=completion_values.partitions),
    ] = None,
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """List what each partition and instance holds; rename, merge or delete a partition.

    `merge` brings all of A into B; `delete` forgets everything in P. An instance keeps its name,
    but for the one named like the partition.
    """
    flags = {"rename": rename, "merge": merge, "delete": (delete,) if delete is not None else None}
    typed = [(each, *given) for each, given in flags.items() if given is not None]
    verb, *names = _one_action([*typed, *([tuple(words)] if words else [])])
    with open_store.open_reservoir(ctx) as reservoir:
        if verb == "rename":
            _rename(reservoir, names[0], names[1], yes)
        elif verb == "merge":
            _merge(reservoir, names[0], names[1], yes)
        elif verb == "delete":
            _delete(reservoir, names[0], yes)
        if as_json or verb == "list":
            _list(reservoir, as_json)


def _one_action(actions: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the action that was typed, a verb and its names.

    :raises UsageError: there are several, or it is not well formed; the hint is the exact command.
    """
    if len(actions) > 1:
        raise UsageError("choose one of rename, merge and delete", hint="do one after the other")
    verb, *names = actions[0] if actions else ("list",)
    if verb not in _VERBS:
        hint = _command(_OTHER_VERBS[verb], *names) if verb in _OTHER_VERBS else _USAGE
        raise UsageError(f"partitions cannot {verb}", hint=hint)
    if len(names) == _VERBS[verb] and not any(name.startswith("-") for name in names):
        return (verb, *names)
    meant = [part for name in names if not name.startswith("-") for part in name.split("=")]
    fits = len(meant) == _VERBS[verb] != len(names) - sum(name.startswith("-") for name in names)
    hint = _command(verb, *meant) if fits else _USAGE
    takes = options.counted(_VERBS[verb], "name") if _VERBS[verb] else "no name"
    raise UsageError(f"{verb} takes {takes}", hint=hint)


def _command(*words: str) -> str:
    """Return the command of these words, as it is typed."""
    return shlex.join(["reservoir", "partitions", *words])


def _rename(reservoir: Reservoir, old: str, new: str, yes: bool) -> None:
    known = _known(reservoir, old, new)
    if new in known:
        raise ReservoirError(
            f"there is a partition {new}",
            hint=f"reservoir partitions merge {shlex.join([old, new])}",
        )
    if reservoir.config.partitions.get(new):  # else those of the old name go along
        _say_what_ends(reservoir.config, old, new)
    options.confirm(f"rename {old} to {new}, with {known[old]}?", yes)
    _move(reservoir, old, new, "renamed")


def _merge(reservoir: Reservoir, old: str, new: str, yes: bool) -> None:
    known = _known(reservoir, old, new)
    if new not in known:
        raise ReservoirError(
            f"there is no partition {new}",
            hint=f"reservoir partitions rename {shlex.join([old, new])}",
        )
    _say_what_ends(reservoir.config, old, new)
    options.confirm(f"merge {old}, {known[old]}, into {new}, {known[new]}, for good?", yes)
    _move(reservoir, old, new, "merged")


def _say_what_ends(config: Config, old: str, new: str) -> None:
    """Say which settings of a partition will not hold for its messages once they are in another."""
    ends = []
    for key in config.partitions.get(old, {}):
        before, after = (config.lookup(key, partition=each)[0] for each in (old, new))
        if before != after:
            then = format_value(key, after) or "unset"
            ends.append(f"{key}={format_value(key, before)} ({then} in {new})")
    if ends:
        console.note(f"settings of {old} that will hold no more: {', '.join(ends)}")


def _known(reservoir: Reservoir, old: str, new: str | None = None) -> dict[str, str]:
    """List the partitions in words, each with how much it holds.

    :raises ReservoirError: the one that something is to be done with is not among them.
    """
    if new is not None:
        check_name(new)
    if old == new:
        raise UsageError("the two names are the same", hint="give its old and its new name")
    counts: dict[str, list[int]] = {}
    for partition, _, count in reservoir.lookup.places():
        counts.setdefault(partition, []).append(count)
    if old not in counts:
        hint = f"there are {', '.join(sorted(counts))}" if counts else None
        raise ReservoirError(f"there is no partition {old}", hint=hint)
    return {
        partition: f"{options.counted(sum(each), 'message')} in "
        f"{options.counted(len(each), 'instance')}"
        for partition, each in counts.items()
    }


def _move(reservoir: Reservoir, old: str, new: str, done: str) -> None:

    moved, there = reservoir.move_partition(old, new)
    console.aside(f"{done} {old} to {new}: {options.counted(moved, 'message')}")
    if there:
        console.note(f"{options.counted(there, 'message')} of {old} were in {new} already")
    config = reservoir.config
    _move_sources(config, old, new)
    if config.settings().partition == old:
        console.note(f"{old} is used when -p is not given: reservoir config set partition={new}")
    followed = _settings_follow(config, old, new, table=done == "renamed")
    if config.partitions.get(old) and not followed:
        console.note(f"[partitions.{old}] in {config.path} stays, and holds for nothing that moved")


def _move_sources(config: Config, old: str, new: str) -> None:
    """Let what is synced into a partition go to where its messages are."""
    if not any(table.get("partition") == old for table in config.sources.values()):
        return
    try:
        names = edit_file.move_sources(config.path, old, new)
    except UsageError as problem:
        console.warn(problem.message)
        return
    console.note(f"reservoir sync brings {', '.join(names)} to {new} from now on")


def _settings_follow(config: Config, old: str, new: str, *, table: bool) -> bool:
    """Let the settings of a partition go with its messages; say so, or what prevents it.

    :param table: whether its table is renamed, and not only what names the partition.
    :returns: whether the table was renamed.
    """
    is_named = old in config.projects.values() or old in config.mcp_partitions
    if not is_named and not (table and config.partitions.get(old)):
        return False
    try:
        renamed = edit_file.rename_partition(config.path, old, new, table=table)
        if is_named:
            console.note(f"[projects] and [mcp] in {config.path} name {new} now")
        if not renamed:
            return False
    except UsageError as problem:
        console.warn(problem.message)
        return False
    console.note(f"[partitions.{old}] in {config.path} is [partitions.{new}] now")
    return True


def _delete(reservoir: Reservoir, name: str, yes: bool) -> None:
    _known(reservoir, name)
    found = reservoir.find(Scope(name))
    count = options.counted(len(found), "message")
    options.confirm(f"forget all of {name}, {count}, for good?", yes)
    reservoir.forget(found)
    console.aside(f"forgot {count}")
    console.note("backups and exports made earlier still have them")
    _say_what_leads_to(reservoir.config, name)


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

    found = reservoir.partitions()
    if as_json:
        console.document(
            {
                "partitions": [
                    {
                        "partition": each.partition,
                        "instance": each.instance,
                        "messages": each.messages,
                        "bytes": each.bytes,
                        "first": each.first.isoformat(),
                        "last": each.last.isoformat(),
                    }
                    for each in found
                ]
            }
        )
        return
    rows = [
        (
            *(each.partition, each.instance, f"{each.messages:,}", f"{each.bytes:,}"),
            *(moment.isoformat(timespec="seconds") for moment in (each.first, each.last)),
        )
        for each in found
    ]
    columns = ("partition", "instance", "messages", "bytes", "first", "last")
    if rows:
        console.table(columns, rows, numeric=("messages", "bytes"))
    else:
        console.note(nothing_found.NOTHING_STORED)
