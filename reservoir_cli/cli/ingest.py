"""``reservoir ingest``: bring messages in."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reservoir_cli.cli import options
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Message, parse_role

#: Blank lines around a text; what is indented stays indented.
_OUTER_BLANK_LINES = re.compile(r"\A(?:[ \t]*\r?\n)+|(?:\r?\n[ \t]*)+\Z")

if TYPE_CHECKING:
    from reservoir_cli.reservoir import Reservoir


def ingest(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Files to import; - or nothing reads stdin."),
    ] = None,
    partition: options.Partition = None,
    instance: options.Instance = None,
    role: Annotated[
        str | None, typer.Option(help="user, assistant, system or tool (default: user).")
    ] = None,
    trace_id: options.TraceId = None,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="When it was said (default: now).")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="reservoir, openai or text.")
    ] = None,
    no_embed: Annotated[bool, typer.Option("--no-embed", help="Store now, embed later.")] = False,
    as_json: options.Json = False,
) -> None:
    """Store a message from stdin, or import files.

    Without FILE, stdin is one message of text. Files are read by what they hold; importing one
    again adds only what is new.
    """
    sources = files or ["-"]
    if sources.count("-") > 1:
        raise UsageError("- can be read only once")
    with options.open_reservoir(ctx, create=True) as reservoir:
        if sources == ["-"] and form is None:
            _one_message(reservoir, partition, instance, role, trace_id, at, not no_embed, as_json)
            return
        if role or trace_id or at:
            raise UsageError("--role, --trace-id and --at are for a message from stdin")
        _import(reservoir, sources, form, partition, instance, not no_embed, as_json)


def _one_message(
    reservoir: "Reservoir",
    partition: str | None,
    instance: str | None,
    role: str | None,
    trace_id: str | None,
    at: str | None,
    embed: bool,
    as_json: bool,
) -> None:
    from datetime import UTC, datetime

    from reservoir_cli.cli import output
    from reservoir_cli.importers import decode
    from reservoir_cli.times import parse_time

    chosen = parse_role(role or "user").value
    moment = parse_time(at, datetime.now(UTC)) if at is not None else None
    text, replaced = decode(_stdin(), "stdin")
    if replaced:
        output.note("bytes that are no text were replaced by U+FFFD")
    content = _OUTER_BLANK_LINES.sub("", text)
    if not content.strip():
        output.note("nothing to ingest")
        if as_json:
            output.document({"messages": []})
        return
    message = Message(chosen, content, created_at=moment, trace_id=trace_id, source="cli")
    stored = reservoir.ingest(
        [message], partition=partition, instance=instance, embed=embed, pair=True
    )
    if as_json:
        output.document({"messages": [each.to_row() for each in stored]})
    else:
        output.write("".join(f"{each.id}\n" for each in stored))


def _import(
    reservoir: "Reservoir",
    sources: list[str],
    form: str | None,
    partition: str | None,
    instance: str | None,
    embed: bool,
    as_json: bool,
) -> None:
    from reservoir_cli.cli import output
    from reservoir_cli.importers import decode, read_text
    from reservoir_cli.ingesting import Totals

    # All are read before the first is stored: a missing file ends the run with nothing done.
    texts = []
    for each in sources:
        text, replaced = decode(_stdin(), "stdin") if each == "-" else read_text(Path(each))
        if replaced:
            output.note(f"{each}: bytes that are no text were replaced by U+FFFD")
        texts.append((each, text))
    totals = Totals()
    for each, text in texts:
        done = reservoir.import_text(text, each, form=form, partition=partition, instance=instance)
        totals.imported += done.imported
        totals.already += done.already
        totals.skipped += done.skipped
        totals.reasons += done.reasons
        totals.mended += done.mended
    output.aside(totals.line())
    if totals.mended:
        output.note(f"characters that are no text became U+FFFD in {totals.mended:,} messages")
    for reason in totals.reasons:
        output.aside(f"  {reason}")
    if embed and totals.imported:
        reservoir.embed_if_possible()
    if as_json:
        output.document(
            {
                "imported": totals.imported,
                "already_there": totals.already,
                "skipped": totals.skipped,
                "reasons": totals.reasons,
            }
        )


def _stdin() -> bytes:
    from reservoir_cli.cli import output

    if sys.stdin is not None and sys.stdin.isatty():
        output.note("type the message, then end it with Ctrl-D")
    return options.read_stdin()
