"""Declare and parse the options that select messages: filters such as ``--since``, scope, ids."""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, get_args

import typer

from reservoir_cli.cli import console
from reservoir_cli.cli.options import (
    FILTERS,
    ROLES,
    complete_stored,
    conversation_option,
    flag,
    name_option,
    option,
)
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import EVERYWHERE, Filter, IdField, Scope, clean_text, parse_role
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.util.parse_time_options import parse_time


def _filter(metavar: str, about: str, *names: str) -> Any:
    return option(metavar, about, *names, panel=FILTERS)


def _name_filter(about: str, stored: str) -> Any:
    return name_option(about, panel=FILTERS, complete=complete_stored(stored))


Trace = Annotated[
    str | None, name_option("Only a question and its replies.", metavar="ID", panel=FILTERS)
]
Conversation = Annotated[
    str | None, conversation_option("Only this conversation.", "--conversation", panel=FILTERS)
]
Match = Annotated[
    str | None, _filter("TEXT", "Only messages with this text; case is ignored.", "--match")
]
Since = Annotated[str | None, _filter("T", "From this time on: 2026-05-09 (inclusive), 7d.")]
Until = Annotated[str | None, _filter("T", "Up to this time: 2026-05-09 (exclusive), 7d.")]
Role = Annotated[
    str | None,
    option("ROLE", "Only user, assistant, system or tool.", "--role", panel=FILTERS, choices=ROLES),
]
Source = Annotated[
    str | None, _name_filter("Only messages from this tool, such as chatgpt or cli.", "source")
]
Project = Annotated[
    str | None, _name_filter("Only conversations held in a folder with this name.", "project")
]
Tag = Annotated[str | None, _name_filter("Only messages with this tag.", "tag")]
ConversationTag = Annotated[
    str | None, _name_filter("Only conversations with a message that has this tag.", "tag")
]
Pinned = Annotated[bool, flag("--pinned", "Only pinned messages.", FILTERS)]
Secrets = Annotated[bool, flag("--secrets", "Only messages in which secrets were found.", FILTERS)]

#: The options of filters that have another name than their field.
OPTION_NAMES = {"text": "match", "trace_id": "trace-id", "conversation_id": "conversation"}


def read_scope(
    reservoir: Reservoir,
    partition: str | None,
    instance: str | None,
    all_partitions: bool,
    *,
    all_instances: bool = False,
    one_instance: bool = False,
) -> Scope:
    """Return the scope of a read; if ``one_instance``, the one named like the partition."""
    if all_partitions and (partition or instance):
        raise UsageError(
            "--all-partitions contradicts -p and -i",
            hint="leave -p and -i out for all messages, --all-partitions for one partition",
        )
    if all_instances and instance:
        raise UsageError(
            "--all-instances contradicts -i",
            hint="leave -i out for the whole partition, --all-instances for that instance",
        )
    if all_partitions:
        return EVERYWHERE
    scope = reservoir.scope(partition, instance)
    if all_instances or (instance is None and not one_instance):
        return Scope(scope.partition)
    return scope


def typed_filters(ctx: typer.Context) -> dict[str, Any]:
    """Return what was typed for the parameters that are named like the fields of a filter."""
    typed = {name: ctx.params.get(name) for name in Filter.__slots__}
    return {name: value for name, value in typed.items() if value not in (None, False)}


def message_filter(ctx: typer.Context) -> Filter:
    """Return the filter of the options, with ids as typed; UsageError for an invalid option."""
    values, now = typed_filters(ctx), datetime.now(UTC)
    if "text" in values:
        if not values["text"].strip():
            raise UsageError("--match needs a text", hint='--match "some words"')
        values["text"] = clean_text(values["text"])
    if "role" in values:
        values["role"] = parse_role(values["role"]).value
    for name in {"since", "until"} & values.keys():
        values[name] = parse_time(values[name], now)
    return Filter(**values)


def complete_ids(
    reservoir: Reservoir, where: Filter, scope: Scope, *, note: bool = False
) -> Filter:
    """Return a filter with whole ids for those typed in part, and print these if ``note``."""
    whole: dict[str, Any] = {}
    for field in get_args(IdField):
        typed = getattr(where, field)
        whole[field] = complete_id(reservoir, field, typed, scope)
        if note:
            note_completed(reservoir, typed, whole[field], scope)
    return replace(where, **whole)


def complete_id(
    reservoir: Reservoir, field: IdField, typed: str | None, scope: Scope
) -> str | None:
    """Return the only id with this prefix, or the text if there is none; else raise UsageError."""
    if typed is None:
        return None
    if not typed.strip():
        raise UsageError(f"--{OPTION_NAMES[field]} needs an id", hint="type its beginning")
    ids = reservoir.lookup.ids_starting_with(field, clean_text(typed), scope)
    if typed in ids:
        return typed
    return _only(reservoir, scope, ids, typed, f"--{OPTION_NAMES[field]}")


def complete_new_trace(
    reservoir: Reservoir, typed: str | None, partition: str | None
) -> str | None:
    """Return a whole trace id for the beginning of a UUID, which the program makes; others stay.

    :raises UsageError: several UUIDs of the partition begin like this.
    """
    beginning = clean_text(typed or "")
    if len(beginning) < console.SHOWN_ID:
        return typed
    scope = Scope(reservoir.scope(partition).partition)
    ids = reservoir.lookup.ids_starting_with("trace_id", beginning, scope)
    if beginning in ids:
        return typed
    uuids = [identity for identity in ids if _is_random(identity)]
    trace_id = _only(reservoir, scope, uuids, beginning, "--trace-id")
    note_completed(reservoir, beginning, trace_id, scope)
    return trace_id


def note_completed(
    reservoir: Reservoir, typed: str | None, whole: str | None, scope: Scope
) -> None:
    """Print the whole id for one that was typed in part."""
    masked = whole and reservoir.redactor.id(scope.partition, whole)
    if typed not in (whole, masked):
        console.note(f"{typed} is {masked}")


def _is_random(identity: str) -> bool:
    """Return whether an id is a UUID, as the program makes them itself."""
    with suppress(ValueError):
        return str(uuid.UUID(identity)) == identity
    return False


def complete_session(reservoir: Reservoir, typed: str | None, partition: str | None) -> str | None:
    """Return the only session with this prefix, or the text if none; else raise UsageError."""
    beginning = clean_text(typed or "")
    if not beginning:
        return None
    scope = Scope(reservoir.scope(partition).partition)
    ids = reservoir.lookup.ids_starting_with("conversation_id", beginning, scope)
    if any(f"{session}/".startswith(f"{beginning}/") for session in ids):
        return beginning
    sessions = [session for session in ids if not any(session.startswith(f"{top}/") for top in ids)]
    return _only(reservoir, scope, sessions, beginning, "--exclude-conversation")


def _only(reservoir: Reservoir, scope: Scope, ids: Sequence[str], typed: str, option: str) -> str:
    """Return the only id; the typed text if there is none."""
    if len(ids) > 1:
        names = ", ".join(reservoir.redactor.id(scope.partition, identity) for identity in ids[:3])
        names += ", …" if len(ids) > 3 else ""
        raise UsageError(f"{option} {typed} is not unique: {names}", hint="type more of the id")
    return ids[0] if ids else typed
