"""``reservoir doctor``: what is in order, and what is not."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from reservoir_cli.cli import console, open_store, options
from reservoir_cli.cli.global_options import Globals, globals_of
from reservoir_cli.errors import UsageError
from reservoir_cli.maintenance.backup import salvage as save_the_rest
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings.config import load


def doctor(
    ctx: typer.Context,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Rebuild derived data, and fix file permissions."),
    ] = False,
    salvage: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write what can still be read of a damaged store to FILE, a store of its own.",
        ),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Measure on this store below which relevance nothing is recalled, and keep that.",
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Check settings, store, model and speed.

    It says what to do about what is wrong. Exit code 1 if there is a fault; notes are only worth
    knowing.
    """
    given = globals_of(ctx)
    if calibrate:
        if repair or salvage is not None:
            raise UsageError("--calibrate stands alone", hint="run reservoir doctor --repair first")
        _calibrate(ctx, as_json)
        return
    if salvage is not None:
        if repair:
            raise UsageError(
                "--repair changes the store, --salvage leaves it as it is", hint="choose one"
            )
        _salvage(given, salvage, as_json)
        return
    checks = list(
        Reservoir.doctor(
            given.db, config_file=given.config, repair=repair, progress=console.progress
        )
    )
    console.progress.stop()
    if as_json:
        names = ("name", "status", "detail", "fix")
        console.document(
            {"checks": [{name: getattr(check, name) for name in names} for check in checks]}
        )
    else:
        rows = [(check.status.value, check.name, check.detail, check.fix or "") for check in checks]
        console.table(("", "check", "found", "to do"), rows)
    if any(check.status == "fault" for check in checks):
        raise typer.Exit(1)


def _calibrate(ctx: typer.Context, as_json: bool) -> None:
    """Measure the recall floor of the model, keep it in the store, and report it."""
    with open_store.open_reservoir(ctx) as reservoir:
        measured = reservoir.database.calibrate()
        setting = reservoir.config.settings().recall_floor
    if as_json:
        console.document({"calibration": asdict(measured)})
    else:
        rows = [(name.replace("_", " "), str(value)) for name, value in asdict(measured).items()]
        console.table(("", "measured"), rows)
    if setting is not None:
        console.note(f"setting recall_floor is {setting:g} and comes before what was measured")


def _salvage(given: Globals, target: Path, as_json: bool) -> None:
    """Save what is left of a damaged store, and report what is not."""
    config = load(given.config)
    console.progress("reading what can be read", 0, 0)
    try:
        lost = save_the_rest(config.store_location(given.db), target, config.synapse_threshold)
    finally:
        console.progress.stop()
    console.aside(f"saved {options.counted(lost.saved, 'message')} to {target}")
    if lost.messages:
        console.warn(f"{options.counted(lost.messages, 'message')} cannot be read")
    if lost.texts:
        damaged = options.counted(lost.texts, "message")
        console.warn(f"bytes that are no text became U+FFFD in {damaged}")
    for table in lost.tables:
        console.warn(_MISSING[table])
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


#: What it means that not all of a table can be read.
_MISSING = {
    "conversations": "not all titles of conversations can be read",
    "forgotten": "not all marks of what was forgotten can be read: imports may bring it back",
    "pins": "not all pins can be read",
    "tags": "not all tags can be read",
    "properties": "not all properties can be read: reservoir embed makes all vectors again",
}
