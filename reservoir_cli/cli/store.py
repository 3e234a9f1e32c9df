"""The store that a command works on: opening it, and what of it was named."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from reservoir_cli.cli import console, nothing_found
from reservoir_cli.cli.globals import globals_of
from reservoir_cli.errors import ReservoirError, StoreCorruptError, UsageError
from reservoir_cli.messages import Scope, clean_text, parse_role
from reservoir_cli.reservoir import Filter, IdField, Reservoir
from reservoir_cli.settings.location import is_on_a_server
from reservoir_cli.util.times import parse_time

#: Seconds that a program which answers others waits while others write.
_PATIENCE = 10.0
#: The store that was opened last. The end of the process frees its model at once, Python in 7 ms.
_kept: list[Reservoir] = []


@contextmanager
def open_reservoir(ctx: typer.Context, *, create: bool = False) -> Iterator[Reservoir]:
    """Open the store that this run is about, with its settings.

    :param create: make the store when it is not there.
    """
    given = globals_of(ctx)
    if given.db and not create and not is_on_a_server(given.db) and not Path(given.db).exists():
        console.warn(f"there is no store at {given.db}")
    with Reservoir.open(
        given.db,
        config_file=given.config,
        create=create,
        offline=given.offline,
        notify=console.warn,
        progress=console.progress,
    ) as reservoir:
        _kept[:] = [reservoir]
        try:
            yield reservoir
        except _ODD as error:
            _blame_damage(reservoir, error)
            raise
        finally:
            console.progress.stop()


def opener(ctx: typer.Context) -> Callable[..., Reservoir]:
    """Return what opens the store for a program that answers others, as ``Reservoir.open``."""
    given = globals_of(ctx)

    def open_it(**asked: Any) -> Reservoir:
        usual = {"config_file": given.config, "offline": given.offline, "patience": _PATIENCE}
        return Reservoir.open(given.db, ready_only=True, **{**usual, **asked})

    return open_it


#: What values that no store holds may end in, wherever they come to.
_ODD = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)


def _blame_damage(reservoir: Reservoir, error: Exception) -> None:
    """Call an unforeseen error what it is if the store is damaged.

    :raises StoreCorruptError: it is.
    """
    if reservoir.database.is_damaged():
        raise StoreCorruptError(
            f"the store {reservoir.location} is corrupt",
            hint=StoreCorruptError.WAY_OUT,
        ) from error


def read_scope(
    reservoir: Reservoir,
    partition: str | None,
    instance: str | None,
    all_instances: bool,
    all_partitions: bool,
    *,
    one_instance: bool = False,
) -> Scope:
    """Return the scope of a read.

    :param one_instance: without ``-i`` take the instance named like the partition.
    :raises UsageError: options that contradict each other.
    """
    if all_partitions and (partition or instance):
        raise UsageError(
            "--all-partitions contradicts -p and -i", hint="leave -p and -i out to read everything"
        )
    if all_instances and instance:
        raise UsageError(
            "--all-instances contradicts -i",
            hint="leave -i out for the whole partition, --all-instances for that instance",
        )
    if all_partitions:
        return Scope(None)
    scope = reservoir.scope(partition, instance)
    if all_instances or (instance is None and not one_instance):
        return Scope(scope.partition)
    return scope


def message_filter(
    *,
    role: str | None = None,
    trace_id: str | None = None,
    conversation_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
    text: str | None = None,
    source: str | None = None,
    project: str | None = None,
    tag: str | None = None,
    pinned: bool = False,
    secrets: bool = False,
) -> Filter:
    """Which messages are meant, as it was typed.

    :raises UsageError: an unknown role, what is no time, or an empty text.
    """
    if text is not None and not text.strip():
        raise UsageError("--match needs a text", hint='--match "some words"')
    now = datetime.now(UTC)
    return Filter(
        role=parse_role(role).value if role else None,
        trace_id=trace_id,
        conversation_id=conversation_id,
        since=parse_time(since, now) if since else None,
        until=parse_time(until, now) if until else None,
        text=clean_text(text) if text else None,
        source=clean_text(source) if source else None,
        project=clean_text(project) if project else None,
        tag=tag,
        pinned=pinned,
        secrets=secrets,
    )


#: What a filter is called where it is typed, if that is not its name.
_FILTERS = {"text": "match", "trace_id": "trace-id", "conversation_id": "conversation"}


def why_nothing(reservoir: Reservoir, scope: Scope, where: Filter) -> str:
    """Why a read found nothing: the filters that no message passes, or where messages are."""
    if not reservoir.view(scope, 1):
        return nothing_found.sentence(scope, reservoir.lookup.places())
    open_to_all = asdict(type(where)())
    typed = [
        f"--{_FILTERS.get(name, name)}"
        for name, value in asdict(where).items()
        if value != open_to_all[name]
    ]
    return describe_no_match("message", scope, typed, where) if typed else ""


def describe_no_match(noun: str, scope: Scope, typed: Sequence[str], where: Filter) -> str:
    """Say that nothing in a scope passes the filters that were typed."""
    does = f"has the tag {where.tag}" if typed == ["--tag"] else f"passes {' and '.join(typed)}"
    return f"no {noun} in {nothing_found.place(scope)} {does}"


def whole_id(reservoir: Reservoir, field: IdField, typed: str | None, scope: Scope) -> str | None:
    """Complete the beginning of a trace or conversation id; what is none is returned as typed.

    :raises UsageError: several ids of the scope begin so, and none is exactly this.
    """
    if typed is None:
        return None
    ids = reservoir.lookup.ids_starting_with(field, clean_text(typed), scope)
    if typed in ids or not ids:
        return typed
    if len(ids) > 1:
        shown = ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")
        raise UsageError(
            f"--{_FILTERS[field]} {typed} is not unique: {shown}", hint="type more of the id"
        )
    return ids[0]


def no_message(reservoir: Reservoir, number: int, scope: Scope) -> ReservoirError:
    """Return the error for a message that is not where it was looked for; say where it is."""
    hint = "on a terminal, reservoir view and reservoir search show the numbers"
    for each in reservoir.messages([number]):
        hint = f"it is in partition {each.partition}: -p {each.partition}"
    return ReservoirError(f"no message {number} in {nothing_found.place(scope)}", hint=hint)


def say_elsewhere(
    reservoir: Reservoir, partition: str, instance: str | None, where: Filter
) -> None:
    """Say why a context found no message: its filters, or where messages are."""
    scope = Scope(partition, instance)
    if not reservoir.view(scope, 1):
        places = reservoir.lookup.places()
        nothing_found.tell(scope, places, in_partition="--recall-scope partition")
    elif where != Filter() and not reservoir.view(scope, 1, where):
        console.note(why_nothing(reservoir, scope, where))
