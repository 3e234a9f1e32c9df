"""``reservoir models``: list the known models and their token limits."""

from typing import Annotated

import typer

from reservoir_cli.cli import console, options
from reservoir_cli.cli.options import argument
from reservoir_cli.settings import config


def models(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None, argument("[NAME]...", "Only models whose name contains these texts.")
    ] = None,
    partition: options.Partition = None,
    as_json: options.Json = False,
) -> None:
    """List the known models and their token limits.

    Window is the model's context window, reserve the part kept for the answer, "for context" the
    part that a context may use, and recommended the value of --budget recommended. To add a model:
    reservoir config set models.NAME.context_window=N
    """
    texts = [name.casefold() for name in names or []]
    rows = [
        row
        for row in config.model_rows(options.load_config(ctx), partition)
        if all(name in str(row["name"]).casefold() for name in texts)
    ]
    if not rows:
        console.note(
            f"no known model has {' and '.join(texts)} in its name; reservoir models lists all"
        )
    if as_json:
        console.document({"models": rows})
        return
    columns = ("model", "window", "reserve", "for context", "recommended", "from")
    numbers = ("context_window", "reserve", "available", "recommended")
    console.table(
        columns,
        [
            (
                str(row["name"]),
                *(f"{row[key]:,}" if row[key] is not None else "" for key in numbers),
                str(row["origin"]),
            )
            for row in rows
        ],
        numeric=columns[1:5],
    )
