"""``reservoir embed``: give pending messages their vectors."""

import typer

from reservoir_cli.cli import options


def embed(ctx: typer.Context, as_json: options.Json = False) -> None:
    """Embed every message that has no vector yet."""
    from reservoir_cli.cli import output

    with options.open_reservoir(ctx, create=True) as reservoir:
        done = reservoir.embed()
        active, engine = reservoir.store.active_model(), reservoir.engine
    by = f", {engine.kind} engine, weights from the {engine.origin}" if engine else ""
    output.aside(f"embedded {done:,} message{'' if done == 1 else 's'}{by}")
    if as_json:
        output.document(
            {
                "embedded": done,
                "model": active[1] if active else None,
                "engine": engine.kind if engine else None,
                "reason": engine.reason if engine else None,
                "weights": engine.origin if engine else None,
            }
        )
