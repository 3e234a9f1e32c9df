"""``reservoir doctor``: what is in order, and what is not."""

from pathlib import Path
from typing import Annotated

import typer

from reservoir_cli.cli import options
from reservoir_cli.errors import ReservoirError, UsageError


def doctor(
    ctx: typer.Context,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Make again what is derived, and make our files private."),
    ] = False,
    salvage: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write what can still be read of a damaged store to FILE, a store of its own.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check settings, store, model and speed.

    It says what to do about what is wrong. Exit code 1 if there is a fault; notes are only worth
    knowing.
    """
    from reservoir_cli.cli import console
    from reservoir_cli.maintenance import doctor as maintenance
    from reservoir_cli.settings import config
    from reservoir_cli.storage.factory import open_store

    given = options.globals_of(ctx)
    if salvage is not None:
        if repair:
            raise UsageError(
                "--repair changes the store, --salvage leaves it as it is", hint="choose one"
            )
        _salvage(given, salvage, as_json)
        return
    found = list(
        maintenance.examine(
            lambda: config.load(given.config),
            lambda: open_store(_location(given), create=False),
            console.progress,
            repair=repair,
        )
    )
    console.progress.stop()
    if as_json:
        names = ("name", "status", "detail", "fix")
        console.document(
            {"checks": [{name: getattr(each, name) for name in names} for each in found]}
        )
    else:
        rows = [(each.status.value, each.name, each.detail, each.fix or "") for each in found]
        console.table(("", "check", "found", "to do"), rows)
    if any(each.status is maintenance.Status.FAULT for each in found):
        raise typer.Exit(1)


def _location(given: options.Globals) -> str:
    """Where the store is, whatever is wrong with the settings."""
    from reservoir_cli.settings import config, paths

    try:
        setting = config.load(given.config).database()
    except ReservoirError:  # the check of the settings says so
        setting = None
    return given.db or paths.store_location(setting)


def _salvage(given: options.Globals, target: Path, as_json: bool) -> None:
    """Save what is left of a damaged store, and say what is not."""
    from reservoir_cli.cli import console
    from reservoir_cli.maintenance import doctor as maintenance
    from reservoir_cli.settings import config

    console.progress("reading what can be read", 0, 0)
    threshold = config.load(given.config).synapse_threshold
    try:
        lost = maintenance.salvage(_location(given), target, threshold)
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
    "properties": "not all properties can be read: reservoir embed makes all vectors again",
}
