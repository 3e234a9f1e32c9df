"""``reservoir doctor``: what is in order, and what is not."""

from typing import Annotated

import typer

from reservoir_cli.cli import options
from reservoir_cli.errors import ReservoirError


def doctor(
    ctx: typer.Context,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Make again what is derived, and make our files private."),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Check settings, store, model and speed.

    It says what to do about what is wrong. Exit code 1 if there is a fault; notes are only worth
    knowing.
    """
    from reservoir_cli import config, maintenance, paths
    from reservoir_cli.cli import output
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
