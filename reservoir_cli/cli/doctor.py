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
    from reservoir_cli import config, maintenance, paths
    from reservoir_cli.cli import output

    if salvage is not None:
        _salvage(ctx, salvage, repair, as_json)
        return
    from reservoir_cli.store import open_store

    given = options.globals_of(ctx)

    def location() -> str:
        try:
            setting = config.load(given.config).database()
        except ReservoirError:  # the check of the settings says so
            setting = None
        return given.db or paths.store_location(setting)

    found = list(
        maintenance.examine(
            lambda: config.load(given.config),
            lambda: open_store(location(), create=False),
            output.progress,
            repair=repair,
        )
    )
    output.progress.stop()
    if as_json:
        names = ("name", "status", "detail", "fix")
        output.document(
            {"checks": [{name: getattr(each, name) for name in names} for each in found]}
        )
    else:
        rows = [(each.status.value, each.name, each.detail, each.fix or "") for each in found]
        output.table(("", "check", "found", "to do"), rows)
    if any(each.status is maintenance.Status.FAULT for each in found):
        raise typer.Exit(1)


def _salvage(ctx: typer.Context, target: Path, repair: bool, as_json: bool) -> None:
    """Save what is left of a damaged store, and say what is not."""
    from reservoir_cli import maintenance
    from reservoir_cli.cli import output
    from reservoir_cli.messages import Scope
    from reservoir_cli.store import open_store

    if repair:
        raise UsageError(
            "--salvage leaves the store as it is, --repair changes it", hint="choose one of them"
        )
    with options.open_reservoir(ctx) as reservoir:
        lost = maintenance.salvage(reservoir.store, target, reservoir.config, output.progress)
    saved = open_store(str(target), create=False)
    count = len(saved.find(Scope(None)))
    saved.close()
    output.aside(f"saved {options.counted(count, 'message')} to {target}")
    if lost.messages:
        output.warn(f"{options.counted(lost.messages, 'message')} cannot be read")
    if lost.texts:
        damaged = options.counted(lost.texts, "message")
        output.warn(f"bytes that are no text became U+FFFD in {damaged}")
    for table in lost.tables:
        output.warn(_MISSING[table])
    if as_json:
        output.document(
            {
                "file": str(target),
                "saved": count,
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
