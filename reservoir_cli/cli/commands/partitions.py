"""``reservoir partitions``: what lies where, and moving or deleting it."""

from typing import TYPE_CHECKING, Annotated

import typer

from reservoir_cli.cli import completion, console, options
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import Scope, check_name
from reservoir_cli.settings.schema import format_value

if TYPE_CHECKING:
    from reservoir_cli.reservoir import Reservoir
    from reservoir_cli.settings.config import Config


def partitions(
    ctx: typer.Context,
    rename: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="A B",
            help="Call partition A by the new name B.",
            autocompletion=completion.partitions,
        ),
    ] = None,
    merge: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="A B",
            help="Bring all of partition A into partition B.",
            autocompletion=completion.partitions,
        ),
    ] = None,
    delete: Annotated[
        str | None,
        typer.Option(
            metavar="P",
            help="Forget everything in partition P.",
            autocompletion=completion.partitions,
        ),
    ] = None,
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """List what each partition and instance holds; rename, merge or delete a partition.

    An instance keeps its name, but for the one named like the partition.
    """
    if sum(each is not None for each in (rename, merge, delete)) > 1:
        raise UsageError(
            "choose one of --rename, --merge and --delete", hint="do one after the other"
        )
    if (rename, merge, delete) != (None, None, None):
        options.require_answer(yes)
    with options.open_reservoir(ctx) as reservoir:
        if rename is not None:
            _rename(reservoir, *rename, yes)
        elif merge is not None:
            _merge(reservoir, *merge, yes)
        elif delete is not None:
            _delete(reservoir, delete, yes)
        if as_json or (rename, merge, delete) == (None, None, None):
            _list(reservoir, as_json)


def _rename(reservoir: "Reservoir", old: str, new: str, yes: bool) -> None:
    known = _known(reservoir, old, new)
    if new in known:
        raise ReservoirError(f"there is a partition {new}", hint="--merge brings two together")
    if reservoir.config.partitions.get(new):  # else those of the old name go along
        _say_what_ends(reservoir.config, old, new)
    options.confirm(f"rename {old} to {new}, with {known[old]}?", yes)
    _move(reservoir, old, new, "renamed")


def _merge(reservoir: "Reservoir", old: str, new: str, yes: bool) -> None:
    known = _known(reservoir, old, new)
    if new not in known:
        raise ReservoirError(f"there is no partition {new}", hint="--rename gives a new name")
    _say_what_ends(reservoir.config, old, new)
    options.confirm(f"merge {old}, {known[old]}, into {new}, {known[new]}, for good?", yes)
    _move(reservoir, old, new, "merged")


def _say_what_ends(config: "Config", old: str, new: str) -> None:
    """Say which settings of a partition will not hold for its messages once they are in another."""
    ends = []
    for key in config.partitions.get(old, {}):
        before, after = (config.lookup(key, partition=each)[0] for each in (old, new))
        if before != after:
            then = format_value(key, after) or "unset"
            ends.append(f"{key}={format_value(key, before)} ({then} in {new})")
    if ends:
        console.note(f"settings of {old} that will hold no more: {', '.join(ends)}")


def _known(reservoir: "Reservoir", old: str, new: str | None = None) -> dict[str, str]:
    """List the partitions in words, each with how much it holds.

    :raises ReservoirError: the one that something is to be done with is not among them.
    """
    if new is not None:
        check_name(new)
    if old == new:
        raise UsageError("the two names are the same", hint="give its old and its new name")
    counts: dict[str, list[int]] = {}
    for partition, _, count in reservoir.places():
        counts.setdefault(partition, []).append(count)
    if old not in counts:
        hint = f"there are {', '.join(sorted(counts))}" if counts else None
        raise ReservoirError(f"there is no partition {old}", hint=hint)
    return {
        partition: f"{options.counted(sum(each), 'message')} in "
        f"{options.counted(len(each), 'instance')}"
        for partition, each in counts.items()
    }


def _move(reservoir: "Reservoir", old: str, new: str, done: str) -> None:

    moved, there = reservoir.move_partition(old, new)
    console.aside(f"{done} {old} to {new}: {options.counted(moved, 'message')}")
    if there:
        console.note(f"{options.counted(there, 'message')} of {old} were in {new} already")
    config = reservoir.config
    if config.settings().partition == old:
        console.note(f"{old} is used when -p is not given: reservoir config --set partition={new}")
    if config.partitions.get(old) and not (
        done == "renamed" and _settings_follow(config, old, new)
    ):
        console.note(f"[partitions.{old}] in {config.path} stays, and holds for nothing that moved")


def _settings_follow(config: "Config", old: str, new: str) -> bool:
    """Let the settings of a partition go with its messages; say so, or what prevents it."""
    from reservoir_cli.settings import file as settings_file

    try:
        if not settings_file.rename_partition(config.path, old, new):
            return False
    except UsageError as problem:
        console.warn(problem.message)
        return False
    console.note(f"[partitions.{old}] in {config.path} is [partitions.{new}] now")
    return True


def _delete(reservoir: "Reservoir", name: str, yes: bool) -> None:
    _known(reservoir, name)
    found = reservoir.find(Scope(name))
    count = options.counted(len(found), "message")
    options.confirm(f"forget all of {name}, {count}, for good?", yes)
    reservoir.forget(found)
    console.aside(f"forgot {count}")
    console.note("backups and exports made earlier still have them")


def _list(reservoir: "Reservoir", as_json: bool) -> None:

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
        console.note("nothing is stored yet: reservoir ingest")
