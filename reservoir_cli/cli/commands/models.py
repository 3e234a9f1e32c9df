"""``reservoir models``: what is known of each model."""

import typer

from reservoir_cli.cli import console, options
from reservoir_cli.settings import config


def models(
    ctx: typer.Context, partition: options.Partition = None, as_json: options.Json = False
) -> None:
    """List the models that are known, and their limits in tokens.

    Window is what a model reads and writes at once; reserve what is kept for its answer; "for
    context" what a context may take; recommended what --budget recommended takes. More models:
    reservoir config --set models.NAME.context_window=N
    """
    rows = config.model_rows(options.load_config(ctx), partition)
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
