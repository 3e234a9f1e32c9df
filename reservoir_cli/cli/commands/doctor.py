"""``reservoir doctor``: check, repair, salvage and calibrate."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from reservoir_cli.cli import console, open_store, options
from reservoir_cli.cli.global_options import Globals, complete, globals_of, parse_path
from reservoir_cli.cli.options import flag, option
from reservoir_cli.errors import UsageError
from reservoir_cli.maintenance.backup import salvage as salvage_store
from reservoir_cli.maintenance.doctor import Check
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings.config import load
from reservoir_cli.util.progress import counted


def doctor(
    ctx: typer.Context,
    repair: Annotated[
        bool, flag("--repair", "Rebuild derived data and fix file permissions.")
    ] = False,
    salvage: Annotated[
        Path | None,
        option(
            "FILE",
            "Write what is still readable in a damaged store to FILE, a new store.",
            parser=parse_path,
        ),
    ] = None,
    calibrate: Annotated[
        bool,
        flag(
            "--calibrate",
            "Measure the relevance below which nothing is recalled, and keep it in the store.",
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Check settings, store, model and speed.

    Prints how to fix each problem. The exit code is 1 if there is a fault; notes are for
    information only.
    """
    flags = globals_of(ctx)
    if calibrate:
        if repair or salvage is not None:
            raise UsageError(
                "--calibrate cannot be combined with --repair or --salvage",
                hint="run reservoir doctor --repair first",
            )
        _calibrate(ctx, as_json)
        return
    if salvage is not None:
        if repair:
            raise UsageError(
                "--repair changes the store, --salvage leaves it as it is", hint="choose one"
            )
        _salvage(flags, salvage, as_json)
        return
    checks = [
        replace(check, fix=check.fix and complete(check.fix))
        for check in Reservoir.doctor(
            flags.db, config_file=flags.config, repair=repair, progress=console.progress
        )
    ]
    console.progress.stop()
    if as_json:
        console.document({"checks": list(map(asdict, checks))})
    elif console.is_terminal():
        console.write("".join(f"{line}\n" for line in _lines(checks)))
    else:
        rows = [(check.status.value, check.name, check.detail, check.fix or "") for check in checks]
        console.table(("", "check", "found", "to do"), rows)
    if any(check.status == "fault" for check in checks):
        raise typer.Exit(1)


def _lines(checks: Sequence[Check]) -> Iterator[str]:
    """Yield each check, and below it what to do, on lines that fit the terminal."""
    width = max(len(check.name) for check in checks)
    for check in checks:
        yield from _divide(f"{check.status.value:5} {check.name:{width}}", check.detail)
        if check.fix:
            yield from _divide(f"{'':5} to do:", check.fix)


def _divide(head: str, text: str) -> Iterator[str]:
    """Yield lines that break between the parts of a text: a path in two could not be copied."""
    line = head
    for part in _PARTS.split(text.replace("\n", "\\n")):
        if len(line) > len(head) and len(line) + 1 + len(part) > console.columns():
            yield line
            line = " " * len(head)
        line += f" {part}"
    yield line


#: Where a text may be divided.
_PARTS = re.compile(r"(?<=[,;]) | (?=\()")


def _calibrate(ctx: typer.Context, as_json: bool) -> None:
    with open_store.open_reservoir(ctx) as reservoir:
        measured = reservoir.database.calibrate()
        setting = reservoir.config.settings().recall_floor
    if as_json:
        console.document({"calibration": asdict(measured)})
    else:
        rows = [(name.replace("_", " "), str(value)) for name, value in asdict(measured).items()]
        console.table(("", "measured"), rows)
    if setting is not None:
        console.note(f"the setting recall_floor is {setting:g} and overrides the measured floor")


def _salvage(flags: Globals, target: Path, as_json: bool) -> None:
    config = load(flags.config)
    console.progress("reading the damaged store", 0, 0)
    try:
        lost = salvage_store(config.store_location(flags.db), target)
    finally:
        console.progress.stop()
    console.aside(f"saved {counted(lost.saved, 'message')} to {target}")
    if lost.messages:
        console.warn(f"{counted(lost.messages, 'message')} cannot be read")
    if lost.texts:
        damaged = counted(lost.texts, "message")
        console.warn(f"invalid bytes were replaced by U+FFFD in {damaged}")
    for table in lost.tables:
        console.warn(_MISSING[table].format(command=f"reservoir --db {shlex.quote(str(target))}"))
    if as_json:
        console.document(
            {
                "file": str(target),
                "saved": lost.saved,
                "lost": lost.messages,
                "mended": lost.texts,
                "incomplete": lost.tables,
            }
        )


#: The consequence if a table is only partly readable.
_MISSING = {
    "conversations": "some titles of conversations cannot be read",
    "tombstones": "some tombstones cannot be read: imports may bring forgotten messages back",
    "tool_calls": "some messages were saved without their tool calls, which cannot be read",
    "pins": "some pins cannot be read",
    "tags": "some tags cannot be read",
    "properties": "some properties cannot be read: {command} embed rebuilds all embeddings",
}
