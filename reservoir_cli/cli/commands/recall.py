"""``reservoir recall``: print the stored messages that help an agent with a question."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from reservoir_cli.agents.injection_log import Injection, last_injections
from reservoir_cli.cli import console, filters, nothing_found, open_store, options
from reservoir_cli.cli.options import argument, flag, option, tokens_option
from reservoir_cli.context.recall import Reason, Recall, Skipped
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import EVERYTHING, Scope, StoredMessage, cut, plain_text
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings import log_file
from reservoir_cli.settings.recall_switch import find_switch
from reservoir_cli.settings.schema import RECALL_BUDGET
from reservoir_cli.util.clock import local_day
from reservoir_cli.util.parse_time_options import parse_time
from reservoir_cli.util.progress import counted

_SNIPPET = 160  # characters of a message that are printed


def recall(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        argument("[QUESTION]...", "The question; read from stdin if omitted or -."),
    ] = None,
    budget: Annotated[
        int | None,
        tokens_option(f"Tokens for everything printed (default: {RECALL_BUDGET}).", least=1),
    ] = None,
    partition: options.Partition = None,
    since: filters.Since = None,
    exclude_conversation: Annotated[
        str | None, options.conversation_option("Leave out this conversation.")
    ] = None,
    last: Annotated[bool, flag("--last", "Print what agents were given last.")] = False,
    client: Annotated[str | None, option("NAME", "With --last, only this client.")] = None,
    as_json: options.Json = False,
) -> None:
    """Print the stored messages that help an agent with a question.

    An agent has its own history, so only recalled messages are printed: quoted, numbered, and with
    secrets masked unless the setting redact is off. Prints nothing if no message is relevant, or if
    the text does not ask anything.

    With --last, print when hooks, the MCP server and the proxy last gave each client messages, and
    which. The setting recall, the variable RESERVOIR_RECALL=off, a file .reservoir-off in a folder,
    and --no-recall as the first word of a prompt switch agents' recalls off, not this command.
    """
    if last:
        if words or any(value is not None for value in (budget, since, exclude_conversation)):
            raise UsageError(
                "--last takes no question", hint="reservoir recall --last [--client NAME] [-p NAME]"
            )
        _show_injections(ctx, client, partition, as_json=as_json)
        return
    if client is not None:
        raise UsageError("--client needs --last", hint="reservoir recall --last --client NAME")
    question = options.question_of(words, "recall")
    moment = parse_time(since, datetime.now(UTC)) if since is not None else None
    with open_store.open_reservoir(ctx) as reservoir:
        session = filters.complete_session(reservoir, exclude_conversation, partition)
        outcome = reservoir.recall(
            question, partition=partition, budget=budget, exclude_conversation=session, since=moment
        )
        _print_notes(outcome, reservoir, partition)
    row = outcome.to_row()
    if as_json:
        console.document(row)
    elif row["text"]:
        console.window_text(row["text"])


def _print_notes(outcome: Recall | Skipped, reservoir: Reservoir, partition: str | None) -> None:
    for note in outcome.notes:
        console.note(note)
    if isinstance(outcome, Skipped):
        console.note(f"nothing recalled: {outcome.explanation}")
        if outcome.reason is Reason.EMPTY:
            scope = reservoir.scope(partition)
            nothing_found.say_elsewhere(reservoir, str(scope.partition), None, EVERYTHING)


def _show_injections(
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
    failures = log_file.recent_failures()
    if failures:
        console.note(log_file.describe_failures(failures))
    if switch:
        console.note(f"recall is switched off here by {switch}")
    if as_json:
        failed = [{"at": each.at.isoformat(), "reason": each.reason} for each in failures]
        rows_by_client = [_injection_row(*row) for row in rows]
        console.document({"off": switch, "injections": rows_by_client, "failed_hooks": failed})
        return
    if not rows:
        console.note(f"{client or 'no agent'} was given {'no ' if client else ''}messages yet")
    for injection, messages in rows:
        console.write(_describe_injection(injection, messages))


def _stored(reservoir: Reservoir, injection: Injection) -> list[StoredMessage]:
    messages = reservoir.messages(injection.messages, Scope(injection.partition))
    order = {number: index for index, number in enumerate(injection.messages)}
    return sorted(messages, key=lambda message: order[message.id])


def _find_switch(reservoir: Reservoir, partition: str | None) -> str | None:
    folder = None
    with suppress(OSError):  # it was deleted
        folder = os.getcwd()
    assigned = folder and reservoir.config.partition_of(folder)
    return find_switch(reservoir.config, partition or assigned or None, folder)


def _injection_row(injection: Injection, messages: Sequence[StoredMessage]) -> dict[str, Any]:
    row = asdict(injection) | {"at": injection.at.isoformat()}
    ids = row.pop("messages")
    return row | {"ids": ids, "messages": [message.to_row() for message in messages]}


def _describe_injection(injection: Injection, messages: Sequence[StoredMessage]) -> str:
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
