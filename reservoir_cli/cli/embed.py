"""``reservoir embed``: give pending messages their vectors."""

import typer

from reservoir_cli.cli import options


def embed(ctx: typer.Context, as_json: options.Json = False) -> None:
    """Embed every message that has no vector yet."""
    from reservoir_cli.cli import output

    with options.open_reservoir(ctx, create=True) as reservoir:
        done = reservoir.embed()
        active = reservoir.store.active_model()
    output.aside(f"embedded {done:,} message{'' if done == 1 else 's'}")
    if as_json:
        output.document({"embedded": done, "model": active[1] if active else None})
