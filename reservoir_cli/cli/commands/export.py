"""``reservoir export``: print messages, or write them to a file."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from reservoir_cli.cli import console, filters, nothing_found, open_store, options
from reservoir_cli.cli.global_options import parse_path
from reservoir_cli.cli.options import flag, option
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import Filter, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.transfer.export.export_messages import FORMATS
from reservoir_cli.util.progress import counted


def export(
    ctx: typer.Context,
    partition: options.Partition = None,
    instance: options.ReadInstance = None,
    all_partitions: options.AllPartitions = False,
    conversation_id: filters.Conversation = None,
    role: filters.Role = None,
    text: filters.Match = None,
    since: filters.Since = None,
    until: filters.Until = None,
    source: filters.Source = None,
    tag: filters.Tag = None,
    form: Annotated[
        str | None,
        option(
            "NAME",
            f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]} (default: {FORMATS[0]}).",
            "--format",
            choices=FORMATS,
        ),
    ] = None,
    with_embeddings: Annotated[
        bool, flag("--with-embeddings", "Include embeddings; jsonl and json only.")
    ] = False,
    out: Annotated[
        Path | None,
        option(
            "FILE",
            "Write to this file, completely or not at all.",
            "-o",
            "--output",
            parser=parse_path,
        ),
    ] = None,
    as_json: options.Json = False,
    as_lines: options.JsonLines = False,
) -> None:
    """Print all messages of a partition, an instance or the store.

    The oldest come first. `ingest` restores jsonl and json exports exactly. The other formats are
    for other programs: one conversation per line, or Markdown. A conversation id can be shortened
    to a unique prefix.
    """
    format_name = _format(form, as_json, as_lines)
    to_file = out is not None and str(out) != "-"
    with open_store.open_reservoir(ctx) as reservoir:
        scope = filters.read_scope(reservoir, partition, instance, all_partitions)
        where = filters.complete_ids(reservoir, filters.message_filter(ctx), scope)
        if out is not None and to_file:
            _refuse_empty_scope(reservoir, scope, where, out)
        why_nothing = partial(nothing_found.why_nothing, reservoir, scope, where)
        report = reservoir.export(
            out if out is not None and to_file else console.write,
            scope,
            format=format_name,
            where=where,
            embeddings=with_embeddings,
            explain_empty=why_nothing,
        )
        if to_file:
            console.aside(f"exported {counted(report.messages, 'message')} to {out}")
        if not report.messages and (reason := why_nothing()):
            console.note(reason)
    if report.missing:
        console.warn(
            f"{counted(report.missing, 'message')} left out, which another command moved "
            "or forgot meanwhile; run this one again, with -o FILE for one state of the store"
        )
    if report.masked:
        console.note(
            f"secrets in {counted(report.masked, 'message')} are masked; "
            "RESERVOIR_REDACT=mark writes them as they are"
        )
    if report.quoted:
        console.note(
            f"{counted(report.quoted, 'message')} quoted as the user's (replies without a "
            "question, results without a call): jsonl, json and markdown keep the roles"
        )
    if report.left_out:
        thoughts = counted(report.left_out, "thought")
        console.note(f"{thoughts} left out: jsonl, json and markdown include them")


def _refuse_empty_scope(reservoir: Reservoir, scope: Scope, where: Filter, out: Path) -> None:
    """Check that a scope, or a conversation, is not empty while there are messages elsewhere."""
    conversation = Filter(conversation_id=where.conversation_id)
    if reservoir.view(scope, 1, conversation):
        return
    channels = reservoir.lookup.elsewhere(scope, conversation)
    if not channels:
        if reservoir.view(scope, 1):
            return
        channels = reservoir.lookup.elsewhere(scope)
    if channels is None or channels:
        state = "left unchanged" if out.exists() else "not written"
        elsewhere = nothing_found.describe_elsewhere(scope, channels)
        raise ReservoirError(f"nothing to export: {out} is {state}", hint=elsewhere)


def _format(form: str | None, as_json: bool, as_lines: bool) -> str:
    options.check_one_form(format=form is not None, json=as_json, jsonl=as_lines)
    if form == "document":
        raise UsageError("unknown format 'document'", hint="--json prints a document")
    return "document" if as_json else form or "jsonl"
