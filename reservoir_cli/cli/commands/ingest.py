"""``reservoir ingest``: store a message from stdin, or import files."""

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from reservoir_cli.cli import console, filters, open_store, options
from reservoir_cli.cli.options import argument, flag, option
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import EVERYWHERE, Message, Scope, check_name, parse_role
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.retrieval.embed_messages import describe_backlog
from reservoir_cli.transfer.formats.registry import FORMATS, importer_named
from reservoir_cli.transfer.reading.decompressed_file import File
from reservoir_cli.transfer.reading.input_files import LARGEST_PIPED
from reservoir_cli.transfer.reports import ImportReport
from reservoir_cli.util.parse_time_options import parse_time
from reservoir_cli.util.progress import counted
from reservoir_cli.util.read_files import CONVERT_HINT, LARGEST, decode

#: Blank lines around a text; the indentation of its first line is kept.
_OUTER_BLANK_LINES = re.compile(r"\A(?:[ \t]*\r?\n)+|(?:\r?\n[ \t]*)+\Z")

#: A path rather than a message: no blanks, and a separator or a suffix.
_LIKE_A_PATH = re.compile(r"\S*[/\\]\S*|\S+\.\w{1,8}")
_LONGEST_NAME = 200  # characters shown of a path that does not exist, which may be a whole message
#: With more messages that earlier commands left, a note explains why embedding takes long.
_MANY = 64

_ZIP = b"PK\x03\x04"  # how a zip archive begins; one that is not compressed is mostly text
_MEGABYTE = 1_000_000


def ingest(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        argument("[FILE]...", "Files, folders or zip archives to import; stdin if omitted or -."),
    ] = None,
    partition: options.Partition = None,
    instance: options.Instance = None,
    role: Annotated[
        str | None,
        option(
            "ROLE",
            "user, assistant, system or tool (default: user).",
            panel=options.MESSAGE,
            choices=options.ROLES,
        ),
    ] = None,
    trace_id: options.TraceId = None,
    at: Annotated[
        str | None, option("TIME", "Time of the message (default: now).", panel=options.MESSAGE)
    ] = None,
    form: Annotated[
        str | None,
        option(
            "NAME",
            f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]} (default: detected from the content).",
            "--format",
            choices=FORMATS,
        ),
    ] = None,
    dry_run: Annotated[
        bool, flag("--dry-run", "Show what would be imported; store nothing.")
    ] = False,
    include_forgotten: Annotated[
        bool, flag("--include-forgotten", "Also import messages that were forgotten earlier.")
    ] = False,
    no_embed: options.NoEmbed = False,
    as_json: options.Json = False,
) -> None:
    """Store a message from stdin, or import files.

    Without FILE, stdin is stored as one message. A FILE is a tool's export or history; importing
    it again, or a newer version of it, adds only new messages.
    """
    sources = [os.path.expanduser(file) for file in files or ["-"]]
    options.check_stdin_once(sources)
    is_message = sources == ["-"] and form is None
    for name, is_set in (("--dry-run", dry_run), ("--include-forgotten", include_forgotten)):
        if is_message and is_set:
            raise UsageError(f"{name} is for files", hint=f"reservoir ingest {name} FILE")
    author, moment = _check_options(is_message, role, trace_id, at, form, (partition, instance))
    _check_exist(sources)
    with open_store.open_reservoir(ctx, create=not dry_run) as reservoir:
        is_new = partition is not None and _is_new(reservoir, partition)
        if is_message:
            trace = filters.complete_new_trace(reservoir, trace_id, partition)
            message = Message(author, "", created_at=moment, trace_id=trace, source="cli")
            _store_stdin(reservoir, partition, instance, message, not no_embed, as_json)
            if is_new and reservoir.view(Scope(partition), 1):
                console.note(f"new partition {partition}")
            return
        is_first = console.is_terminal() and not reservoir.view(EVERYWHERE, 1)
        report = reservoir.import_files(
            *(_open_source(source) for source in sources),
            form=form,
            partition=partition,
            instance=instance,
            dry_run=dry_run,
            include_forgotten=include_forgotten,
        )
        _print_summary(report, dry_run)
        _print_forgotten(report, include_forgotten)
        if is_new and report.imported:
            console.note(f"{'this would be a ' if dry_run else ''}new partition {partition}")
        if not (dry_run or no_embed):
            _embed(reservoir, report.imported)
        if is_first and report.imported and not dry_run:
            scope_words = f" {shlex.join(['-p', partition])}" if partition else ""
            where = "" if scope_words else ", with -p PARTITION; reservoir partitions lists them"
            console.note(f'next: reservoir context "your question"{scope_words}{where}')
        failure = _describe_unreadable(report, form)
        if as_json:
            _print_json(report, dry_run, failure)
        if failure:
            console.error(failure, as_json=False)
            raise typer.Exit(failure.exit_code)


def _describe_unreadable(report: ImportReport, form: str | None) -> ReservoirError | None:
    if not report.unreadable:
        return None
    names = ", ".join(report.unreadable)
    hint = "the lines above give the reasons; export it again, or repair the file"
    if form:
        hint = "without --format the format is detected from the content"
    return ReservoirError(f"no message could be read from {names}", hint)


