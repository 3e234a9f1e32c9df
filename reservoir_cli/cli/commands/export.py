"""``reservoir export``: take messages out."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reservoir_cli.cli import completion, options
from reservoir_cli.errors import ReservoirError, UsageError

if TYPE_CHECKING:
    from reservoir_cli.transfer.exporters import Totals

#: Characters that are printed at once.
_AT_ONCE = 1 << 16


def export(
    ctx: typer.Context,
    partition: options.Partition = None,
    instance: options.ReadInstance = None,
    all_instances: options.AllInstances = False,
    all_partitions: options.AllPartitions = False,
    match: options.Match = None,
    since: options.Since = None,
    until: options.Until = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="jsonl, json, openai, anthropic, sharegpt or markdown (default: jsonl).",
            autocompletion=completion.export_formats,
        ),
    ] = None,
    with_embeddings: Annotated[
        bool, typer.Option("--with-embeddings", help="Add the vectors; jsonl and json only.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write to a file, whole or not at all."
        ),
    ] = None,
    as_json: options.Json = False,
    as_lines: options.JsonLines = False,
) -> None:
    """Print all messages of a partition, or of less or more, by time.

    What jsonl and json hold, ingest brings back as it was. The other formats are for other
    programs: a conversation a line, or as Markdown.
    """
    from reservoir_cli.cli import console
    from reservoir_cli.transfer import exporters
    from reservoir_cli.transfer.exporters import saving

    chosen = _format(form, as_json, as_lines)
    to_file = out is not None and str(out) != "-"
    totals = exporters.Totals()
    with options.open_reservoir(ctx) as reservoir:
        scope = options.read_scope(reservoir, partition, instance, all_instances, all_partitions)
        where = options.message_filter(text=match, since=since, until=until)
        pieces = exporters.export(
            reservoir.store,
            scope,
            where,
            chosen,
            totals,
            mask=reservoir.mask,
            embeddings=with_embeddings,
            progress=console.progress if to_file else lambda *_: None,
        )
        if out is not None and to_file:
            why = partial(options.why_nothing, reservoir, scope, where)
            saving.save(out, _unless_nothing(pieces, totals, out, why), reservoir.store.files())
            console.aside(f"exported {options.counted(totals.messages, 'message')} to {out}")
        else:
            _print(pieces)
        if not totals.messages and (why_nothing := options.why_nothing(reservoir, scope, where)):
            console.note(why_nothing)
    if totals.masked:
        messages = options.counted(totals.masked, "message")
        console.note(
            f"secrets of {messages} are masked; RESERVOIR_REDACT=mark writes them as they are"
        )
    if totals.left_out:
        thoughts = options.counted(totals.left_out, "thought")
        console.note(f"{thoughts} left out: jsonl, json and markdown have them")


def _format(form: str | None, as_json: bool, as_lines: bool) -> str:
    options.one_form(format=form is not None, json=as_json, jsonl=as_lines)
    if form == "document":
        raise UsageError("unknown format 'document'", hint="--json prints a document")
    return "document" if as_json else form or "jsonl"


def _unless_nothing(
    pieces: Iterator[str], totals: "Totals", out: Path, why: Callable[[], str]
) -> Iterator[str]:
    """An export that does not take the place of an earlier one by nothing.

    :raises ReservoirError: nothing was exported, and there is a file with something in it.
    """
    yield from pieces
    if not totals.messages and out.is_file() and out.stat().st_size:
        raise ReservoirError(f"there is nothing to export: {out} stays as it is", hint=why())


def _print(pieces: Iterator[str]) -> None:
    from reservoir_cli.cli import console

    gathered: list[str] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size > _AT_ONCE:
            console.write("".join(gathered))
            gathered, size = [], 0
    console.write("".join(gathered))
