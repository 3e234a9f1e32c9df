"""Print what agents were given last: ``reservoir recall --last``."""

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import typer

from reservoir_cli.agents.injections import Injection, last_injections
from reservoir_cli.cli import console, open_store
from reservoir_cli.messages import Scope, StoredMessage, cut, plain_text
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings.hook_failures import describe_failures, read_failures
from reservoir_cli.settings.recall_switch import find_switch
from reservoir_cli.util.clock import local_day
from reservoir_cli.util.progress import counted

_SHOWN = timedelta(days=7)  # the age of failed hooks that are printed
_SNIPPET = 160  # characters of a message that are printed


def show_injections(
    ctx: typer.Context, client: str | None, partition: str | None, *, as_json: bool
) -> None:
    """Print the last injection of each client with the stored texts of its messages.

    :param client: only of clients whose name begins like this.
    :param partition: only from this partition.
    """
    with open_store.open_reservoir(ctx) as reservoir:
        injections = last_injections(reservoir.location, client, partition)
        rows = [(injection, _stored(reservoir, injection)) for injection in injections]
        switch = _find_switch(reservoir, partition)
    failures = read_failures(datetime.now(UTC) - _SHOWN)
    if failures:
        console.note(f"{describe_failures(failures)} (in the last {_SHOWN.days} days)")
    if switch:
        console.note(f"recall is switched off here by {switch}")
    if as_json:
        failed = [{"at": each.at.isoformat(), "reason": each.reason} for each in failures]
        rows_by_client = [_row(*row) for row in rows]
        console.document({"off": switch, "injections": rows_by_client, "failed_hooks": failed})
        return
    if not rows:
        console.note(f"{client or 'no agent'} was given {'no ' if client else ''}messages yet")
    for injection, messages in rows:
        console.write(_describe(injection, messages))


def _stored(reservoir: Reservoir, injection: Injection) -> list[StoredMessage]:
    found = reservoir.messages(injection.messages, Scope(injection.partition))
    order = {number: index for index, number in enumerate(injection.messages)}
    return sorted(found, key=lambda message: order[message.id])


def _find_switch(reservoir: Reservoir, partition: str | None) -> str | None:
    folder = None
    with suppress(OSError):  # it was deleted
        folder = os.getcwd()
    assigned = folder and reservoir.config.partition_of(folder)
    return find_switch(reservoir.config, partition or assigned or None, folder)


def _row(injection: Injection, messages: Sequence[StoredMessage]) -> dict[str, Any]:
    return {
        "at": injection.at.isoformat(),
        "client": injection.client,
        "door": injection.door,
        "session": injection.session,
        "partition": injection.partition,
        "tokens": injection.tokens,
        "ids": list(injection.messages),
        "messages": [message.to_row() for message in messages],
    }


def _describe(injection: Injection, messages: Sequence[StoredMessage]) -> str:
    count = counted(len(injection.messages), "message")
    parts = [injection.at.isoformat(timespec="seconds"), injection.client, injection.door]
    parts += [f"session {injection.session}" if injection.session else None]
    parts += [f"partition {injection.partition}", f"{injection.tokens:,} tokens", count]
    lines = [" · ".join(filter(None, parts))]
    for message in messages:
        text = cut(" ".join(plain_text(message).split()), _SNIPPET)
        lines.append(f"#{message.id} {local_day(message.created_at)} {message.role}: {text}")
    gone = set(injection.messages) - {message.id for message in messages}
    lines += [f"#{number} is no longer stored" for number in sorted(gone)]
    return "".join(f"{line}\n" for line in lines)