def _check_options(
    is_message: bool,
    role: str | None,
    trace_id: str | None,
    at: str | None,
    form: str | None,
    names: Sequence[str | None],
) -> tuple[str, datetime | None]:
    if not is_message and any(option is not None for option in (role, trace_id, at)):
        raise UsageError(
            "--role, --trace-id and --at are for a message from stdin",
            hint="files have their own; to store a text file as one message, use < FILE",
        )
    if form is not None:
        importer_named(form)
    for name in filter(None, (*names, trace_id)):
        check_name(name)
    author = parse_role("user" if role is None else role).value
    return author, parse_time(at, datetime.now(UTC)) if at is not None else None


def _is_new(reservoir: Reservoir, partition: str) -> bool:
    """Return whether a partition is empty, while others are not."""
    scope = Scope(partition)
    if reservoir.view(scope, 1):
        return False
    return reservoir.lookup.keeps_to(scope) or bool(reservoir.view(EVERYWHERE, 1))


def _check_exist(sources: list[str]) -> None:
    """Check that the files exist; the hint for a message typed as a path says how to store it."""
    for source in sources:
        if not source:
            raise UsageError("the name of a file is empty", hint="name a file or folder")
        if source != "-" and not os.path.lexists(source):
            words = " ".join(source.split())
            name = words if len(words) <= _LONGEST_NAME else f"{words[:_LONGEST_NAME]}…"
            hint = 'to store a message, pipe it in: echo "…" | reservoir ingest'
            if _LIKE_A_PATH.fullmatch(source):
                hint = "check the path; a relative one begins in the current folder"
            raise ReservoirError(f"cannot read {name}: no such file or folder", hint=hint)


def _store_stdin(
    reservoir: Reservoir,
    partition: str | None,
    instance: str | None,
    message: Message,
    embed: bool,
    as_json: bool,
) -> None:
    data = options.read_stdin("message", LARGEST)
    if data.startswith(_ZIP):
        raise ReservoirError(
            "stdin is a zip archive, not text", hint="give its name: reservoir ingest FILE.zip"
        )
    if len(data) > _MEGABYTE:
        size = f"{len(data) / _MEGABYTE:,.1f} MB"
        console.note(f"stdin is {size}, stored as one message; --format NAME reads a history")
    text, replaced = decode(data, "stdin")
    if replaced:
        characters = counted(replaced, "invalid character")
        console.note(f"{characters} replaced by U+FFFD; {CONVERT_HINT}")
    content = _OUTER_BLANK_LINES.sub("", text)
    if not content.strip():
        console.note("nothing to ingest")
        if as_json:
            console.document({"messages": []})
        return
    stored = reservoir.ingest(
        [replace(message, content=content)],
        partition=partition,
        instance=instance,
        embed=embed,
        pair=True,
    )
    if as_json:
        console.document({"messages": [row.to_row() for row in stored]})
    else:
        console.write("".join(f"{row.id}\n" for row in stored))


def _embed(reservoir: Reservoir, imported: int) -> None:
    """Embed what was imported and what earlier commands left."""
    earlier = reservoir.indexer.pending() - imported
    if not imported:
        if earlier:
            console.note(describe_backlog(earlier))
        return
    if earlier > _MANY:
        console.note(f"also embedding {earlier:,} earlier messages; Ctrl-C keeps all messages")
    reservoir.indexer.embed_if_possible()


def _open_source(source: str) -> str | File:
    return (
        File.of_bytes("stdin", options.read_stdin("message", LARGEST_PIPED))
        if source == "-"
        else source
    )


def _print_summary(report: ImportReport, dry_run: bool) -> None:
    console.aside(report.line(dry_run=dry_run))
    if not report.total:
        console.note("nothing to ingest")
    for line in report.reason_lines():
        console.aside(line)
    options.note_count("older than retention_days, and not imported", report.expired)
    if report.marked:
        console.note(options.describe_marked(report.marked))
    if report.mended:
        messages = counted(report.mended, "message")
        console.note(f"invalid characters replaced by U+FFFD in {messages}; {CONVERT_HINT}")
    for note in report.notes():
        console.note(note)


def _print_forgotten(report: ImportReport, included: bool) -> None:
    options.note_count("forgotten earlier, and included", report.restored)
    if included:
        options.note_count("replaced by an edit, and not imported", report.forgotten)
    elif report.forgotten:
        messages = counted(report.forgotten, "message")
        console.note(
            f"forgotten or edited earlier, and not imported: {messages}; "
            f"--include-forgotten imports {options.pronoun(report.forgotten)}"
        )


def _print_json(report: ImportReport, dry_run: bool, failure: ReservoirError | None) -> None:
    console.document(
        {
            "imported": report.imported,
            "already_there": report.already,
            "skipped": report.skipped,
            "forgotten": report.forgotten,
            "restored": report.restored,
            "marked": len(report.marked),
            "contexts": report.contexts,
            "passed_over": report.passed_over,
            "unreadable": report.unreadable,
            "secrets": dict(sorted(report.secrets.items())),
            "reasons": report.reasons,
            "notes": report.notes(all_names=True),
            "dry_run": dry_run,
            **({"error": console.describe_error(failure)} if failure else {}),
        }
    )
