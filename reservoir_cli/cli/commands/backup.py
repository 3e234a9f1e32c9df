"""``reservoir backup``: copy the store."""

import os
from pathlib import Path
from typing import Annotated

import typer

from reservoir_cli.cli import console, open_store, options
from reservoir_cli.cli.global_options import parse_path
from reservoir_cli.cli.options import argument
from reservoir_cli.errors import UsageError
from reservoir_cli.maintenance.backup import describe


def backup(
    ctx: typer.Context,
    file: Annotated[Path, argument("FILE", "File to write the copy to.", parser=parse_path)],
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """Copy the store to a file, even while others write to it.

    The copy is consistent, and a store of its own: --db FILE opens it. An existing file is
    replaced only if you confirm it, and only when the copy is complete.
    """
    if str(file) == "-":
        raise UsageError("a store cannot be written to stdout", hint="reservoir backup FILE")
    # Unlike the method of Path, this returns False for an invalid file name.
    if os.path.isfile(file):
        options.confirm(f"{file} exists{'' if yes else describe(file)}; replace it?", yes)
    with open_store.open_reservoir(ctx) as reservoir:
        reservoir.backup(file)
    size = file.stat().st_size
    console.aside(f"copied the store to {file}, {size / 1e6:,.1f} MB")
    if as_json:
        console.document({"file": str(file), "bytes": size})
